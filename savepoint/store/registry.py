"""Which store belongs to a folder. stores.json is a cache: each config names its own projects."""

from __future__ import annotations

import os

from savepoint.core import limits, schema
from savepoint.core.errors import DiskError, NoStoreError, SavepointError
from savepoint.core.strict_json import dump, parse
from savepoint.store import config, durable, worktree
from savepoint.store.config import Project
from savepoint.store.files import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.store.layout import Home, Store

_SHAPE = schema.members({"v": schema.one_of(1), "stores": schema.mapping(schema.text)})


def find(home: Home, folder: str) -> Store:
    """The store of `folder`: of its real path, else of the nearest folder above, else of the git
    repository that it is a worktree of. Raises NoStoreError.
    """
    known = _load(home)
    real = os.path.realpath(folder)
    for path in worktree.upwards(real):
        if path in known:
            return home.store(known[path])
    tree = worktree.find_worktree(real)
    if tree is not None and tree.common_dir in known:
        return home.store(known[tree.common_dir])
    _refuse_unreadable(home, known)
    raise NoStoreError(f"no store for {folder}")


def is_known(home: Home, folder: str) -> bool:
    """Does a config name that very folder?"""
    return os.path.realpath(folder) in _load(home)


def _refuse_unreadable(home: Home, known: dict[str, str]) -> None:
    """Where the stores, or one that is known by nothing but its config, cannot be looked into,
    nobody can say that there is none for a folder: `init` would make another. Raises DiskError.
    """
    paths = [home.path, home.stores]
    paths += [one.config for one in _folders(home) if one.id not in known.values()]
    for path in paths:
        try:
            os.stat(path if path.endswith(".json") else os.path.join(path, "."))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as failure:
            raise DiskError.of(failure, path) from failure


def project_of(folder: str) -> Project:
    """`folder` as a config names it. Raises OSError if it is gone."""
    real = os.path.realpath(folder)
    seen = os.stat(real)
    tree = worktree.find_worktree(real)
    return Project(real, tree.common_dir if tree else None, seen.st_dev, seen.st_ino)


def stores(home: Home) -> list[Store]:
    """All stores of this home that have a config, by id. It may be damaged."""
    return [one for one in _folders(home) if os.path.lexists(one.config)]


def store_with_id(home: Home, prefix: str) -> Store:
    """The one store whose id starts with `prefix`, also one that has lost its config. Raises
    NoStoreError.
    """
    fitting = [one for one in _folders(home) if one.id.startswith(prefix)]
    found = [one for one in fitting if os.path.lexists(one.config) or os.path.isdir(one.instances)]
    if len(found) != 1:
        raise NoStoreError(f"{len(found)} stores have an id that starts with {prefix!r}")
    return found[0]


def moved(home: Home, folder: str) -> list[Store]:
    """Stores that had `folder` under another path which is gone, or leads here by a link now. Only
    the inode says so, and inodes are reused at once: that is for the owner to decide.
    """
    real = os.path.realpath(folder)
    seen = os.stat(real)
    found = []
    for store in stores(home):
        projects = _projects(store) or ()
        same = [one for one in projects if (one.device, one.inode) == (seen.st_dev, seen.st_ino)]
        if any(one.path != real and not _is_there(one.path) for one in same):
            found.append(store)
    return found


def homeless(home: Home) -> list[Store]:
    """Stores that no folder belongs to, as after `keys restore`."""
    return [one for one in stores(home) if _projects(one) == ()]


def is_current(home: Home) -> bool:
    """Does stores.json hold what the configs say?"""
    return configured(home).items() <= (_cached(home) or {}).items()


def rebuild(home: Home) -> dict[str, str]:
    """Write stores.json anew from the configs, and return it. A store whose config cannot be read
    keeps what the cache had of it, so that it is not taken for none; nothing is ever written empty
    over something. Raises DiskError.
    """
    known = configured(home)
    cached = (_cached(home) or {}).items()
    lost = {path: one for path, one in cached if one not in known.values()}
    kept = {path: one for path, one in lost.items() if os.path.isdir(home.store(one).path)}
    known = kept | known
    if known:
        durable.replace(home.stores_file, dump({"v": 1, "stores": dict(known)}) + b"\n")
    return known


def configured(home: Home) -> dict[str, str]:
    """Project folder, or common directory, → store, as the configs that can be read say."""
    known: dict[str, str] = {}
    for store in stores(home):
        for project in _projects(store) or ():  # doctor names a damaged config
            known[project.path] = store.id
            if project.common_dir:
                known.setdefault(project.common_dir, store.id)
    return known


def _projects(store: Store) -> tuple[Project, ...] | None:
    """The folders of a store; None where its config cannot be read."""
    try:
        return config.load(store).projects
    except SavepointError:
        return None


def _load(home: Home) -> dict[str, str]:
    cached = _cached(home)
    if cached is not None or not os.path.isdir(home.stores):
        return cached or {}
    try:
        return rebuild(home)
    except DiskError:  # a read-only home still finds its stores
        return configured(home)


def _cached(home: Home) -> dict[str, str] | None:
    try:
        value = parse(read_bounded(home.stores_file, limits.SMALL_DOCUMENT_BYTES) or b"")
        _SHAPE(value, "stores.json")
    except SavepointError:
        return None
    assert isinstance(value, dict)  # noqa: S101  # _SHAPE saw it; for the type checker
    return value["stores"]  # type: ignore[return-value]  # _SHAPE


def _folders(home: Home) -> list[Store]:
    try:
        return [home.store(name) for name in sorted(os.listdir(home.stores))]
    except (FileNotFoundError, NotADirectoryError):  # doctor names what stands for the home
        return []
    except OSError as failure:
        raise DiskError.of(failure, home.stores) from failure


def _is_there(path: str) -> bool:
    return os.path.realpath(path) == path and os.path.exists(path)
