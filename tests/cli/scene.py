"""A project with an agent's session, and the command line run on it as a person runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from savepoint.capture.agents import claude_places
from savepoint.cli import main
from savepoint.core.errors import SavepointError
from savepoint.store import config, registry
from savepoint.store.layout import Home, InstancePaths
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

SESSION = "11111111-2222-4333-8444-555555555555"
OTHER_SESSION = "99999999-2222-4333-8444-555555555555"
WORD = "correct horse battery staple"  # the passphrase of backups
MOMENT = 50  # seconds; scrypt takes two or three
_PROGRAM = (
    f"import sys; sys.path.insert(0, {str(PROJECT)!r}); from savepoint.cli.main import main; main()"
)
COMMAND = (sys.executable, "-c", _PROGRAM)  # `savepoint`, installed or not


class Ran(NamedTuple):
    """What became of one command line."""

    code: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        """What a person reads."""
        return self.out.decode("utf-8")

    @property
    def json(self) -> Any:  # noqa: ANN401  # a document is what it is
        """The one document of --json."""
        assert self.out.count(b"\n") == 1
        return json.loads(self.out)


class Scene:
    """A project folder and a session of the agent in it."""

    def __init__(self, project: Path, capture: pytest.CaptureFixture[bytes]) -> None:
        self.project = project
        self._capture = capture
        self.transcript = self.path_of(SESSION)
        self.anchors = False  # else each savepoint starts a worker that anchors it

    def __call__(self, *arguments: str) -> Ran:
        """Run `savepoint` in this process, in the project's folder."""
        self._capture.readouterr()
        before = Path.cwd()
        os.chdir(self.project)
        try:
            code = main.run(list(arguments))
        finally:
            os.chdir(before)
        if arguments[:1] == ("init",) and not self.anchors:
            without_ledger(self.home)
        out, err = self._capture.readouterr()
        return Ran(code, out, err.decode("utf-8", "backslashreplace"))

    def good(self, *arguments: str) -> Ran:
        """Run it; it must succeed."""
        ran = self(*arguments)
        assert ran.code == 0, ran.err
        return ran

    def path_of(self, session: str) -> Path:
        """Where the agent keeps that session of the project."""
        config = os.environ["CLAUDE_CONFIG_DIR"]
        (folder,) = claude_places.project_folders(config, str(self.project))
        return Path(folder) / f"{session}.jsonl"

    def say(self, *texts: str, session: str = SESSION) -> Path:
        """Messages at the end of a session's transcript, settled for a second."""
        lines = [record(self.project, session, {"content": text}) for text in texts]
        return self.write(b"".join(lines), session=session)

    def read_file(self, name: str, session: str = SESSION) -> Path:
        """The agent reads a file of the project."""
        path = str(self.project / name)
        call = {"type": "tool_use", "id": f"toolu_{name}", "name": "Read"}
        asked = {"content": [{**call, "input": {"file_path": path}}]}
        result = {"type": "tool_result", "tool_use_id": f"toolu_{name}", "content": "1\tx"}
        shown = {"filePath": path, "content": "x", "numLines": 1, "startLine": 1, "totalLines": 1}
        lines = record(self.project, session, asked, kind="assistant") + record(
            self.project,
            session,
            {"content": [result]},
            toolUseResult={"type": "text", "file": shown},
        )
        return self.write(lines, session=session)

    def write(self, data: bytes, session: str = SESSION) -> Path:
        """Bytes at the end of a session's transcript."""
        path = self.path_of(session)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab") as file:
            file.write(data)
        settled = time.time() - 1
        os.utime(path, (settled, settled))
        return path

    def created(self, *arguments: str) -> dict[str, Any]:
        """A savepoint made by hand."""
        made: dict[str, Any] = self.good("create", "--json", *arguments).json
        return made

    @property
    def home(self) -> Home:
        """Of all stores."""
        return Home(os.environ["SAVEPOINT_HOME"])

    @property
    def paths(self) -> InstancePaths:
        """The files of the project's one instance."""
        store = registry.find(self.home, str(self.project))
        (slug,) = os.listdir(Path(store.path, "instances"))
        return store.instance(slug)


def without_ledger(home: Home) -> None:
    """No store of the home anchors anything."""
    for store in registry.stores(home):
        try:
            config.load(store)._replace(ledger=None).save(store)
        except SavepointError:  # what a test damaged
            continue


def record(
    project: Path, session: str, message: Mapping[str, object], kind: str = "user", **more: object
) -> bytes:
    """One line of a transcript."""
    value = {
        "type": kind,
        "sessionId": session,
        "cwd": str(project),
        "version": "2.1.200",
        "uuid": os.urandom(8).hex(),
        "message": {"role": kind, **message},
        **more,
    }
    return json.dumps(value).encode() + b"\n"


def program(
    *arguments: str, cwd: Path, env: Mapping[str, str] | None = None, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    """Run `savepoint` as a process of its own."""
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        input=stdin,
        capture_output=True,
        check=False,
        timeout=180,
    )


def without_privileges(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """As `program`, for whom permissions hold also if root runs the tests."""
    return subprocess.run(
        [sys.executable, "-c", _DROP, *COMMAND, *arguments],
        cwd=cwd,
        capture_output=True,
        check=False,
        timeout=180,
    )


# CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH leave the bounding set: what root then runs lacks them.
_DROP = """
import ctypes, os, sys
if os.geteuid() == 0:
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    assert prctl(24, 1, 0, 0, 0) == prctl(24, 2, 0, 0, 0) == 0, "the privileges cannot be dropped"
os.execv(sys.argv[1], sys.argv[1:])
"""


def start(*arguments: str, cwd: Path) -> subprocess.Popen[bytes]:
    """Begin `savepoint` as a process of its own."""
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
