"""What is in a savepoint, counted and named: as data, and told to a person from the same data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias

from savepoint.cli import terminal
from savepoint.cli.ledger import layer3
from savepoint.cli.view.folded import folded
from savepoint.core import limits, snapshot
from savepoint.store import config, savepoints
from savepoint.work import layer2

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.snapshot import StoredFile
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths, Store
    from savepoint.work.jobs import Surroundings

# A snapshot was held against its shape when it was parsed, so its members are used as they are.
Members: TypeAlias = "dict[str, Any]"


def of(
    paths: InstancePaths,
    one: Record,
    document: Members,
    stored: list[StoredFile],
    around: Surroundings,
) -> dict[str, Json]:
    """The document of `show --json`."""
    loaded = files(paths.store, document)
    git_layer = layer2.layer2(paths, [one], around)[one.seq]
    chain = layer3.layer3(paths, config.load(paths.store), [one])[one.seq]
    return {
        "savepoint": folded(one, git_layer, chain),
        "snapshot_path": os.path.join(paths.path, one.snapshot_file),
        "conversation": conversation(document, stored),
        "tokens": {
            "budget": document["session_token_budget"],
            "used": document["tokens_used_this_session"],
            "remaining": document["tokens_remaining"],
            "percent": document["context_utilization_percent"],
            "source": document["token_source"],
        },
        "loaded_files": {
            "stored": sum(entry["stored"] for entry in loaded),
            "not_stored": [
                {"path": entry["path"], "reason": entry["reason"]}
                for entry in loaded
                if not entry["stored"]
            ],
        },
        "session_state": document["session_state"],
        "session_current_bytes": _sizes(stored, "state"),
        "git": git(paths.store, document),
        "omitted": document["omitted"],
        "notes": document["notes"],
        "checkpoint_verification": document["checkpoint_verification"],
    }


def conversation(document: Members, stored: list[StoredFile]) -> dict[str, Json]:
    """The conversation's facts, without the segments that it is stored in."""
    history = document["conversation_history"]
    transcript = history["transcript"]
    beside = [one.bytes for one in stored if one.part == "companion"]
    return {
        **{name: value for name, value in history.items() if name not in _STORED},
        "transcript": transcript and {name: transcript[name] for name in ("path", "bytes", "root")},
        "companions": len(beside),
        "companion_bytes": sum(beside),
    }


def files(store: Store, document: Members) -> list[Members]:
    """The loaded files, and why those that are not stored are not."""
    loaded: Any = savepoints.listed(store, document, ("loaded_files",))
    return [{"path": path, **_bare(entry)} for path, entry in loaded.items()]


def changes(store: Store, document: Members) -> list[Members]:
    """The files that differ from the commit, in the order in which they are stored."""
    changed: Any = savepoints.listed(store, document, ("git_state", "changes", "files"))
    return [_bare(entry) for entry in changed]


def git(store: Store, document: Members) -> dict[str, Json]:
    """The repository's state, its changes without the segments that they are stored in."""
    state = document["git_state"]
    where = ("git_state", "changes")
    return {
        **state,
        "changes": {
            "files": list(changes(store, document)),
            "deleted": savepoints.listed(store, document, (*where, "deleted")),
            "excluded": savepoints.listed(store, document, (*where, "excluded")),
            "omitted": state["changes"]["omitted"],
        },
    }


def _path(path: Json) -> str:
    return os.fsdecode(snapshot.path_bytes(path))


def _bare(entry: Members) -> Members:
    bare = {name: value for name, value in entry.items() if name != "segments"}
    return {**bare, "stored": entry["segments"] is not None}


def _sizes(stored: list[StoredFile], part: str) -> int | None:
    found = [one.bytes for one in stored if one.part == part]
    return sum(found) if found else None


_STORED = ("transcript", "companions")


def tell(title: str, value: Members) -> None:
    """For a person: what is in it, and what is not."""
    one = value["savepoint"]
    terminal.say(f"Savepoint {one['seq']} of {title}")
    _line("snapshot", one["snapshot_hash"])
    _line("when", f"{one['timestamp']}, trigger {one['trigger']}")
    _line(
        "layers",
        f"{one['layer_1_status']}, {one['layer_2_status']}, layer 3 {one['layer_3_status']}",
    )
    _tell_conversation(value["conversation"])
    _tell_tokens(value["tokens"])
    loaded = value["loaded_files"]
    _line("files", f"{loaded['stored']} stored, {len(loaded['not_stored'])} only listed")
    _reasons(loaded["not_stored"])
    size = value["session_current_bytes"]
    _line(
        "state",
        "of the instance; the project has no session_current.json"
        if size is None
        else f"session_current.json, {terminal.size(size)}",
    )
    _tell_git(value["git"])
    checks = value["checkpoint_verification"]
    _line("checkpoint", ", ".join(f"{name} {_word(is_so)}" for name, is_so in checks.items()))
    for omitted in value["omitted"]:
        _line("omitted", f"{omitted['what']}: {omitted['reason']}")
    for note in value["notes"]:
        _line("note", note)


def tell_files(entries: list[Members]) -> None:
    """A table of loaded files, or of changes."""
    rows = []
    for one in entries:
        size = one.get("size", one.get("bytes"))
        what = one["known"] if "known" in one else one["kind"]
        rows.append(
            ["" if size is None else str(size), what, _path(one["path"]), one.get("reason") or ""]
        )
    terminal.table((">BYTES", "KNOWN", "PATH", "NOT STORED"), rows)


def _tell_conversation(told: Members) -> None:
    client = " ".join(filter(None, (told["agent"], told["client_version"])))
    _line("session", f"{told['session_id'] or 'unknown'} ({client})")
    transcript = told["transcript"]
    if transcript is None:
        _line("conversation", "none")
        return
    count, size = told["message_count"], terminal.size(transcript["bytes"])
    _line(
        "conversation",
        f"{terminal.counted(count, 'message')} in {terminal.counted(told['records'], 'line')}, "
        f"{size}, {terminal.counted(told['compactions'], 'compaction')}",
    )
    _line("", transcript["path"])
    if told["companions"]:
        beside = terminal.counted(told["companions"], "file")
        _line("", f"and {beside} beside it, {terminal.size(told['companion_bytes'])}")


def _tell_tokens(tokens: Members) -> None:
    if tokens["used"] is None:
        _line("tokens", f"unknown ({tokens['source']})")
        return
    budget = "" if tokens["budget"] is None else f" of {tokens['budget']} ({tokens['percent']} %)"
    _line("tokens", f"{tokens['used']}{budget} ({tokens['source']})")


def _tell_git(told: Members) -> None:
    commit, branch = told["current_commit"], told["branch"]
    changed = told["changes"]
    if commit is None and branch is None:
        _line("git", f"{told['status']}; no commit")
    else:
        _line("git", f"{branch or 'no branch'} at {commit or 'no commit'}, {told['status']}")
    _line(
        "",
        f"last push {told['last_push']}" + (f", {told['operation']}" if told["operation"] else ""),
    )
    size = sum(one["bytes"] for one in changed["files"])
    counts = f"{terminal.counted(len(changed['files']), 'file')} ({terminal.size(size)})"
    left_out = changed["excluded"]
    _line("changes", f"{counts}, {len(changed['deleted'])} deleted, {len(left_out)} left out")
    _reasons(left_out)


def _reasons(entries: list[Members]) -> None:
    for one in entries[: limits.LISTED]:
        _line("", f"  {_path(one['path'])}: {one['reason']}")
    if len(entries) > limits.LISTED:
        _line("", f"  and {len(entries) - limits.LISTED} more")


def _line(name: str, text: str) -> None:
    terminal.say(f"  {name:13} {text}")


def _word(value: bool | str) -> str:
    if isinstance(value, str):
        return value
    return "yes" if value else "no"
