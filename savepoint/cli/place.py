"""Where a command works: from the folder and the environment to home, store and instance."""

from __future__ import annotations

import os
import stat
import time
from typing import NamedTuple

from savepoint.capture import surroundings
from savepoint.capture.request import Request
from savepoint.capture.stillness import Stillness
from savepoint.cli import terminal
from savepoint.core import limits
from savepoint.core.errors import NoStoreError, OutputExistsError, UsageError
from savepoint.gitlayer.repository import Repository
from savepoint.store import config, index, registry, savepoints, worktree
from savepoint.store.config import Config
from savepoint.store.layout import Home, InstancePaths, Store
from savepoint.work.jobs import Surroundings

KEYS_NOTE = (
    "KEYS NOT BACKED UP: run `savepoint keys backup -o FILE`; without the keys nothing can be "
    "signed, and nothing in git be opened"
)

_NAMED = 8  # of the instances at the remote, in one line


class Place(NamedTuple):
    """The store of a folder, and one instance of it."""

    folder: str  # real path of the project's folder
    store: Store
    config: Config
    paths: InstancePaths
    instance: str  # `NAME #N`; its slug where its index does not tell

    @property
    def project(self) -> str:
        """The top of the project that the folder is in: what an agent calls its project."""
        above = [one.path for one in self.config.projects if is_in(self.folder, one.path)]
        if above:
            return max(above, key=len)
        tree = worktree.find_worktree(self.folder)
        return (tree.top if tree else None) or self.folder

    @property
    def title(self) -> str:
        """The instance with the start of its key: siblings may share a number."""
        return title(self.paths)


def note_lost(at: Place) -> bool:
    """Say what the trusted head has seen and the index lacks. Was there something?"""
    lost = index.lost(at.paths, index.last(at.paths))
    if lost:
        terminal.note(f"ROLLED BACK OR DAMAGED: {lost}; run `savepoint fsck --repair`")
    return bool(lost)


def note_absent(at: Place) -> None:
    """Say whose savepoints only the remote has: nothing else here shows that they exist."""
    away = savepoints.absent(at.store) if at.config.remote else []
    if away:
        more = len(away) - _NAMED
        named = ", ".join(away[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        terminal.note(
            f"left at the remote: {named}; `savepoint resurrect --instance {away[0]}` fetches that "
            "one and brings it back"
        )


def title(paths: InstancePaths) -> str:
    """`NAME #N` of an instance, where its index tells it, with the start of its key."""
    return f"{savepoints.name_of(paths) or paths.slug} (key {paths.slug[-8:]})"


def numbered(paths: InstancePaths, seq: int, current: str) -> str:
    """A savepoint as people are told of it. current: slug of the current instance; a number of
    another goes with that, since the current one has the same number for something else.
    """
    return f"savepoint {seq}" if paths.slug == current else f"savepoint {seq} of {title(paths)}"


def home() -> Home:
    """The folder of all stores."""
    return Home(surroundings.home(os.environ))


def folder(project: str) -> str:
    """The real path of the folder that `-C` names. Raises UsageError."""
    hint = "name the project's folder with -C DIR"
    try:
        found = os.path.realpath(project)
        is_folder = stat.S_ISDIR(os.stat(found).st_mode)
    except FileNotFoundError:
        what = "the current folder is gone" if project == "." else f"{project} is no folder"
        if project != "." and registry.is_known(home(), project):
            hint = "its savepoints are kept: make the folder again, then run the same"
        raise UsageError(what, hint=hint) from None
    except OSError as failure:
        what = "the current folder" if project == "." else project
        raise UsageError(f"{what}: {(failure.strerror or '').lower()}", hint=hint) from None
    if not is_folder:
        raise UsageError(f"{project} is no folder", hint=hint)
    return found


def find(project: str, instance: str = "") -> Place:
    """The store of a folder and its current instance, or the one named.

    Raises UsageError, NoStoreError, SelectorError, MalformedError, DiskError.
    """
    where = folder(project)
    store = store_of(where)
    chosen = config.load(store)
    paths = store.instance(chosen.instance)
    if instance:
        paths = savepoints.instance_named(store, instance)
    return Place(where, store, chosen, paths, savepoints.name_of(paths) or paths.slug)


def store_of(where: str) -> Store:
    """The store of a folder. Raises NoStoreError, whose hint names the store that the folder was
    perhaps moved from: `savepoint init` alone would begin another.
    """
    try:
        return registry.find(home(), where)
    except NoStoreError as failure:
        hint = failure.hint
        if not is_utf8(where):
            hint = "rename the folder: its path is not UTF-8, and no store can name it"
        elif moved := registry.moved(home(), where):
            hint = f"{adopting(moved[0])}: this folder was perhaps moved from it"
        elif free := registry.homeless(home()):
            hint = f"{adopting(free[0])}: it has no folder yet; `savepoint init` makes another"
        raise NoStoreError(failure.message, hint=hint) from None


def is_utf8(path: str) -> bool:
    """Can a config, which is JSON, name that path?"""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def adopting(store: Store) -> str:
    """How a folder goes on with that store."""
    return f"`savepoint init --adopt {store.id[:8]}` continues that store here"


def around() -> Surroundings:
    """What jobs may know of this machine."""
    return Surroundings(surroundings.for_children(os.environ), surroundings.config_dir(os.environ))


def repository(store: Store) -> Repository:
    """The store's repository, for what may take all the time that it takes."""
    env = surroundings.for_children(os.environ)
    return Repository.of(store, env, time.monotonic() + limits.COMMAND_SECONDS)


def output(path: str) -> str:
    """The absolute path of a file that `-o` names, which a command may make, or replace if told to.

    A link would lead the write elsewhere (hackmyagent#318), also with --force; and in our own home
    --force would replace an index or a key. Raises UsageError, OutputExistsError.
    """
    if path == "-":
        raise UsageError("nothing is written to stdout", hint="name a file: -o FILE")
    target = os.path.abspath(path)
    if not os.path.isdir(os.path.dirname(target)):
        raise UsageError(f"there is no folder {os.path.dirname(target)}", hint="make it first")
    if _is_ours(os.path.dirname(target)):
        raise UsageError(f"{target} lies among the stores", hint="choose a file elsewhere")
    if os.path.islink(target) or (os.path.lexists(target) and not os.path.isfile(target)):
        raise OutputExistsError(f"{target} is no regular file", hint="choose another path")
    return target


def new_folder(path: str) -> tuple[str, str]:
    """The real path of the folder that a new one is to be made in, and its name there: what `-o`
    names. Raises UsageError, OutputExistsError.
    """
    target = os.path.abspath(path)
    above, name = os.path.split(target)
    if not name or not os.path.isdir(above):
        raise UsageError(f"there is no folder {above}", hint="make it first")
    if _is_ours(above):
        raise UsageError(f"{target} lies among the stores", hint="choose a folder elsewhere")
    if os.path.lexists(target):
        raise OutputExistsError(f"{target} exists", hint="choose a folder that is not there yet")
    return os.path.realpath(above), name


def request(at: Place, trigger: str) -> Request:
    """A save that a person asks for, with all the time that it takes."""
    begun = time.monotonic()
    return Request(
        home=home().path,
        project=at.project,
        cwd=at.folder,
        config_dir=surroundings.config_dir(os.environ),
        session_id="",
        transcript="",
        trigger=trigger,
        now=int(time.time()),
        deadline=begun + limits.COMMAND_SECONDS,
        environment=surroundings.for_children(os.environ),
        still=Stillness(None, begun + limits.STILL_WAIT_SECONDS),
        window=surroundings.window(os.environ),
    )


def _is_ours(folder: str) -> bool:
    """Is it the home of all stores, or below it, by whatever name? Links and letter case differ."""
    ours, above = home().path, os.path.realpath(folder)
    if not os.path.isdir(ours):
        return False
    while not os.path.samefile(above, ours):
        if above == os.path.dirname(above):
            return False
        above = os.path.dirname(above)
    return True


def is_in(folder: str, top: str) -> bool:
    """Is the path `folder` that of `top`, or below it?"""
    return (os.path.realpath(folder) + "/").startswith(top.rstrip("/") + "/")
