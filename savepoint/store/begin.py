"""The store of a project's own: found, or made at the first event of an agent that has our hook.

The line in the agent's settings is the owner's word that sessions are to be saved: nobody has to
say `init` in each project.
"""

from __future__ import annotations

import os

from savepoint.core.errors import NoStoreError
from savepoint.store import config, registry, worktree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.store.layout import Home, Store

DEFAULT_INSTANCE = "Claude #1"
MADE = "it made store "  # in hook.log, before the store's id


def own_store(home: Home, where: str) -> Store | None:
    """The store that the folder belongs to already. A repository of its own inside another
    project's folder is a project of its own. Raises MalformedError, DiskError.
    """
    try:
        store = registry.find(home, where)
    except NoStoreError:
        return None
    common = _common_dir(where)
    for one in config.load(store).projects:
        if one.path == where or common in (one.common_dir, _common_dir(one.path)):
            return store
    return None


def ensure(home: Home, folder: str, now: int, deadline: float, user: str) -> Store | None:
    """The project in `folder` has a store of its own; the one that was made for it, if it had none.

    now: Unix seconds. user: the user's own folder, to which not all that lies in it belongs: a
    session there gets a store, and a session below it one of its own. Raises NoStoreError (there
    can be none), DiskError, BusyError, KeyFileError, MalformedError.
    """
    if registry.is_known(home, folder):
        return None
    _refuse_nameless(folder)
    where = _project_of(os.path.realpath(folder), user)
    if _found(home, where, user) is not None:
        return None
    from savepoint.core.spelling import Instance
    from savepoint.store import birth, durable
    from savepoint.store.locks import Lock

    durable.make_directories(home.path)
    with Lock(home.lock, deadline):
        registry.rebuild(home)  # the cache may be older than a config
        if _found(home, where, user) is not None:  # another fire was first
            return None
        return birth.create_store(home, where, Instance.parse(DEFAULT_INSTANCE), now)


def _refuse_nameless(folder: str) -> None:
    """No config, which is JSON, could name the folder, or it is gone. Raises NoStoreError."""
    try:
        os.path.realpath(folder).encode("utf-8")
    except UnicodeEncodeError:
        raise NoStoreError("no store: the folder's path is not UTF-8") from None
    if not os.path.isdir(folder):
        raise NoStoreError("no store: the folder is gone")


def _found(home: Home, where: str, user: str) -> Store | None:
    store = own_store(home, where)
    if store is None:
        return None
    paths = {one.path for one in config.load(store).projects}
    wide = {os.path.realpath(user), os.path.abspath(os.sep)}
    return store if where in paths or not paths <= wide else None


def _project_of(real: str, user: str) -> str:
    """The folder that the store is named after: the top of the main worktree, which outlives the
    others; the folder itself where that is in no repository, or in one of all that the user has.
    """
    tree = worktree.find_worktree(real)
    if tree is None:
        return real
    above, name = os.path.split(tree.common_dir)
    top = above if name == ".git" and os.path.isdir(above) else tree.top
    return real if top is None or top in {os.path.realpath(user), os.sep} else top


def _common_dir(folder: str) -> str | None:
    tree = worktree.find_worktree(folder)
    return tree.common_dir if tree else None
