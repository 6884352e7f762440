"""A project with a store, sessions of an agent in it, and the dynasty that they leave."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

from savepoint.capture.request import Request
from savepoint.core import spelling
from savepoint.core.spelling import Instance
from savepoint.store import birth
from savepoint.store.layout import Home, Store, session_key
from succession import dynasty
from succession.dynasty import branch, keep, record
from succession.dynasty.files import entry
from succession.dynasty.session.observe import Covering
from tests.fault.scene import Scene as Project
from tests.fault.scene import session_id

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from succession.dynasty.files.entry import Entry
    from succession.dynasty.keep import Held
    from succession.dynasty.running import Ran
    from succession.dynasty.session.stop import Turn
    from succession.dynasty.state import State

BEGAN = 1_772_980_000  # Unix seconds: 2026-03-08T14:26:40Z
_GIT = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (
        ("NAME", "Ada"),
        ("EMAIL", "ada@example.invalid"),
        ("DATE", f"{BEGAN} +0000"),
    )
}


class Scene:
    """Time passes only when somebody says so; everything else is real."""

    def __init__(self, folder: Path, *, git: bool = True) -> None:
        self.project = Project.make(folder, git=False, store=False)
        self.now = BEGAN
        self._calls = 0
        if git:
            self.git("init", "-q", "-b", "main")
            self.commit("first")
        home = Home(str(self.project.home))
        birth.create_store(home, str(self.project.project), Instance("Ada", 1), BEGAN)

    def git(self, *args: str) -> str:
        """Git as the user runs it."""
        return self.project.git(*args)

    def commit(self, subject: str) -> None:
        """An empty commit, the same at each run of the tests."""
        before = dict(os.environ)
        os.environ.update(_GIT)
        try:
            self.git("commit", "-q", "--allow-empty", "-m", subject)
        finally:
            os.environ.clear()
            os.environ.update(before)

    @property
    def store(self) -> Store:
        """The only one."""
        return self.project.store

    @property
    def folder(self) -> Path:
        """Of the dynasty."""
        return self.project.home / "stores" / self.store.id / "dynasty"

    @property
    def own(self) -> Path:
        """Of the dynasty of the branch that is checked out."""
        return self.folder / self.branch.folder

    @property
    def branch(self) -> branch.Branch:
        """The one that is checked out."""
        asked = self.request()
        return branch.current(asked.project, asked.cwd, asked.environment)

    def request(self, session: int = 1) -> Request:
        """As the hook has it."""
        return Request(
            home=str(self.project.home),
            project=str(self.project.project),
            cwd=str(self.project.project),
            config_dir=str(self.project.user / ".claude"),
            session_id=session_id(session),
            transcript=str(self.project.transcript(session)),
            trigger="stop",
            now=self.now,
            deadline=time.monotonic() + 120,
            environment={"PATH": os.environ["PATH"], "HOME": str(self.project.user)},
        )

    def start(self, session: int = 1, source: str = "startup", **more: bool) -> str:
        """SessionStart: what the agent is told."""
        return dynasty.at_start(self.request(session), source, **more)

    def use(self, session: int, **given: object) -> None:
        """The agent uses a tool, a minute later."""
        self.now += 60
        self._calls += 1
        call = {"type": "tool_use", "id": f"toolu_{self._calls}", "name": "Read", "input": given}
        self.write(session, {"role": "assistant", "content": [call]})

    def answer(self, session: int, text: str = "done") -> None:
        """The agent says something, a minute later."""
        self.now += 60
        self.write(session, {"role": "assistant", "content": [{"type": "text", "text": text}]})

    def write(self, session: int, message: object, kind: str = "assistant", **more: object) -> None:
        """A record at the end of a transcript."""
        told = {
            "type": kind,
            "sessionId": session_id(session),
            "timestamp": spelling.time_text(self.now).replace("Z", ".000Z"),
            "message": message,
            **more,
        }
        with self.project.transcript(session).open("ab") as file:
            file.write(json.dumps(told).encode() + b"\n")

    def stop(self, session: int = 1) -> Turn:
        """Stop, after an answer."""
        self.answer(session)
        self.now += 1
        return dynasty.at_stop(self.request(session))

    def session(self, number: int, *paths: str) -> Turn:
        """A whole session that reads these files."""
        self.start(number)
        for path in paths:
            self.use(number, file_path=str(self.project.project / path))
        return self.stop(number)

    def record(self, title: str, why: str = "", what: str = "", session: int = 0) -> Entry:
        """A decision, or an observation where there is no Why; of a session, or of a person."""
        self.now += 1
        one = entry.make("decision" if why else "observation", title, why, what)
        origin = session_key(session_id(session)) if session else ""
        with self.opened() as held:
            done = record.record(held.state, one, self.now, origin)
            held.write(done.state, held.seen, archive=done.archive)
        return one

    def opened(self) -> AbstractContextManager[Held]:
        """The dynasty under its lock."""
        return keep.opened(self.store, self.branch, self.now, time.monotonic() + 120, whole=True)

    def held(self) -> Held:
        """The dynasty as it is."""
        with self.opened() as held:
            return held

    @property
    def state(self) -> State:
        """The dynasty as it is."""
        return self.held().state

    def run(self, covering: Covering | None = None, reason: str = "manual trigger") -> Ran:
        """A succession, a minute later."""
        self.now += 60
        return dynasty.run(self.request(), covering, reason)

    def covering(
        self, seq: int, written: Sequence[str] = (), changed: Sequence[str] = ()
    ) -> Covering:
        """A savepoint as it could be, the same at each run of the tests."""
        return Covering(
            seq,
            f"{seq:064x}",
            {
                "conversation_history": {
                    "session_id": session_id(1),
                    "transcript": {"bytes": 4096},
                },
                "loaded_files": {path: {"known": "written"} for path in written},
                "git_state": {
                    "changes": {"files": [{"path": path} for path in changed], "deleted": []}
                },
            },
        )

    def files(self) -> dict[str, bytes]:
        """Every file of the dynasty, by its path below it."""
        found = (one for one in self.folder.rglob("*") if one.is_file() and one.name != ".lock")
        return {one.relative_to(self.folder).as_posix(): one.read_bytes() for one in found}
