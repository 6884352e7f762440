"""The real client, installed once a machine outside the tree, and run against the stub.

A test asks for the fixture `claude_program`, is marked `xdist_group("claude")`, and says
`with running(claude_program, folder) as claude:`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.claude.stub import Stub

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

VERSION = "2.1.332"
_PACKAGE = f"@anthropic-ai/claude-code@{VERSION}"
_KEY = "sk-ant-dummy"


class Ran(NamedTuple):
    """What became of one `claude -p`."""

    code: int
    out: str
    err: str

    @property
    def session(self) -> str:
        """The id that the client says it has."""
        return str(self.event["session_id"])

    @property
    def event(self) -> dict[str, Any]:
        """The result, of --output-format json."""
        found: dict[str, Any] = json.loads(self.out)
        return found


@contextmanager
def running(program: Path, folder: Path) -> Iterator[Client]:
    """A client that works in `folder`, and its stub, which ends with the block."""
    with Stub() as stub:
        yield Client(program, stub, folder)


class Client:
    """`claude` in one folder, with the home of the test."""

    def __init__(self, program: Path, stub: Stub, folder: Path) -> None:
        self.program = program
        self.stub = stub
        self.folder = folder
        self.config = Path(os.environ["CLAUDE_CONFIG_DIR"])

    def __call__(self, prompt: str, *options: str, env: Mapping[str, str] | None = None) -> Ran:
        """`claude -p PROMPT`; the result is one JSON document."""
        return self.command("-p", prompt, "--output-format", "json", *options, env=env)

    def command(self, *arguments: str, env: Mapping[str, str] | None = None) -> Ran:
        """`claude ARGUMENTS`, without a terminal."""
        done = subprocess.run(
            [str(self.program), *arguments],
            cwd=self.folder,
            env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=120,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def good(self, prompt: str, *options: str, env: Mapping[str, str] | None = None) -> Ran:
        """As a call; it must succeed."""
        ran = self(prompt, *options, env=env)
        assert ran.code == 0, ran.out + ran.err
        return ran

    @property
    def environment(self) -> dict[str, str]:
        """All that the client may know of this machine."""
        kept = {name: os.environ[name] for name in ("HOME", "PATH", "CLAUDE_CONFIG_DIR")}
        return {
            **kept,
            "SAVEPOINT_HOME": os.environ["SAVEPOINT_HOME"],
            "TERM": "xterm",
            "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": self.stub.url,
            "ANTHROPIC_API_KEY": _KEY,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_TELEMETRY": "1",
        }

    def transcript(self, session: str) -> Path:
        """Where the client keeps that session."""
        (found,) = self.config.glob(f"projects/*/{session}.jsonl")
        return found


def installed(cache: Path, home: Path) -> Path | None:
    """The program, installed with npm if it is not there yet; None where npm does not get it. home:
    of the person who runs the tests, with npm's settings.
    """
    known = _native(cache)
    if known is not None:
        return known
    npm = shutil.which("npm")
    if npm is None:
        return None
    fresh = cache / f"{VERSION}.{os.getpid()}"
    options = ("--no-audit", "--no-fund", "--ignore-scripts", "--loglevel", "error")
    command = [npm, "install", *options, "--prefix", str(fresh), _PACKAGE]
    fresh.mkdir(parents=True, exist_ok=True)
    own = {**os.environ, "HOME": str(home)}
    done = subprocess.run(command, env=own, capture_output=True, check=False, timeout=300)
    if done.returncode == 0 and not (cache / VERSION).exists():
        fresh.rename(cache / VERSION)  # whole or not at all: others may look for it
    shutil.rmtree(fresh, ignore_errors=True)
    return _native(cache)


def _native(cache: Path) -> Path | None:
    """The program of this platform; npm would put it in its place by running a script."""
    packages = (cache / VERSION / "node_modules/@anthropic-ai").glob("claude-code-*/claude")
    return next(packages, None)
