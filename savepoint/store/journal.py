"""Logs for people: ids, counts and paths, never content; never evidence, never synced."""

from __future__ import annotations

import os

from savepoint.core import spelling
from savepoint.core.strict_json import Json, dump
from savepoint.store import durable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.store.layout import Home, InstancePaths

NOTHING_NAMED = "stdin names no session, no transcript and no folder: nothing is saved"
NO_EVENT = "there is no event "  # in hook.log, before a name that no agent has
LINE_CHARS = 2000  # characters of one line; the rest is cut


def continuity(paths: InstancePaths, now: int, text: str) -> None:
    """One line an event in logs/consciousness_continuity.log. Raises DiskError."""
    durable.append_log(paths.continuity_log, _line(now, text))


def saved(paths: InstancePaths, now: int, one: Record) -> None:
    """A savepoint was acknowledged: a line in both logs. Raises DiskError."""
    event: dict[str, Json] = {
        "seq": one.seq,
        "timestamp": spelling.time_text(now),
        "event": "SAVED_LOCALLY",
        "snapshot_hash": one.body["snapshot_hash"],
    }
    durable.append_log(paths.status_log, dump(event) + b"\n")
    whole = "whole" if one.body["consciousness_preserved"] else "with omissions"
    continuity(paths, now, f"savepoint {one.seq} ({one.body['trigger']}) {whole}")


def became(paths: InstancePaths, now: int, seq: int, event: str, error: str) -> None:
    """What became of a savepoint since: a line in both logs. Raises DiskError."""
    told: dict[str, Json] = {"seq": seq, "timestamp": spelling.time_text(now), "event": event}
    if error:
        told["error"] = printable(error)
    durable.append_log(paths.status_log, dump(told) + b"\n")
    continuity(paths, now, f"savepoint {seq}: {event}{': ' if error else ''}{error}")


def anchored(paths: InstancePaths, now: int, seq: int, where: dict[str, Json]) -> None:
    """A savepoint is on a ledger, finalized: a line in both logs. Raises DiskError."""
    event = "BLOCKCHAIN_VERIFIED"
    told: dict[str, Json] = {"seq": seq, "timestamp": spelling.time_text(now), "event": event}
    durable.append_log(paths.status_log, dump({**told, **where}) + b"\n")
    continuity(paths, now, f"savepoint {seq}: {event} on {where['ledger']}, slot {where['slot']}")


def hook(home: Home, now: int, members: dict[str, Json]) -> None:
    """A fire that found no store: `init` catches it up, also if it is what makes the home.

    Raises DiskError.
    """
    if os.path.isdir(os.path.dirname(home.path)):
        durable.make_directories(home.path)
    stamped: dict[str, Json] = {"timestamp": spelling.time_text(now), **members}
    durable.append_log(home.hook_log, dump(stamped) + b"\n")


def printable(text: str) -> str:
    """`text` on one line, for a terminal that it does not control: escapes are what a hostile
    payload would put there.
    """
    if text.isprintable():
        return text[:LINE_CHARS]
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)[:LINE_CHARS]


def _line(now: int, text: str) -> bytes:
    line = f"{spelling.time_text(now)} {printable(text)}\n"
    return line.encode("utf-8", "backslashreplace")
