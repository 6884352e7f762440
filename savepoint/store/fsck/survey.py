"""What lies in a store's folders: what belongs there, what a crash left, what others may read."""

from __future__ import annotations

import os
import re
import stat
from typing import TYPE_CHECKING

from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.store.layout import Store

_TEMPORARY = ".tmp-"  # in the name of what was being written when a process died
_OTHERS = 0o077  # permission bits that nothing of ours has
_GIT = "repo.git"  # git's own, also what a repair set aside; its contents are not looked at here
_RESTORED = "restored"  # what came back of savepoints: the owner's
_KEY = "[A-Za-z0-9-]{1,64}"
_SLUG = r"instances/[a-z0-9-]+"
_HEX = "[0-9a-f]"
_BRANCH = "[a-z0-9~_-]{1,64}"  # the folder of a branch in the dynasty
_THREAD = rf"handoff/t-{_HEX}{{16}}"
_INSTANCE = re.compile(_SLUG)
_FOLDERS = re.compile(
    rf"objects(/{_HEX}{{2}})?|sessions|pending|scratch|restored"
    rf"|repo\.git(\.next|\.damaged-{_HEX}{{16}})?"
    rf"|handoff(/running)?|{_THREAD}(/[1-9][0-9]*)?"
    rf"|dynasty(/{_BRANCH})?|instances|{_SLUG}(/logs(/precompact-saves|/forks)?)?"
)
_FILES = re.compile(
    rf"config\.json(\.damaged-{_HEX}{{8}})?|lock|saving\.lock|worker\.(lock|next)|(outbox|ledger)\.db(-wal|-shm)?"
    rf"|outbox\.db\.damaged-{_HEX}{{16}}(-wal)?|objects/(?P<pack>{_HEX}{{2}})/(?P=pack){_HEX}{{62}}\.pack"
    rf"|sessions/{_KEY}(\.guidance|\.context|\.alarm)?\.json|sessions/{_KEY}\.lock"
    rf"|pending/{_KEY}\.json|pending/{_KEY}\.[0-9]{{12}}\.draft"
    rf"|handoff\.json|handoff/\.lock|handoff/log\.jsonl(\.torn-{_HEX}{{16}})?"
    rf"|handoff/running/{_KEY}\.json|{_THREAD}/[1-9][0-9]*/(handoff\.md|receipt\.json)"
    rf"|dynasty/(\.lock|\.journal|sessions\.json)"
    rf"|dynasty/((vault|deviants|lineage)\.md|archive\.jsonl)(\.edited-{_HEX}{{16}})?"
    rf"|dynasty/{_BRANCH}/((day|dusk|dawn|day-briefing)\.md|dynasty\.json)(\.edited-{_HEX}{{16}})?"
    rf"|dynasty/({_BRANCH}/)?\.next-[a-z-]+\.(md|json|jsonl)"
    rf"|{_SLUG}/(lineage\.txt|arrival\.json|border\.json)"
    rf"|{_SLUG}/BOOTSTRAP_VERIFICATION\.json|{_SLUG}/logs/consciousness_continuity\.log"
    rf"|{_SLUG}/logs/precompact-(savepoint|status)\.jsonl"
    rf"|{_SLUG}/logs/precompact-savepoint\.jsonl\.(torn|damaged)-{_HEX}{{16}}"
    rf"|{_SLUG}/logs/forks/precompact-savepoint\.{_HEX}{{16}}\.jsonl"
    rf"|{_SLUG}/logs/precompact-saves/snapshot_[0-9TZ_-]+\.json"
)


class Survey(NamedTuple):
    """What was found. Paths are relative to the store, except where they are said to be relative
    to its home.
    """

    files: tuple[str, ...]  # that belong into a store
    instances: tuple[str, ...]  # slugs that have a folder
    trusted: tuple[str, ...]  # trusted heads; relative to the home
    unknown: tuple[str, ...]
    open_to_others: tuple[tuple[str, int], ...]  # with their mode; relative to the home
    temporaries: tuple[float, ...]  # when each was last written, Unix seconds
    unlisted: tuple[tuple[str, str], ...]  # folders that cannot be listed, and why; of the home


class _Entry(NamedTuple):
    path: str  # relative to the home
    seen: os.stat_result


def survey(store: Store) -> Survey:
    """Walk the store's folder, and its folders of keys and trusted heads. No link is followed."""
    unlisted: list[tuple[str, str]] = []
    trusted = os.path.dirname(store.instance("x").trusted)
    tops = [os.path.relpath(one, store.home) for one in (store.path, store.keys, trusted)]
    entries = list(_tops(store.home, tops))
    for top in tops:
        entries += _walk(store.home, top, unlisted)
    lasting = [one for one in entries if not _is_temporary(one.path)]
    own = tops[0] + os.sep
    inside = [
        _Entry(one.path.removeprefix(own), one.seen) for one in lasting if one.path.startswith(own)
    ]
    return Survey(
        files=tuple(one.path for one in inside if _is_known_file(one)),
        instances=tuple(
            os.path.basename(one.path) for one in inside if _INSTANCE.fullmatch(one.path)
        ),
        trusted=tuple(one.path for one in lasting if one.path.startswith(tops[2] + os.sep)),
        unknown=tuple(one.path for one in inside if not _belongs(one)),
        open_to_others=tuple(
            (one.path, stat.S_IMODE(one.seen.st_mode)) for one in lasting if _is_open(one)
        ),
        temporaries=tuple(one.seen.st_mtime for one in entries if _is_temporary(one.path)),
        unlisted=tuple(unlisted),
    )


def _tops(home: str, tops: list[str]) -> Iterator[_Entry]:
    """The folders that hold the store's, and the home's own files."""
    paths = [".", *(os.path.dirname(one) for one in tops), *tops]
    if os.path.isdir(home):
        paths += [name for name in os.listdir(home) if os.path.isfile(os.path.join(home, name))]
    for path in paths:
        try:
            yield _Entry(path, os.lstat(os.path.join(home, path)))
        except OSError:
            continue  # missing, or the walk says why it cannot be listed


def _walk(home: str, folder: str, unlisted: list[tuple[str, str]]) -> Iterator[_Entry]:
    """What is below a folder, but not below what is temporary or git's. What goes meanwhile is not
    there.
    """
    try:
        with os.scandir(os.path.join(home, folder)) as listed:
            names = sorted(one.name for one in listed)
    except FileNotFoundError:
        return
    except OSError as failure:
        unlisted.append((folder, failure.strerror or "cannot be listed"))
        return
    for name in names:
        path = os.path.join(folder, name)
        try:
            seen = os.lstat(os.path.join(home, path))
        except FileNotFoundError:
            continue
        yield _Entry(path, seen)
        apart = _is_temporary(path) or name.startswith(_GIT) or name == _RESTORED
        if stat.S_ISDIR(seen.st_mode) and not apart:
            yield from _walk(home, path, unlisted)


def _is_known_file(one: _Entry) -> bool:
    return stat.S_ISREG(one.seen.st_mode) and bool(_FILES.fullmatch(one.path))


def _belongs(one: _Entry) -> bool:
    is_folder = stat.S_ISDIR(one.seen.st_mode)
    return bool(_FOLDERS.fullmatch(one.path)) if is_folder else _is_known_file(one)


def _is_temporary(path: str) -> bool:
    return _TEMPORARY in os.path.basename(path)


def _is_open(one: _Entry) -> bool:
    return bool(one.seen.st_mode & _OTHERS) and not stat.S_ISLNK(one.seen.st_mode)
