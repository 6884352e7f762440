"""`savepoint status`: what the store holds, and what is still to be done."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import anchoring, layer3
from savepoint.cli.ledger import config as ledger_config
from savepoint.core import spelling
from savepoint.core.errors import DiskError
from savepoint.gitlayer.remote import remote_url
from savepoint.store import config, savepoints
from savepoint.store.keys import safekeeping
from savepoint.store.session import missed, pending
from savepoint.work import layer2, outbox

if TYPE_CHECKING:
    from collections.abc import Mapping

    from anchor_service.queue import Submission
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store
    from savepoint.store.session.missed import Fire
    from savepoint.work.jobs import Job
    from savepoint.work.outbox import Attempt


def status(
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Show what the store holds, and what is still to be done."""
    at = place.find(project, instance)
    now = int(time.time())
    saves = savepoints.records(at.paths).saves
    left = _missed(at)
    value: dict[str, Json] = {
        "store": at.store.id,
        "path": at.store.path,
        "instance": at.instance,
        "key": at.paths.slug[-8:],
        "remote": _remote(at),
        "ledger": ledger_config.name_of(at.config.ledger),
        "cost": layer3.cost(at.paths, at.config),
        "savepoints": len(saves),
        "bytes": bytes_below(at.store.path),
        "jobs": jobs(at, now),
        "pending": list(unfinished(at.store, now)),
        "missed_fires": len(left),
        "keys_backed_up": safekeeping.backed_up(at.store) is not None,
    }
    if as_json:
        from savepoint.cli.shapes.shape import shaped
        from savepoint.cli.shapes.store import Status

        terminal.document(shaped(Status, value))
    else:
        _print(at, value, saves, now)
    place.note_lost(at)
    others = "" if saves or instance else savepoints.told(savepoints.others(at.paths))
    if others:
        terminal.note(f"in this store are also {others}")
    place.note_absent(at)


def _missed(at: place.Place) -> list[Fire]:
    """Those that `init` would catch up; `doctor` tells of the others. They stand in a log for
    people: where that cannot be read, the rest is shown all the same.
    """
    try:
        fires = missed.of_store(place.home(), at.store, savepoints.instances(at.store))
    except DiskError as failure:
        terminal.note(f"whether fires were missed cannot be told: {failure.message}")
        return []
    return [one for one in fires if one.can_be_caught_up]


def _remote(at: place.Place) -> str | None:
    """Where savepoints are pushed to, without what may be a token."""
    return remote_url.parse(at.config.remote, "/").shown if at.config.remote else None


def jobs(at: place.Place, now: int) -> list[Json]:
    """What is owed, and what became of the last attempt at it."""
    around = place.around()
    kinds = (*layer2.KINDS, anchoring.NAME)
    witnesses = [kind for kind in anchoring.all_kinds() if kind.name in kinds]
    owed = [job for kind in witnesses for job in kind.owed(at.store, around)]
    under_way = layer3.open_rows(at.store, at.config) if at.config.ledger else {}
    return [
        {
            "instance": job.key,
            "seq": job.seq,
            "kind": job.kind,
            "state": _state(job, attempt, under_way),
            "age_seconds": max(0, now - job.since),
            "error": attempt.error if attempt else None,
            "hint": (attempt and layer3.what_to_do(attempt.name)) or None,
        }
        for job, attempt in zip(owed, outbox.attempts(at.store, owed), strict=True)
    ]


def whose(one: Mapping[str, Json], key: str) -> str:
    """Of which instance a job is, where it is not that with this start of a key."""
    slug = str(one["instance"])
    return "" if slug.endswith(key) else f" of {slug}"


def _state(job: Job, attempt: Attempt | None, under_way: dict[str, Submission]) -> str:
    if job.kind == anchoring.NAME:
        return layer3.state(under_way.get(job.key), attempt)
    if job.kind == "commit":
        return layer2.QUEUED_FOR_COMMIT
    return layer2.word_of(attempt.name if attempt else "")


def unfinished(store: Store, now: int) -> list[dict[str, Json]]:
    """Fires that were not served to their end, the oldest first; not those that are being served
    right now.
    """
    found: list[tuple[int, dict[str, Json]]] = []
    for key in pending.keys(store):
        note = pending.load(store, key)
        if note is not None and _is_at_work(store, key):
            continue
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


def _is_at_work(store: Store, key: str) -> bool:
    from savepoint import save

    try:
        return save.is_at_work(store, key)
    except DiskError:  # a store that only reads: nobody is at work in it
        return False


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


def _print(at: place.Place, value: dict[str, Any], saves: list[Record], now: int) -> None:
    terminal.say(f"{at.title} in {at.folder}")
    last = ""
    if saves:
        ago = terminal.span(now - saves[-1].timestamp)
        last = f", the newest is {saves[-1].seq}, made {ago} ago"
    terminal.say(f"  savepoints  {len(saves)}{last}")
    terminal.say(f"  on disk     {terminal.size(int(str(value['bytes'])))} in {at.store.path}")
    # Only of a savepoint that git and the ledger hold by its hash: nothing may be owed only since
    # the index was cut, and does not know what it lost.
    for line in _git_lines(value, is_done=_is_committed(at, saves)):
        terminal.say(f"  git         {line}")
    for line in _ledger_lines(value, is_done=_is_anchored(at, saves)):
        terminal.say(f"  ledger      {line}")
    for one in unfinished(at.store, now):
        age = terminal.span(now - spelling.time_seconds(str(one["since"])))
        terminal.say(f"  pending     session {one['session_id']}, for {age}: {one['reason']}")
    if value["missed_fires"]:
        count = terminal.counted(value["missed_fires"], "session")
        terminal.say(f"  missed      {count}: run `savepoint init`")
    if not value["keys_backed_up"]:
        terminal.note(place.KEYS_NOTE)


def _is_committed(at: place.Place, saves: list[Record]) -> bool:
    found = layer2.layer2(at.paths, saves[-1:], place.around()).values()
    return any(one.status in (layer2.COMMITTED, layer2.PUSHED) for one in found)


def _is_anchored(at: place.Place, saves: list[Record]) -> bool:
    found = layer3.layer3(at.paths, at.config, saves[-1:]).values()
    return any(one.status == layer3.VERIFIED for one in found)


def _git_lines(value: dict[str, Any], *, is_done: bool) -> list[str]:
    """Where savepoints are pushed to, and what is owed to git."""
    remote = value["remote"]
    where = str(remote) if remote else "no remote: `savepoint config remote URL`"
    owed = _owed(value, layer2.KINDS)
    if is_done and not owed:
        where += ": all pushed" if remote else "; all committed here"
    return [where, *owed]


def _ledger_lines(value: dict[str, Any], *, is_done: bool) -> list[str]:
    """Where entries are anchored, what that costs, and what is owed to the ledger."""
    if value["ledger"] is None:
        return ["OFF: `savepoint config ledger NAME` chooses one"]
    owed = _owed(value, (anchoring.NAME,))
    done = ": all anchored" if is_done and not owed else ""
    if value["ledger"] == config.EMBEDDED:  # what it takes is no money
        where = f"{config.EMBEDDED}{done or ':'}{', but' if done else ''} no independent witness"
        return [f"{where}; `savepoint config ledger devnet` would be one", *owed]
    cost = value["cost"]
    if cost["next"] is None:
        following = "the first entry pays rent too: `savepoint ledger status`"
    else:
        following = f"the next entry costs {cost['next']}"
    spent = f"{cost['spent']} lamports spent; {following}"
    return [f"{value['ledger']}{done}", spent, *owed]


def _owed(value: dict[str, Any], kinds: tuple[str, ...]) -> list[str]:
    """A line for all instances that are owed the same, and below it what to do."""
    alike: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for one in value["jobs"]:
        if one["kind"] in kinds:
            key = one["state"], one["error"] or "", one["hint"] or ""
            alike.setdefault(key, []).append(one)
    told = []
    for (state, error, hint), found in alike.items():
        age = terminal.span(max(one["age_seconds"] for one in found))
        upto = ", ".join(f"up to {one['seq']}{whose(one, value['key'])}" for one in found)
        line = f"{state} {upto}, for {age}"
        told.append(f"{line}: {error}" if error else line)
        if error and hint:
            told.append(f"{terminal.arrow()} {hint}")
    return told
