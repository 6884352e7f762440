"""Taking over a dynasty that another tool kept in the specification's layout.

    DIR/dynasty/<branch>/{day,dusk,dawn}.md, dynasty.json; DIR/{deviants,lineage}.md
    DIR/{day,dusk,dawn}.md, dynasty.json                   a branch's own folder
    DIR/vault.md, or <project>/.empire/vault.md            the vault

Every line comes along; what is not understood stays as it is, and is told.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core.errors import MalformedError, OutputExistsError, UsageError
from savepoint.core.named import NamedTuple
from savepoint.store.files import read_bounded
from succession.dynasty import record
from succession.dynasty.constants import FILE_BYTES
from succession.dynasty.files.entry import to_bytes, to_text
from succession.dynasty.state import briefed

if TYPE_CHECKING:
    from succession.dynasty.branch import Branch
    from succession.dynasty.files.meta import Meta
    from succession.dynasty.keep import Held
    from succession.dynasty.record import Done

_WITHOUT = "without that file its pages are taken over, and its first ruler begins anew"
_PAGES = ("day.md", "dusk.md", "dawn.md")


class Found(NamedTuple):
    """Files of another tool, by name; absent where there is none."""

    folder: str  # of the branch
    files: dict[str, bytes]


def find(folder: str, project: str, branch: Branch) -> Found:
    """What is in that folder. Raises UsageError (no dynasty, no regular file), DiskError."""
    own = next((one for one in _own(folder, branch) if _has_pages(one)), "")
    parents = [folder, os.path.dirname(os.path.dirname(own)) if own else folder]
    places = {name: [own] for name in (*_PAGES, "dynasty.json")} if own else {}
    places |= dict.fromkeys(("deviants.md", "lineage.md"), parents)
    places["vault.md"] = [
        *parents,
        os.path.join(folder, ".empire"),
        os.path.join(project, ".empire"),
    ]
    files = {}
    for name, where in places.items():
        for one in where:
            data = _read(os.path.join(one, name))
            if data is not None:
                files[name] = data
                break
    if not files:
        raise UsageError(
            f"{folder} holds no dynasty of branch {branch.name}",
            hint="name the folder that has day.md, or the one that has dynasty/",
        )
    return Found(own, files)


def take(held: Held, found: Found, now: int) -> tuple[Done, bytes]:
    """The dynasty with all that was found, and what to append to the lineage.

    Raises OutputExistsError where the branch has a dynasty already, UsageError (its dynasty.json).
    """
    if held.exists and found.folder:
        raise OutputExistsError(
            "this branch has a dynasty already", hint="import on another branch"
        )
    texts = {name: to_text(data) for name, data in found.files.items()}
    state = held.state
    if found.folder:
        state = state._replace(
            day=texts.get("day.md", state.day),
            dusk=texts.get("dusk.md", ""),
            dawn=texts.get("dawn.md", state.dawn),
            meta=_meta(state.meta, found.files.get("dynasty.json")),
        )
    state = state._replace(
        vault=_joined(state.vault, texts.get("vault.md", "")),
        deviants=_joined(state.deviants, texts.get("deviants.md", "")),
    )
    done = record.welcome(state, now)
    kept = tuple(one._replace(source="import") for one in done.kept)
    lines = to_bytes(_joined(to_text(held.state.lineage), texts.get("lineage.md", "")))
    added = lines.removeprefix(held.state.lineage)
    return done._replace(state=briefed(done.state), kept=kept), added


def _read(path: str) -> bytes | None:
    try:
        return read_bounded(path, FILE_BYTES)
    except MalformedError as failure:
        hint = "it takes regular files, none of them longer than a dynasty's may be"
        raise UsageError(failure.message, hint=hint) from None


def _own(folder: str, branch: Branch) -> list[str]:
    """Where the branch's files may be: the old tool wrote `/` of a name as `-`, or as it is."""
    names = dict.fromkeys((branch.name, branch.name.replace("/", "-"), branch.folder))
    inner = [os.path.join(folder, "dynasty", name) for name in names if ".." not in name]
    return [folder, *inner]


def _has_pages(folder: str) -> bool:
    return any(os.path.isfile(os.path.join(folder, name)) for name in (*_PAGES, "dynasty.json"))


def _joined(ours: str, theirs: str) -> str:
    """Theirs behind ours, unless it is there already. No byte of either is changed."""
    if not theirs.strip() or theirs in ours:
        return ours
    gap = "\n" if ours and not ours.endswith("\n") else ""
    return f"{ours}{gap}{theirs}"


def _meta(meta: Meta, data: bytes | None) -> Meta:
    """Who ruled there; counters of entries begin anew. Raises UsageError."""
    if data is None:
        return meta
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as failure:
        raise UsageError(f"its dynasty.json is no JSON: {failure}", hint=_WITHOUT) from None
    current = value.get("current") if isinstance(value, dict) else None
    if type(current) is not int or not 0 < current < limits.JSON_INTEGER_MOST:
        raise UsageError("its dynasty.json does not say who rules", hint=_WITHOUT)
    epithets = value.get("epithets")
    sessions = value.get("sessions_since_succession")
    named = epithets.items() if isinstance(epithets, dict) else ()
    return meta._replace(
        current=current,
        epithets={str(one): text for one, text in named if isinstance(text, str)},
        sessions_since_succession=sessions if type(sessions) is int and sessions >= 0 else 0,
    )
