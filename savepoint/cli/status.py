"""`savepoint status`: what the store holds, and what is still to be done."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from savepoint.cli import options, place, terminal
from savepoint.core import spelling
from savepoint.store import missed, pending, savepoints

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store


def status(
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Show what the store holds, and what is still to be done."""
    at = place.find(project, instance)
    now = int(time.time())
    saves = savepoints.records(at.paths).saves
    fires = missed.of_store(place.home(), at.store, savepoints.instances(at.store))
    value: dict[str, Json] = {
        "store": at.store.id,
        "path": at.store.path,
        "instance": at.instance,
        "key": at.paths.slug[-8:],
        "remote": None,
        "ledger": None,
        "savepoints": len(saves),
        "bytes": bytes_below(at.store.path),
        "jobs": jobs(saves, now),
        "pending": list(unfinished(at.store, now)),
        "missed_fires": len(fires),
        "keys_backed_up": False,
    }
    if as_json:
        from savepoint.cli import shapes

        terminal.document(shapes.checked(shapes.Status, value))
    else:
        _print(at, value, saves, now)


def jobs(saves: list[Record], now: int) -> list[Json]:
    """What is queued: one entry for all commits, named by the newest, as old as the oldest."""
    if not saves:
        return []
    return [
        {
            "seq": saves[-1].seq,
            "kind": "commit",
            "state": "QUEUED_FOR_COMMIT",
            "age_seconds": max(0, now - saves[0].timestamp),
            "error": None,
        }
    ]


def unfinished(store: Store, now: int) -> list[dict[str, Json]]:
    """Fires that were not served to their end, the oldest first."""
    found: list[tuple[int, dict[str, Json]]] = []
    for key in pending.keys(store):
        note = pending.load(store, key)
        if note is None:  # ruins of a note; fsck names it, and no save needs it
            continue
        one: dict[str, Json] = {
            "session_id": key,
            "since": spelling.time_text(note.since),
            "age_seconds": max(0, now - note.since),
            "reason": note.reason,
            "drafts": len(pending.drafts(store, key)),
        }
        found.append((note.since, one))
    return [one for _, one in sorted(found, key=lambda pair: pair[0])]


def bytes_below(folder: str) -> int:
    """Bytes of all files below a folder; what goes away meanwhile does not count."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(parent, name)).st_size
            except OSError:
                continue
    return total


def _print(at: place.Place, value: dict[str, Json], saves: list[Record], now: int) -> None:
    terminal.say(f"{at.title} in {at.folder}")
    last = ""
    if saves:
        ago = terminal.span(now - saves[-1].timestamp)
        last = f", the newest is {saves[-1].seq}, made {ago} ago"
    terminal.say(f"  savepoints  {len(saves)}{last}")
    terminal.say(f"  on disk     {terminal.size(int(str(value['bytes'])))} in {at.store.path}")
    terminal.say("  git         OFF: not configured")
    terminal.say("  ledger      OFF: not configured")
    for one in unfinished(at.store, now):
        age = terminal.span(now - spelling.time_seconds(str(one["since"])))
        terminal.say(f"  pending     session {one['session_id']}, for {age}: {one['reason']}")
    if value["missed_fires"]:
        terminal.say(f"  missed      {value['missed_fires']} sessions: run `savepoint init`")
    terminal.note(place.KEYS_NOTE)
