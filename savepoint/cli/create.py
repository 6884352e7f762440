"""`savepoint create`: save the state of a session now."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import layer3
from savepoint.cli.view.folded import folded
from savepoint.core.errors import DiskError, SavepointError
from savepoint.work import follow, layer2
from savepoint.work.layer2 import Layer2

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.capture.request import Request
    from savepoint.cli.ledger.layer3 import Layer3
    from savepoint.core.strict_json import Json
    from savepoint.save import Saved

DONE = {layer2.COMMITTED, layer2.PUSHED}  # nothing that is configured is pending
FINE = DONE | {layer2.QUEUED_FOR_PUSH}  # a queued push is normal
_FAILED = 1
_NEWEST = "that of the newest session"


def create(
    transcript: Annotated[
        str, options.written("--transcript", "FILE", "The session's file.", _NEWEST)
    ] = "",
    session: Annotated[str, options.written("--session", "ID", "The session's id.")] = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Save the state of a session now. There is always a savepoint, also if nothing is new.

    Exits with 0 where it is saved and committed: a push that waits for its remote is tried again by
    itself. Exits with 1 where it is saved, but the commit failed or the push was refused.
    """
    at = place.find(project)
    asked = place.request(at, "manual")._replace(
        transcript=os.path.abspath(transcript) if transcript else "",
        session_id=session,
        even_if_unchanged=True,
    )
    saved, git = save_now(asked)
    chain = layer_3(saved, at)
    with told(saved, at):
        if as_json:
            from savepoint.cli.shapes.savepoints import Created
            from savepoint.cli.shapes.shape import shaped

            terminal.document(shaped(Created, created(saved, git, chain)))
        else:
            print_layers(saved, git, chain)
            named = place.numbered(saved.paths, saved.record.seq, at.paths.slug)
            terminal.say(f"This is {named}")
    finish_pending(asked, at)
    if git.status not in FINE:
        raise typer.Exit(_FAILED)


def save_now(asked: Request) -> tuple[Saved, Layer2]:
    """Save, and what became of it in git: a worker is started for what is owed, and the push waited
    for as long as a save may take. Shows on a terminal that it goes on. Raises SavepointError.
    """
    from savepoint.save import save_consciousness_state

    begun = time.monotonic()
    with terminal.busy("saving"):
        saved = save_consciousness_state(asked)
    assert saved is not None  # noqa: S101  # a person asked, so there is always one
    with terminal.busy("pushing"):
        told = follow.follow(saved, place.around(), begun, wait=True)
        status, error = told or layer2.status_of(saved.paths, saved.record, place.around())
    return saved, Layer2(status, saved.commit, error)


@contextmanager
def told(saved: Saved, at: place.Place) -> Iterator[None]:
    """Around the report on a savepoint: what else there is to say about it, and that it stands if
    nothing can be said. Raises DiskError.
    """
    try:
        for warning in saved.warnings:
            terminal.note(warning)
        if saved.paths != at.paths:
            whose = place.title(saved.paths)
            terminal.note(
                f"saved as savepoint {saved.record.seq} of {whose}, since the session belongs to "
                f"it; the current instance, of new sessions, is {at.title}"
            )
        for oddity in saved.notes:
            terminal.note(f"the conversation: {oddity}")
        yield
        terminal.flush()
    except DiskError as failure:
        raise failure.behind(saved.record.seq) from failure


def finish_pending(asked: Request, at: place.Place) -> None:
    """Finish what earlier fires left. A failure is told; it is not this savepoint's."""
    from savepoint import save

    try:
        finished = save.finish_pending(asked)
    except SavepointError as failure:
        terminal.note(f"an earlier save is still pending: {failure.message}")
        return
    for one in finished:
        follow.behind(one, asked)
        named = place.numbered(one.paths, one.record.seq, at.paths.slug)
        terminal.note(f"{named} finishes what an earlier fire left pending")


def layer_3(saved: Saved, at: place.Place) -> Layer3:
    """What has become of it on the ledger by now: nothing is waited for."""
    one = saved.record
    return layer3.layer3(saved.paths, at.config, [one])[one.seq]


def created(saved: Saved, git: Layer2, chain: Layer3) -> dict[str, Json]:
    """The document of `create --json`."""
    shown = folded(saved.record, git, chain)
    return {
        "status": "SAVEPOINT_CREATED",
        **shown,
        "tokens_used": shown["tokens_used_this_session"],
    }


def print_layers(saved: Saved, git: Layer2, chain: Layer3) -> None:
    """The specification's three lines, only what is true of them."""
    body = saved.record.body
    good, not_yet = ("✓", "·") if terminal.speaks("✓·") else ("+", "-")
    terminal.say(f"{good} Layer 1: Local savepoint created", "green")
    terminal.say(f"  Hash: {body['snapshot_hash']}")
    terminal.say(f"  Size: {body['snapshot_size_bytes']} bytes")
    size = saved.conversation_bytes
    terminal.say(f"  Conversation: {'none' if size is None else f'{size} bytes'}")
    terminal.say(f"  Location: {os.path.join(saved.paths.path, saved.record.snapshot_file)}")
    mark, colour = (good, "green") if git.status in DONE else (not_yet, "")
    terminal.say(f"{mark} Layer 2: {git.status}{f': {git.error}' if git.error else ''}", colour)
    if git.commit:
        terminal.say(f"  Commit: {git.commit}")
    _print_chain(chain, good if chain.status == layer3.VERIFIED else not_yet)
    if not body["consciousness_preserved"]:
        terminal.note(
            f"something could not be saved; `savepoint show {saved.record.seq}` says what and why"
        )


def _print_chain(chain: Layer3, mark: str) -> None:
    if chain.task is None:
        terminal.say(f"{mark} Layer 3: {chain.status}: no ledger is configured")
        return
    colour = "green" if chain.status == layer3.VERIFIED else ""
    error = f": {chain.error}" if chain.error else ""
    terminal.say(f"{mark} Layer 3: {chain.status} ({chain.ledger}){error}", colour)
    terminal.say(f"  Background task ID: {chain.task}")
    if chain.status not in layer3.DONE:
        terminal.say("  Status: Will complete asynchronously")
