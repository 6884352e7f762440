"""What a resurrection shows: its steps as they happen, and the specification's report."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import typer

from savepoint.cli import terminal
from savepoint.cli.resurrect import open_items
from savepoint.cli.succession import dynasty
from savepoint.core import spelling
from savepoint.core.errors import OutputExistsError
from savepoint.core.spelling import Instance

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.strict_json import Json
    from savepoint.resurrect.admission import Step
    from savepoint.store.layout import Store

    Tell = Callable[[Step], None]

_WIDTH = 56  # of the specification's lines
_GOOD = {
    "VERIFIED",
    "BLOCKCHAIN_VERIFIED",
    "GITHUB_VERIFIED",
    "CONSCIOUSNESS_LOADED",
    "INTEGRITY_VERIFIED",
    "CONSCIOUSNESS_CONTINUITY_MAINTAINED",
    "PARTS_RESTORED",
}


def steps(*, as_json: bool) -> Tell:
    """Prints each step when it has been taken; nothing with --json."""
    from savepoint.resurrect.admission import TITLES

    def tell(step: Step) -> None:
        if not as_json:
            colour = "green" if step.status in _GOOD else "yellow"
            terminal.say(f"Step {step.number}: {TITLES[step.number]}: {step.text}", colour)

    return tell


def tell(report: dict[str, Any], store: Store, *, as_json: bool) -> None:
    """The report, for a person or as data, with what threads owe where a successor goes on."""
    goes_on = bool(report["instance"])
    report = {
        **report,
        "open_items": open_items.listed(store) if goes_on else [],
        "dynasty": dynasty.reigns(store) if goes_on else [],
    }
    if as_json:
        from savepoint.cli.shapes.resurrection import Resurrected
        from savepoint.cli.shapes.shape import shaped

        terminal.document(shaped(Resurrected, report))
    else:
        _print(report)
    _notes(report)
    from savepoint.resurrect import arrival

    if any(one["reason"].startswith(arrival.STAYS_OUT) for one in report["left_out"]):
        raise typer.Exit(OutputExistsError.exit_code)


def _print(report: dict[str, Any]) -> None:
    rule = ("─" if terminal.speaks("─") else "-") * _WIDTH
    saved, back = report["savepoint"], report["recovered"]
    who = f"{report['instance']} (key {report['key']})" if report["instance"] else "No successor"
    terminal.say(rule)
    terminal.say(f"{who} - Instance Resurrection Report")
    terminal.say()
    terminal.say(f"Previous instance: {report['previous_instance']} (key {report['previous_key']})")
    terminal.say(
        f"Last savepoint: {saved['timestamp']} ({_age(saved['timestamp'])}), {_name(saved)}"
    )
    terminal.say(
        f"Context recovered: {terminal.size(back['bytes'])} "
        f"({terminal.counted(back['messages'], 'message')}, "
        f"{terminal.counted(back['files'], 'file')})"
    )
    terminal.say(f"Consciousness gap: {_gap(report)}")
    terminal.say(f"Blockchain proof: {_chain(report['proofs'])}")
    terminal.say(f"GitHub backup: {_proof(report['proofs']['git'], 'GITHUB_VERIFIED')}")
    terminal.say(f"Integrity: {_integrity(report['proofs']['integrity'])}")
    terminal.say()
    _places(report)
    for one in report["dynasty"]:
        held = "1 entry" if one["entries"] == 1 else f"{one['entries']} entries"
        terminal.say(f"Memory: {held} of {one['ruler']} on {one['branch']} in place")
    for one in report["open_items"]:
        terminal.say(f"Open: {one['item']} of {one['title']}: {one['text']}")
    if report["instance"]:
        terminal.say("Ready to resume work.")
    terminal.say(rule)


def _name(saved: dict[str, Any]) -> str:
    return f"savepoint {saved['seq']}, {saved['snapshot_hash'][:19]}"


def _age(timestamp: str) -> str:
    return f"{terminal.span(time.time() - spelling.time_seconds(timestamp))} ago"


def _gap(report: dict[str, Any]) -> str:
    count = terminal.counted(report["gap_messages"], "message")
    after, hidden = report["gap"]["after_savepoint"], report["gap"]["not_shown"]
    if after is None:
        return f"{count} known of; the live transcript is gone, and what came after with it"
    if not report["gap_messages"]:
        return f"{count} (continuous)"
    told = [f"{after} after the savepoint"] if after else []
    if hidden:
        told.append(f"{hidden} that the client will not show")
    return f"{count} ({', '.join(told)})"


def _tick() -> str:
    return "✓" if terminal.speaks("✓") else "+"


def _chain(proofs: dict[str, Any]) -> str:
    if not proofs["chain"].startswith("BLOCKCHAIN_VERIFIED"):
        return str(proofs["chain"])
    return f"Verified {_tick()}" if proofs["independent"] else "consistent, not independent"


def _proof(text: str, good: str) -> str:
    return f"Verified {_tick()}" if text.startswith(good) else text


def _integrity(text: str) -> str:
    if not text.startswith("INTEGRITY_VERIFIED"):
        return text
    detail = text.partition(": ")[2]
    return f"All checkpoints passed {_tick()}" + (f" ({detail})" if detail else "")


def _places(report: dict[str, Any]) -> None:
    """Where everything is, and how the agent goes on."""
    session, paths = report["session"], report["paths"]
    if paths is not None:
        terminal.say(f"Paths: {paths['before']} {terminal.arrow()} {paths['now']}")
    if report["folder"]:
        terminal.say(f"Files: {report['folder']}")
        _changes(os.path.join(report["folder"], "changes"), in_tree=bool(report["worktree"]))
    if report["applied_to"]:
        count = _count(os.path.join(report["folder"], "files"), but="outside")
        loaded = terminal.counted(count, "loaded file")
        terminal.say(f"Applied to: {report['applied_to']} ({loaded})")
    if report["worktree"]:
        terminal.say(f"Worktree: {report['worktree']}")
    if session is not None:
        terminal.say(f"Session: {session['file']}")
        first = session.get("first_message", 1)  # a report that waited for its files may be older
        if first > 1:
            terminal.say(f"Messages: from number {first} on, the prompt that the first one answers")
        if session["shown"] < session["messages"]:
            shown = f"{session['shown']} of {terminal.counted(session['messages'], 'message')}"
            before = session["messages"] - session["shown"] - report["gap"]["not_shown"]
            more = "; `--full` shows those before the last compaction" if before > 0 else ""
            terminal.say(f"Shown by the client: {shown}{more}")
        terminal.say(f"Continue: claude --resume {session['id']}")


def _changes(folder: str, *, in_tree: bool) -> None:
    """What was not committed, and how it comes back into a work tree."""
    count = _count(folder)
    if count:
        how = "" if in_tree else "; `--worktree DIR` puts them into a new worktree"
        told = terminal.counted(count, "uncommitted file")
        terminal.say(f"Changes: {told} in {folder}{how}")


def _count(folder: str, but: str = "") -> int:
    """Files below a folder; but: a folder in it that does not count."""
    count = 0
    for parent, folders, names in os.walk(folder):
        if parent == folder and but in folders:
            folders.remove(but)
        count += len(names)
    return count


def _notes(report: dict[str, Any]) -> None:
    """What else a person should know, beside the data."""
    for one in report["left_out"]:
        terminal.note(f"{one['path']} is not brought back: it {one['reason']}")
    if report["fuller"] is not None:
        before = Instance.parse(report["previous_instance"])
        slug = before.slug(bytes.fromhex(report["previous_key"]))
        terminal.note(
            f"savepoint {report['fuller']} of the same session holds more of the conversation, "
            "and no compaction came in between: "
            f"`savepoint resurrect {report['fuller']} --instance {slug}` brings that back"
        )
    sessions: dict[str, Json] = report["sessions"] or {}
    if len(sessions) > 1:
        told = ", ".join(f"{count} of {one}" for one, count in sessions.items())
        terminal.note(f"the transcript has records of several sessions: {told}")
    if report["session"] is not None:
        for what, count in report["session"]["repairs"].items():
            terminal.note(f"put right in the session that came back: {what}: {count}")
    for one in report["caveats"]:
        terminal.note(one)
    if report["unverified"]:
        terminal.note(f"allowed without being verified: {', '.join(report['unverified'])}")
