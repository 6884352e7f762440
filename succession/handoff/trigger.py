"""Is the guidance that a session was started with stale, and does that call for a successor?

What was injected at the start does not change by being read again: a changed rule calls for a
session that is started after it. What the session only read can be read again.
"""

from __future__ import annotations

import hashlib
import os
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from savepoint.core import limits, schema
from savepoint.core.errors import MalformedError, SavepointError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import parse
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from savepoint.capture.guidance import Guidance
    from savepoint.core.strict_json import Json

SUCCESSOR, REREAD, NOTHING = "successor", "reread", "nothing"
CALLS_FOR = {
    "always-on rule": SUCCESSOR,
    "safety rule": SUCCESSOR,
    "skill entry": SUCCESSOR,  # of a skill that the session used
    "subagent definition": SUCCESSOR,
    "skill body": REREAD,
    "document": REREAD,
}
KIND = schema.members(
    {"of": schema.text, "path": schema.text, "kind": schema.one_of(*CALLS_FOR, "none")}
)
_CLAUDE = os.path.join(os.path.dirname(__file__), "claude_guidance.json")


class Kind(NamedTuple):
    """Which files are of which kind; the first that fits holds."""

    of: str  # rule, scoped_rule, imported_rule, skill, skill_body, agent: as captured; loaded:
    # a file that the session read
    path: str  # a glob over project/…, user/… or an absolute path
    kind: str  # of CALLS_FOR, or none


class Change(NamedTuple):
    """A file that is not as the session got it."""

    path: str
    kind: str
    change: str  # added, changed, removed, unreadable
    calls_for: str  # successor, reread, nothing


class Roots(NamedTuple):
    """The folders that paths are told from."""

    project: str
    config_dir: str

    def name(self, path: str) -> str:
        """`project/CLAUDE.md`, `user/rules/a.md`, or the path as it is."""
        for word, root in (("project", self.project), ("user", self.config_dir)):
            if path.startswith(root.rstrip("/") + "/"):
                return f"{word}/{path[len(root.rstrip('/')) + 1 :]}"
        return path


def kinds(own: Iterable[Kind] = ()) -> tuple[Kind, ...]:
    """The owner's, then Claude Code's. Raises MalformedError, DiskError."""
    value = parse(read_bounded(_CLAUDE, limits.SMALL_DOCUMENT_BYTES) or b"")
    listed = value.get("kinds") if isinstance(value, dict) else None
    if not isinstance(listed, list):
        raise MalformedError(f"{_CLAUDE} lists no kinds")
    return (*own, *map(kind_of_json, listed))


def kind_of_json(value: Json) -> Kind:
    """One of them. Raises MalformedError."""
    KIND(value, "kind")
    return Kind(**value)  # type: ignore[arg-type]  # KIND


def changes(
    document: dict[str, Json],
    loaded: Mapping[str, Json],
    now: Iterable[Guidance],
    used: Iterable[str],
    known: Iterable[Kind],
    roots: Roots,
) -> list[Change]:
    """What differs from what the session got. document: its newest snapshot, which must tell what
    it started with; loaded: the files that it read; now: what is on disk; used: skills it used.
    """
    rows = tuple(known)
    listed = document.get("guidance")
    entries = listed if isinstance(listed, list) else []
    before = {
        (str(one["kind"]), str(one["path"])): str(one["sha256"])
        for one in entries
        if isinstance(one, dict)
    }
    after = {(one.kind, one.path): one.sha256 for one in now}
    found = [
        _judged(of, path, change, frozenset(used), rows, roots)
        for of, path, change in _differing(before, after)
    ]
    told = {one.path for one in found if one}
    found += [one for one in _reread(loaded, rows, roots) if one.path not in told]
    return sorted(filter(None, found), key=lambda one: (_RANK.index(one.calls_for), one))


def _differing(
    before: Mapping[tuple[str, str], str], after: Mapping[tuple[str, str], str]
) -> Iterator[tuple[str, str, str]]:
    knew = {of for of, _ in before}
    before, after = (_as_injected(one, before, after) for one in (before, after))
    for key in sorted(before.keys() | after.keys()):
        if key[0] in _LATER and key[0] not in knew and key not in before:
            continue  # a session that started before such were kept; who imports has changed, too
        if before.get(key) != after.get(key):
            gone = _gone(key[1]) if key not in after else "changed"
            yield (*key, "added" if key not in before else gone)


def _as_injected(
    listed: Mapping[tuple[str, str], str],
    before: Mapping[tuple[str, str], str],
    after: Mapping[tuple[str, str], str],
) -> dict[tuple[str, str], str]:
    """A rule that was scoped before, or is now, counts as one that is not: as such it was, or would
    be, injected.
    """
    return {
        (_RULE, path)
        if of == _SCOPED and ((_RULE, path) in before or (_RULE, path) in after)
        else (of, path): sha256
        for (of, path), sha256 in listed.items()
    }


def _gone(path: str) -> str:
    """What is there, but is no file, or too large for guidance, was not removed."""
    try:
        is_text = os.path.isfile(path) and os.stat(path).st_size <= limits.GUIDANCE_BYTES
    except OSError:
        is_text = False
    is_left_out = is_text and os.access(path, os.R_OK)  # it is imported no more
    return "removed" if is_left_out or not os.path.lexists(path) else "unreadable"


def _judged(
    of: str,
    path: str,
    change: str,
    used: frozenset[str],
    rows: tuple[Kind, ...],
    roots: Roots,
) -> Change | None:
    kind = _kind(of, path, rows, roots)
    if kind is None:
        return None
    calls_for = CALLS_FOR[kind]
    if kind in {"skill entry", "skill body"} and not _is_used(path, used):
        calls_for = NOTHING
    return Change(path, kind, change, calls_for)


def _reread(loaded: Mapping[str, Json], rows: tuple[Kind, ...], roots: Roots) -> Iterator[Change]:
    """Documents that the session read and that have changed since."""
    for name, one in loaded.items():
        path = os.path.join(roots.project, name)
        kind = _kind("loaded", path, rows, roots)
        if kind is None or not isinstance(one, dict) or one["sha256"] is None:
            continue
        digest = _digest(path)
        if digest is None:
            yield Change(path, kind, _gone(path), CALLS_FOR[kind])
        elif digest != one["sha256"] or one["changed"] is True:
            yield Change(path, kind, "changed", CALLS_FOR[kind])


def _kind(of: str, path: str, rows: tuple[Kind, ...], roots: Roots) -> str | None:
    name = roots.name(path)
    fitting = (one.kind for one in rows if one.of == of and fnmatchcase(name, one.path))
    found = next(fitting, "none")
    return None if found == "none" else found


def _is_used(path: str, used: frozenset[str]) -> bool:
    """A plugin's skill is called `plugin:skill`."""
    name = os.path.basename(os.path.dirname(path))
    return any(one.rpartition(":")[2] == name for one in used)


def _digest(path: str) -> str | None:
    """None where there is no such file any more."""
    try:
        data = read_bounded(os.path.realpath(path), limits.LOADED_FILE_BYTES)
    except (SavepointError, OSError):
        return None
    return None if data is None else hashlib.sha256(data).hexdigest()


_RULE, _SCOPED = "rule", "scoped_rule"
_LATER = ("skill_body", "imported_rule")  # kinds that were not kept from the beginning
_RANK = (SUCCESSOR, REREAD, NOTHING)
