"""`savepoint resurrect`: a verified savepoint becomes a successor that goes on."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Annotated

import typer

from savepoint.capture import surroundings
from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import chain
from savepoint.cli.resurrect import choosing, tree
from savepoint.cli.resurrect import report as resurrection_report
from savepoint.cli.view.show import Part as Member
from savepoint.core import limits
from savepoint.core.errors import (
    DiskError,
    MalformedError,
    OutputExistsError,
    SavepointError,
    UsageError,
)
from savepoint.gitlayer.remote import remote_url
from savepoint.store import savepoints
from savepoint.store.fsck import garbage
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from savepoint.core.bootstrap_document import Holder
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.core.verdicts import Report
    from savepoint.resurrect.selection import Part
    from savepoint.resurrect.steps import Asked, Done
    from savepoint.resurrect.successor import Parent


def resurrect(
    selector: options.Selector = "latest",
    *,
    session: Annotated[
        str,
        options.value("--session", "ID", "The newest of this session: its id, or 8 digits of it."),
    ] = "",
    only: Annotated[
        Member | None,
        typer.Option(
            "--only", help="One part, and no successor is born for it.", show_default=False
        ),
    ] = None,
    full: options.Full = False,
    thread: Annotated[
        str, options.value("--thread", "ID", "A subagent's conversation, alone.")
    ] = "",
    messages: Annotated[
        str,
        options.value(
            "--messages",
            "FIRST-LAST",
            "Only these messages, counted from 1, from the prompt of the first on.",
        ),
    ] = "",
    since: Annotated[str, options.value("--since", "TIME", "Only messages from then on.")] = "",
    until: Annotated[str, options.value("--until", "TIME", "Only messages up to then.")] = "",
    output: options.OutputFolder = "",
    apply: Annotated[
        bool, typer.Option("--apply", help="Put the loaded files over the project, too.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="With --apply: over files that differ; copies are kept.")
    ] = False,
    worktree: Annotated[
        str,
        options.value(
            "--worktree", "DIR", "A new git worktree at the savepoint's commit, with its changes."
        ),
    ] = "",
    allow_unverified: options.AllowUnverified = False,
    offline: options.Offline = False,
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Bring a savepoint back as a new session, with a successor."""
    if session and selector != "latest":
        raise UsageError("a selector and --session exclude each other")
    part = _part(full, thread, messages, since, until)
    only = _only(part, only, apply=apply, force=force)
    at = choosing.where(project, instance, offline=offline)
    garbage.sweep(place.home(), time.time())
    tell = resurrection_report.steps(as_json=as_json)
    left = _finished(at)
    if left is not None:
        resurrection_report.tell(left, at.store, as_json=as_json)
        return
    at, one = choosing.meant(at, selector, session, instance)
    if not offline:
        bring(at, one)
    asked = request(at, one, only, output)._replace(
        part=part, apply=apply, force=force, allow_unverified=allow_unverified
    )
    asked = asked._replace(caveats=unseen(asked))
    planned = None
    if worktree:
        planned = tree.staging(at, savepoints.open_snapshot(at.paths, one).document, worktree)
        told = f"the session belongs to {at.project}: the agent finds it there, not in {worktree}"
        asked = asked._replace(caveats=(*asked.caveats, told))
    report = verified(at, one, offline=offline)
    try:
        done = _run(at, parent_of(at, one, report), report, asked, tell, planned, offline=offline)
    finally:
        if planned is not None:
            planned.settle()
    afterwards(at, done)
    resurrection_report.tell(done.report, at.store, as_json=as_json)


def _only(part: Part, only: Member | None, *, apply: bool, force: bool) -> Member | None:
    """Which part comes back alone, if one does. Raises UsageError for what excludes each other."""
    if force and not apply:
        raise UsageError("--force goes with --apply")
    if apply and only not in (None, "files"):
        raise UsageError("--apply puts files over the project: it goes with --only files")
    if not (part.thread or part.span):
        return only
    if only not in (None, "conversation"):
        raise UsageError("a thread and a span are of the conversation", hint="leave out --only")
    return "conversation"


def _part(full: bool, thread: str, messages: str, since: str, until: str) -> Part:
    """What of the conversation is asked for. Raises UsageError."""
    from savepoint.resurrect.selection import Part, Span

    if not (messages or since or until):
        return Part(full, thread)
    if full:
        raise UsageError("--full and a span exclude each other")
    first, last = _numbers(messages) if messages else (None, None)
    times = [savepoints.moment(text) if text else None for text in (since, until)]
    return Part(thread=thread, span=Span(first, last, *times))


def _numbers(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not (first.isdigit() and last.isdigit() and 0 < int(first) <= int(last)):
        raise UsageError(f"{text} is no span of messages", hint="write it like --messages 3-8")
    return int(first), int(last)


def bring(at: place.Place, one: Record) -> None:
    """A savepoint that was left at the remote when the store was fetched is fetched now."""
    from savepoint.gitlayer.remote import shallow
    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.gitlayer.witness import witness
    from savepoint.store import border

    there = os.path.lexists(os.path.join(at.paths.path, one.snapshot_file))
    if there or one.seq >= border.load(at.paths) or at.config.remote is None:
        return
    remote = Remote.of(place.repository(at.store), remote_url.parse(at.config.remote, "/"))
    with terminal.busy("fetching"):
        shallow.fetch_older(remote, at.paths, one, witness.identities_of(at.store))


def request(at: place.Place, one: Record, only: Member | None, output: str) -> Asked:
    """What is to come back: everything, or one part alone; the rest as it is without options."""
    from savepoint.resurrect.selection import Part
    from savepoint.resurrect.steps import ALL, Asked

    return Asked(
        parts=frozenset({only}) if only else ALL,
        whole=only is None,
        part=Part(),
        allow_unverified=False,
        config_dir=surroundings.config_dir(os.environ),
        target=at.project,
        output=place.new_folder(output) if output else _own_folder(at, one),
        apply=False,
        force=False,
        now=int(time.time()),
    )


def unseen(asked: Asked) -> tuple[str, ...]:
    """Why the conversation comes back as files alone: the client ends the name of a folder with a
    long path in a way that only itself knows.
    """
    from savepoint.resurrect import native

    there = native.place(asked.config_dir, asked.target)
    if "conversation" not in asked.parts or there is not None:
        return ()
    told = (
        f"no session: the path {asked.target} is so long that only the agent knows where it keeps "
        "sessions of it; start it there once, then run `savepoint resurrect`. The conversation is "
        "among the files"
    )
    return (told,)


def _own_folder(at: place.Place, one: Record) -> tuple[str, str]:
    """One in the store, of a name that no other run has."""
    from savepoint.store import durable

    durable.make_directories(at.store.restored)
    name = f"{at.paths.slug}-{one.seq}-{os.urandom(4).hex()}"
    return os.path.realpath(at.store.restored), name


def verified(at: place.Place, one: Record, *, offline: bool) -> Report:
    """What all witnesses say of the savepoint."""
    from savepoint.gitlayer.witness import witness
    from savepoint.store.witness.witness import verify_local

    repo = place.repository(at.store)
    with terminal.progress("verifying") as progress:
        report = verify_local(at.paths, lambda _: [one], progress)
        report = witness.verify(repo, at.paths, report, witness.Look(offline=offline))
    return chain.verify(at.config, repo, at.paths, report, chain.Wanted(offline=offline))


def parent_of(at: place.Place, one: Record, report: Report) -> Parent:
    """What a successor is born of: the savepoint, with its commit as git's witness found it."""
    from savepoint.resurrect.successor import Parent

    (checked,) = report.savepoints
    commit = checked.witnesses["git"].members.get("commit")
    return Parent(at.paths, one, str(commit) if commit else None)


def _run(
    at: place.Place,
    parent: Parent,
    report: Report,
    asked: Asked,
    tell: resurrection_report.Tell,
    planned: tree.Staging | None,
    *,
    offline: bool,
) -> Done:
    from savepoint.resurrect.steps import Resurrection

    remote = at.config.remote
    shown = remote_url.parse(remote, "/").shown if remote else None
    known = _known(at, parent.savepoint, offline=offline or not asked.whole)
    with Resurrection(parent, report, asked, known, tell) as going:
        return going.run(shown, worktree=planned.make if planned else None)


def _known(at: place.Place, one: Record, *, offline: bool) -> list[Holder]:
    """Who holds which number, as far as the store and the remote know."""
    from savepoint.core.bootstrap_document import Holder
    from savepoint.core.spelling import Instance
    from savepoint.gitlayer.remote import glance
    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.resurrect import successor

    known = successor.holders(at.store)
    if at.config.remote is None or offline:
        return known
    base = Instance.parse(one.instance)
    own = {paths.slug for paths in savepoints.instances(at.store)}
    remote = Remote.of(place.repository(at.store), remote_url.parse(at.config.remote, "/"))
    try:
        tips = {slug: tip for slug, tip in remote.tips().items() if slug not in own}
        later = {slug: t for slug, t in tips.items() if glance.same_name(slug, base) > base.number}
        births = glance.births(remote, at.store.scratch, later)
    except SavepointError as failure:
        terminal.note(f"a sibling may have the same number: {failure.message}")
        return known
    return known + [Holder(born.instance, born.signer) for born in births.values()]


def _finished(at: place.Place) -> dict[str, Json] | None:
    """What an earlier run left is finished first; what came of the last one, if there was any.
    What cannot be finished keeps nothing else from being done.
    """
    from savepoint.resurrect import arrival

    report: dict[str, Json] | None = None
    for paths in arrival.waiting(at.store):
        with Lock(at.store.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
            if not os.path.lexists(paths.arrival):
                continue  # its own run was at it
            try:
                report = arrival.finish(paths).report
            except (DiskError, MalformedError, OutputExistsError) as failure:
                arrival.give_up(paths)
                terminal.note(
                    f"what an earlier run began for {place.title(paths)} cannot be finished, and "
                    f"is given up: {failure.message}"
                )
                continue
        terminal.note(f"this finishes what an earlier run began: {place.title(paths)}")
    return report


def afterwards(at: place.Place, done: Done) -> None:
    """The successor's birth is committed; a worker does what else is owed."""
    from savepoint.gitlayer.commits.commit import commit
    from savepoint.work import start

    if done.born is None:
        return
    around = place.around()
    try:
        until = time.monotonic() + limits.COMMIT_SECONDS
        commit(done.born.paths, around.environment, until)
    except SavepointError as failure:
        terminal.note(f"the birth is not committed yet: {failure.message}")
    start.start(at.store, around)
