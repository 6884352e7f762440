"""The six steps: from a savepoint that its witnesses vouch for to a successor that goes on.

Nothing of the savepoint is written but under temporary names before steps 1 to 5 have passed; then
each thing appears by a rename (arrival.py).
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Self

from savepoint.capture.agents import claude_places
from savepoint.core import limits, snapshot, spelling
from savepoint.core.errors import (
    MalformedError,
    TamperedError,
    UnsupportedFormatError,
    UnverifiableError,
)
from savepoint.core.named import NamedTuple
from savepoint.resurrect import (
    admission,
    apply,
    arrival,
    folder,
    gap,
    lineage,
    members,
    moves,
    native,
    remember,
    successor,
)
from savepoint.resurrect.admission import Admission, Step
from savepoint.resurrect.apply import Apply
from savepoint.resurrect.arrival import Arrival
from savepoint.store import journal, savepoints
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from savepoint.core.bootstrap_document import Holder
    from savepoint.core.segments import Segment
    from savepoint.core.snapshot import StoredFile
    from savepoint.core.strict_json import Json
    from savepoint.core.verdicts import Report
    from savepoint.resurrect.folder import Staged
    from savepoint.resurrect.moves import Move
    from savepoint.resurrect.native import Native
    from savepoint.resurrect.selection import Part
    from savepoint.resurrect.successor import Newborn, Parent

    Tell = Callable[[Step], None]

ALL = frozenset({"conversation", "files", "state", "git", "changes", "memory"})


class Asked(NamedTuple):
    """What is to come back, and where."""

    parts: frozenset[str]  # of ALL
    whole: bool  # a successor goes on; else parts of a savepoint are only looked out
    part: Part  # of the conversation
    allow_unverified: bool
    config_dir: str  # of the agent
    target: str  # real path of the project's folder, in which the agent goes on
    output: tuple[str, str]  # real path of a folder, and the name of the one to make in it
    apply: bool  # loaded files go over the project
    force: bool  # also over files that differ
    now: int  # Unix seconds
    caveats: tuple[str, ...] = ()  # what cannot be excluded


class Done(NamedTuple):
    """What came of it: `resurrect --json`, and the successor if one was born."""

    report: dict[str, Json]
    born: Newborn | None


class Resurrection:
    """One savepoint on its way back. Use as a context manager: what was staged and not put into its
    place is removed.
    """

    def __init__(
        self, parent: Parent, report: Report, asked: Asked, known: Iterable[Holder], tell: Tell
    ) -> None:
        """report: of the savepoint alone, by all witnesses. known: who holds which number."""
        self._parent = parent
        self._store = parent.paths.store
        self._asked = asked
        self._known = list(known)
        self._tell = tell
        self._admission = Admission(report, allow_unverified=asked.allow_unverified)
        self._steps: list[Step] = []
        self._unverified = self._admission.unverified
        self._born: Newborn | None = None
        self._document: dict[str, Json] = {}
        self._native: Native | None = None
        self._saved: tuple[Segment, ...] = ()  # the transcript, where it is a session again
        self._folder: Staged | None = None
        self._worktree: Move | None = None
        self._apply: Apply | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *ended: object) -> None:
        for move in self._moves():
            move.drop()

    def run(
        self,
        remote: str | None,
        chain: str = "",
        publish: Callable[[], Parent] | None = None,
        worktree: Callable[[], Move] | None = None,
    ) -> Done:
        """All six. remote: how it is shown; None: there is none. chain: why the ledger does not
        count, beside what its witness says. Between steps 5 and 6, publish puts a store that was
        fetched into its place, and gives the predecessor there; worktree makes one that waits.

        Raises SavepointError, the step that met it named.
        """
        self._admission.raise_worst()
        self._sweep()
        self._step(self._bootstrap())
        self._step(self._admission.step(admission.CHAIN, "BLOCKCHAIN_VERIFIED", absent=chain))
        alone = "" if remote else "no remote is configured; our own repository was looked at"
        self._step(self._admission.step(admission.GIT, "GITHUB_VERIFIED", absent=alone))
        self._step(self._load())
        self._step(self._integrity())
        if publish is not None:
            self._moved(publish())
        self._worktree = worktree() if worktree is not None else None
        return self._resume()

    def _sweep(self) -> None:
        """Leftovers of runs that died, where this one is going to write."""
        config_dir = self._asked.config_dir
        below = native.place(config_dir, self._asked.target) or ()
        for folder_ in (self._asked.output[0], os.path.join(config_dir, *below)):
            moves.sweep(folder_, self._asked.now)

    def _moved(self, parent: Parent) -> None:
        """The store has another path now, and what waits in it as well."""
        before, self._store = self._store.home, parent.paths.store
        self._parent, self._born = parent, None
        after = self._store.home

        def rooted(path: str) -> str:
            return after + path.removeprefix(before) if path.startswith(before + "/") else path

        if self._folder is not None:
            move = self._folder.move
            self._folder = self._folder._replace(move=move._replace(root=rooted(move.root)))
        if self._apply is not None:
            self._apply = self._apply._replace(source=rooted(self._apply.source))

    def _step(self, step: Step) -> None:
        self._steps.append(step)
        self._tell(step)

    def _bootstrap(self) -> Step:
        """Step 1: where the predecessor came from holds, and a lawful successor can be born."""
        paths, origin = self._parent.paths, self._parent.savepoint
        try:
            lineage.check_own(paths)
            if not self._asked.whole:
                return Step(admission.BOOTSTRAP, "VERIFIED", origin.instance)
            self._born = self._prepare(self._known)
        except (TamperedError, MalformedError, UnsupportedFormatError) as failure:
            raise admission.refuse(admission.BOOTSTRAP, failure) from failure
        line = f"{origin.instance} → {self._born.instance}"
        return Step(admission.BOOTSTRAP, "VERIFIED", line)

    def _prepare(self, known: list[Holder]) -> Newborn:
        return successor.prepare(self._parent, known, self._unverified, self._asked.now)

    def _load(self) -> Step:
        """Step 4: everything is read, checked, and written under temporary names."""
        one, asked = self._parent.savepoint, self._asked
        try:
            document = savepoints.open_snapshot(self._parent.paths, one).document
            self._document = document
            files = savepoints.files(self._store, document)
            self._native = self._session(files)
            rest = asked.parts - ({"conversation"} if self._native else set())
            if rest:
                self._folder = folder.stage(self._store, document, rest, asked.output)
            self._apply = self._over_project(files)
        except (TamperedError, MalformedError, UnsupportedFormatError) as failure:
            raise admission.refuse(admission.LOAD, failure) from failure
        messages, loaded = self._messages(), self._folder.files if self._folder else 0
        return Step(admission.LOAD, "CONSCIOUSNESS_LOADED", f"{messages} messages, {loaded} files")

    def _session(self, files: list[StoredFile]) -> Native | None:
        """The conversation as a session of the agent, where it has one and the client will look."""
        talk = [one for one in files if one.part in ("conversation", "companion")]
        below = native.place(self._asked.config_dir, self._asked.target)
        is_ours = self._history("agent") == claude_places.NAME
        if "conversation" not in self._asked.parts or not talk or below is None or not is_ours:
            return None
        if talk[0].part != "conversation":
            return None  # there is no transcript
        self._saved = talk[0].segments
        where = (self._asked.config_dir, below)
        return native.stage(self._store, talk, where, self._asked.part)

    def _over_project(self, files: list[StoredFile]) -> Apply | None:
        """What goes over the project. Raises OutputExistsError: before anything is touched."""
        if not self._asked.apply or self._folder is None:
            return None
        loaded = members.loaded(one for one in files if one.part == "files").files
        inside = {one.parts: str(one.stored.sha256) for one in loaded}
        wanted = {parts: sha for parts, sha in inside.items() if parts[0] != members.OUTSIDE}
        source, project = self._folder.move.path, self._asked.target
        apply.refuse(apply.conflicts(project, wanted), project, force=self._asked.force)
        return Apply(source, folder.FILES, project, self._asked.force)

    def _integrity(self) -> Step:
        """Step 5: what was checked when the savepoint was signed."""
        checks = self._document["checkpoint_verification"]
        assert isinstance(checks, dict)  # noqa: S101  # the snapshot's shape says so
        failed = [name for name in _DEMANDED if checks[name] is not True]
        if failed and not self._asked.allow_unverified:
            message = f"when it was saved, these did not hold: {', '.join(failed)}"
            failure = UnverifiableError(message, hint="`--allow-unverified` goes on all the same")
            raise admission.refuse(admission.INTEGRITY, failure)
        self._unverified += failed
        primed = checks["contextual_priming"]
        detail = "" if primed == "COMPLETE" else f"contextual priming was {primed}"
        if failed:
            return Step(admission.INTEGRITY, admission.UNVERIFIED, ", ".join(failed))
        return Step(admission.INTEGRITY, "INTEGRITY_VERIFIED", detail)

    def _resume(self) -> Done:
        """Step 6: the successor is born, and everything gets its place."""
        if not self._asked.whole:
            return self._look_out()
        with Lock(self._store.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
            born = self._settled()
            text = lineage.appended(self._parent.paths, self._document, born.instance)
            self._last_step(f"{self._parent.savepoint.instance} → {born.instance}")
            session = self._native.id if self._native else None
            report = self._report(born)
            moves_ = tuple(move.written() for move in self._moves())
            successor.publish(born, Arrival(moves_, self._apply, session, report).data(), text)
            self._native = self._folder = self._worktree = None  # the successor's now
            report = arrival.finish(born.paths).report
        origin = f"{self._parent.paths.slug} savepoint {self._parent.savepoint.seq}"
        journal.continuity(born.paths, self._asked.now, f"born of {origin}")
        self._tell(self._steps[-1])
        return Done(report, born)

    def _settled(self) -> Newborn:
        """The successor as it was prepared, unless its number was taken meanwhile."""
        born = self._born
        taken = {one.instance for one in successor.holders(self._store)}
        if (
            born is None
            or born.instance in taken
            or _words(born) != [*dict.fromkeys(self._unverified)]
        ):
            known = [*self._known, *successor.holders(self._store)]
            born = self._prepare(known)
        return born

    def _look_out(self) -> Done:
        """Parts of a savepoint: nobody is born for them."""
        self._last_step("parts of a savepoint; no successor was born")
        for move in self._moves():
            move.make()
        if self._native is not None:
            remember.session(self._parent.paths, self._parent.savepoint, self._native.id)
        report = self._report(None)
        arrival.put_over(self._apply, report)
        self._native = self._folder = self._worktree = None
        self._tell(self._steps[-1])
        return Done(report, None)

    def _last_step(self, detail: str) -> None:
        whole = "CONSCIOUSNESS_CONTINUITY_MAINTAINED"
        status = whole if self._asked.whole else "PARTS_RESTORED"
        self._steps.append(Step(admission.RESUME, status, detail))

    def _moves(self) -> tuple[Move, ...]:
        own = [self._folder.move] if self._folder else []
        own += [self._worktree] if self._worktree else []
        return (*own, *(self._native.moves if self._native else ()))

    # what is told

    def _history(self, name: str) -> Json:
        return snapshot.member_at(self._document, ("conversation_history", name))

    def _messages(self) -> int:
        if self._native is not None:
            return self._native.session.messages
        return (
            int(str(self._history("message_count"))) if "conversation" in self._asked.parts else 0
        )

    def _report(self, born: Newborn | None) -> dict[str, Json]:
        one = self._parent.savepoint
        hidden = self._native.session.hidden if self._native else 0
        live = (self._document, self._asked.config_dir, self._saved)
        after = gap.after(self._parent, *live) if self._native else 0
        return {
            "instance": born.instance if born else None,
            "key": born.paths.slug[-8:] if born else None,
            "previous_instance": one.instance,
            "previous_key": self._parent.paths.slug[-8:],
            "savepoint": {
                "seq": one.seq,
                "snapshot_hash": one.body["snapshot_hash"],
                "timestamp": spelling.time_text(one.timestamp),
            },
            "steps": [
                {"step": step.number, "status": step.status, "detail": step.detail}
                for step in self._steps
            ],
            "session": self._told_session(),
            "recovered": self._recovered(),
            "gap_messages": (after or 0) + hidden,
            "gap": {"after_savepoint": after, "not_shown": hidden},
            "folder": self._folder.move.path if self._folder else None,
            "applied_to": self._apply.project if self._apply else None,
            "worktree": self._worktree.path if self._worktree else None,
            "left_out": self._left_out(),
            "paths": self._paths(),
            "unverified": [*dict.fromkeys(self._unverified)],
            "proofs": self._proofs(),
            "fuller": self._fuller(),
            "sessions": self._history("sessions"),
            "caveats": [*self._asked.caveats],
        }

    def _told_session(self) -> Json:
        if self._native is None:
            return None
        repairs: dict[str, Json] = dict(self._native.session.repairs)
        return {
            "id": self._native.id,
            "file": self._native.file,
            "mode": "full" if self._asked.part.full else "as it was",
            "messages": self._native.session.messages,
            "shown": self._native.session.shown,
            "first_message": self._native.first,
            "repairs": repairs,
        }

    def _recovered(self) -> Json:
        sizes = [one.bytes for one in (self._native, self._folder) if one is not None]
        files = self._folder.files if self._folder else 0
        return {"bytes": sum(sizes), "messages": self._messages(), "files": files}

    def _left_out(self) -> Json:
        found = self._folder.left_out if self._folder else ()
        return [{"path": path, "reason": reason} for path, reason in found]

    def _paths(self) -> Json:
        """A project that has another path now."""
        recorded = snapshot.member_at(self._document, ("git_state", "roots", "project"))
        before = os.fsdecode(snapshot.path_bytes(recorded))
        return (
            None if before == self._asked.target else {"before": before, "now": self._asked.target}
        )

    def _proofs(self) -> Json:
        chain = self._admission.chain
        return {
            "chain": self._steps[admission.CHAIN - 1].text,
            "independent": chain.members.get("independent") is True,
            "git": self._steps[admission.GIT - 1].text,
            "integrity": self._steps[admission.INTEGRITY - 1].text,
        }

    def _fuller(self) -> Json:
        one = gap.fuller(self._parent.paths, self._parent.savepoint, self._document)
        return one.seq if one else None


_DEMANDED = ("modulo_zero", "bootstrap_confirmed", "standing_verified")


def _words(born: Newborn) -> list[str]:
    listed = born.restore.body["unverified"]
    return [str(one) for one in listed] if isinstance(listed, list) else []
