"""A user, a project, an agent's session and a store in one folder, and the real hook to fire."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from savepoint.core.spelling import Instance
from savepoint.store import birth, config, savepoints
from savepoint.store.fsck import fsck
from savepoint.store.layout import Home

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.store.fsck.fsck import Checked
    from savepoint.store.layout import InstancePaths, Store

BIN = Path(sys.executable).parent
HOOK = (sys.executable, "-I", str(BIN / "savepoint-hook"))  # as `install` writes it: no shim
COMMAND = (sys.executable, "-I", str(BIN / "savepoint"))
SECONDS = 60  # a process that takes longer hangs
_WORKER_SECONDS = 10  # that a worker is waited for
_CONTEXT_CHARS = 9500  # that the agent takes whole
_PAUSE = 2  # seconds that the agent has not written for: else a hook waits for it


# A busy machine may need more than the second or two that an agent gives to some of its events.
_PATIENT = (
    "limits.SESSION_SECONDS = limits.SESSION_END_SECONDS = limits.PRECOMPACT_SECONDS;"
    # Who waits for more than the payload is noticed.
    "limits.HOOK_PAYLOAD_SECONDS = limits.HOOK_PAYLOAD_SHARE = 60.0"
)


def limited(change: str, module: str, *arguments: str) -> list[str]:
    """A program of ours with other limits. change: statements; module: whose `main` it is."""
    code = f"from savepoint.core import limits; {change}; from {module} import main; main()"
    return [sys.executable, "-I", "-c", code, *arguments]


def hurried(event: str, seconds: float) -> list[str]:
    """As `hook`, with a deadline of so many seconds: the second that an agent gives to some events
    is too short for a busy machine to get as far as a test wants it to be.
    """
    change = f"limits.SESSION_SECONDS = limits.SESSION_END_SECONDS = {seconds}"
    return limited(change, "savepoint.hook", event)


def hook(event: str) -> list[str]:
    """The command of an agent's hook."""
    if event in {"PreCompact", ""}:
        return [*HOOK, event]
    return limited(_PATIENT, "savepoint.hook", event)


def session_id(number: int) -> str:
    """A made-up session id."""
    return f"{number:08x}-0000-4000-8000-000000000000"


class Fired(NamedTuple):
    """What became of one process."""

    code: int
    out: bytes
    err: str

    @property
    def is_quiet(self) -> bool:
        """Did it end as an agent wants its hook to: exit code 0, nothing on any stream?"""
        return (self.code, self.out, self.err) == (0, b"", "")

    def is_allowed(self, event: str) -> bool:
        """Did it print what the agent takes from a hook of that event, and nothing else?"""
        if event != "SessionStart":
            return self.is_quiet
        told = json.loads(self.out)["hookSpecificOutput"]
        context = told["additionalContext"]
        expected = {"hookSpecificOutput": {"hookEventName": event, "additionalContext": context}}
        fits = json.loads(self.out) == expected and 0 < len(context) <= _CONTEXT_CHARS
        return fits and self._replace(out=b"").is_quiet


class Scene(NamedTuple):
    """Everything below one folder, which may be copied or mounted as a whole."""

    folder: Path

    @classmethod
    def make(cls, folder: Path, *, git: bool = True, store: bool = True) -> Self:
        """A project with a commit and a change, and a store without savepoints."""
        scene = cls(folder)
        for one in (scene.project, scene.sessions):
            one.mkdir(parents=True)
        scene.home.mkdir(mode=0o700, parents=True)
        (scene.user / ".gitconfig").write_text("[user]\nname = Ada\nemail = ada@example.invalid\n")
        if git:
            (scene.project / "a.py").write_text("print(1)\n")
            scene.git("init", "-q", "-b", "main")
            scene.git("add", ".")
            scene.git("commit", "-qm", "first")
            (scene.project / "a.py").write_text("print(2)\n")
        if store:
            scene.begin()
        return scene

    def begin(self) -> None:
        """The store of the project, as `init` makes it."""
        made = birth.create_store(Home(str(self.home)), str(self.project), _ADA, int(time.time()))
        config.load(made)._replace(ledger=None).save(made)

    @property
    def user(self) -> Path:
        """$HOME."""
        return self.folder / "user"

    @property
    def home(self) -> Path:
        """$SAVEPOINT_HOME."""
        return self.folder / "home"

    @property
    def project(self) -> Path:
        """The agent's project."""
        return self.folder / "project"

    @property
    def sessions(self) -> Path:
        """Where the agent keeps the project's transcripts."""
        return self.user / ".claude/projects" / _AGENTS_NAME

    def transcript(self, session: int = 1) -> Path:
        """The file of a session."""
        return self.sessions / f"{session_id(session)}.jsonl"

    def say(self, count: int = 1, *, session: int = 1, size: int = 60) -> bytes:
        """Let the agent write `count` records, a while ago; returns the whole transcript."""
        path = self.transcript(session)
        with path.open("ab") as file:
            for _ in range(count):
                file.write(record(session, file.tell(), size))
        self.rest(session)
        return path.read_bytes()

    def rest(self, session: int = 1) -> None:
        """The agent has not written for a while."""
        then = time.time() - _PAUSE
        os.utime(self.transcript(session), (then, then))

    def environment(self, **more: str) -> dict[str, str]:
        """What the agent passes to its hooks."""
        return {
            "HOME": str(self.user),
            "PATH": os.environ["PATH"],
            "SAVEPOINT_HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.user / ".claude"),
            "CLAUDE_PROJECT_DIR": str(self.project),
            **more,
        }

    def payload(self, session: int = 1, event: str = "PreCompact", **more: object) -> bytes:
        """What the agent writes to its hook."""
        told = {
            "session_id": session_id(session),
            "transcript_path": str(self.transcript(session)),
            "cwd": str(self.project),
            "hook_event_name": event,
            "trigger": "manual",
        }
        return json.dumps(told | more).encode()

    def fire(
        self,
        session: int = 1,
        event: str = "PreCompact",
        *,
        wrap: Sequence[str] = (),
        payload: bytes | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Fired:
        """Run the hook as the agent does, below `wrap`, and wait for it."""
        data = self.payload(session, event) if payload is None else payload
        command = [*wrap, *hook(event)]
        return run(command, self.project, env or self.environment(), data)

    def start(self, session: int = 1, event: str = "PreCompact") -> subprocess.Popen[bytes]:
        """Run the hook and do not wait for it."""
        process = subprocess.Popen(
            hook(event),
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert process.stdin is not None
        process.stdin.write(self.payload(session, event))
        process.stdin.close()
        process.stdin = None
        return process

    def command(
        self, *args: str, wrap: Sequence[str] = (), env: Mapping[str, str] | None = None
    ) -> Fired:
        """Run `savepoint ARGS` as a person does."""
        return run([*wrap, *COMMAND, *args], self.project, env or self.environment(), b"")

    def create(self, session: int = 1, *, wrap: Sequence[str] = ()) -> Fired:
        """Run `savepoint create` for a session."""
        return self.command("create", "--transcript", str(self.transcript(session)), wrap=wrap)

    def git(self, *args: str) -> str:
        """Run git in the project as the user does."""
        done = subprocess.run(
            ["git", *args], cwd=self.project, check=True, capture_output=True, text=True, timeout=90
        )
        return done.stdout.removesuffix("\n")

    def settle(self) -> None:
        """As `settle` for its home."""
        settle(str(self.home))

    @property
    def store(self) -> Store:
        """The only store."""
        (config,) = self.home.glob("stores/*/config.json")
        return Home(str(self.home)).store(config.parent.name)

    @property
    def paths(self) -> InstancePaths:
        """The only instance."""
        (paths,) = savepoints.instances(self.store)
        return paths

    def saves(self, session: int | None = None) -> list[Record]:
        """The savepoints, or those of one session, oldest first."""
        wanted = None if session is None else session_id(session)
        found = savepoints.records(self.paths).saves
        return [one for one in found if wanted in (None, one.body["session_id"])]

    def document(self, one: Record | None = None) -> dict[str, Json]:
        """What the snapshot of a savepoint says; of the newest where none is named."""
        return savepoints.open_snapshot(self.paths, one or self.saves()[-1]).document

    def files(self, one: Record | None = None) -> dict[str, bytes]:
        """Part and path → bytes, of all files that a savepoint holds."""
        stored = savepoints.files(self.store, self.document(one))
        return {
            f"{file.part}:{file.path}": b"".join(savepoints.content(self.store, file))
            for file in stored
        }

    def stored_twice(self) -> list[str]:
        """Segments that lie in the store at two places."""
        places: dict[str, set[tuple[str, int]]] = {}
        for one in self.saves():
            for file in savepoints.files(self.store, self.document(one)):
                for segment in file.segments:
                    places.setdefault(segment.sha256, set()).add((segment.pack, segment.offset))
        return [sha256 for sha256, at in places.items() if len(at) > 1]

    def conversation(self, one: Record | None = None) -> bytes | None:
        """The transcript that a savepoint holds; None where it says that it has none."""
        held = self.files(one)
        return next((held[name] for name in held if name.startswith("conversation:")), None)

    def fsck(self) -> Checked:
        """What fsck says of the store."""
        return fsck.fsck(self.store, time.time())

    def damage(self) -> list[str]:
        """What fsck finds that is worse than a leftover, and savepoints that do not name the one
        before them of their session.
        """
        damage = [f"{one.exit_code} {one.detail}" for one in self.fsck().items if one.exit_code]
        last: dict[Json, Json] = {}
        for one in self.saves():
            session = one.body["session_id"]
            if one.body["from"] != last.get(session):
                damage.append(f"savepoint {one.seq} comes from {one.body['from']}")
            last[session] = one.origin()
        return damage

    def log(self) -> list[dict[str, str]]:
        """The lines of hook.log that are whole."""
        path = self.home / "hook.log"
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines if line.endswith(b"}")]

    def pending(self) -> list[str]:
        """What waits to be finished."""
        return sorted(name for name in os.listdir(self.store.pending) if ".tmp-" not in name)

    def copy(self, folder: Path) -> Scene:
        """The same somewhere else; what a store knows of paths still means the old place."""
        shutil.rmtree(folder, ignore_errors=True)
        subprocess.run(["cp", "-a", str(self.folder), str(folder)], check=True)
        return Scene(folder)


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str], data: bytes) -> Fired:
    """Run a program to its end; one that hangs fails the test."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        input=data,
        capture_output=True,
        check=False,
        timeout=SECONDS,
    )
    return Fired(done.returncode, done.stdout, done.stderr.decode("utf-8", "backslashreplace"))


def settle(home: str) -> None:
    """Wait for the worker that a save may have started; one that waits for better times is ended.
    Before a home is removed: a worker writes into it, and makes its folders anew.
    """
    end = time.monotonic() + _WORKER_SECONDS
    while workers := _workers(home):
        if time.monotonic() > end:
            for pid in workers:
                kill(pid, signal.SIGTERM)
            end += _WORKER_SECONDS
        time.sleep(0.02)


def remove(folder: str | os.PathLike[str]) -> None:
    """Remove a folder of the home, or the home, when no worker writes into it any more."""
    settle(os.environ["SAVEPOINT_HOME"])
    shutil.rmtree(folder)


def kill(pid: int, number: int) -> None:
    """A process that may have ended by itself meanwhile."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _workers(home: str) -> list[int]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if b"savepoint.cli.worker.process" in words and home.encode() in words:
            found.append(int(pid))
    return found


def record(session: int, number: int, size: int) -> bytes:
    """One line of a transcript, with `size` characters of text that hardly compresses."""
    text = hashlib.shake_256(f"{session} {number}".encode()).hexdigest(size // 2 + 16)
    told = {
        "type": "user",
        "uuid": f"{text[:8]}-0000-4000-8000-{text[8:20]}",
        "sessionId": session_id(session),
        "message": {"role": "user", "content": text[:size]},
    }
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"


_ADA = Instance.parse("Ada #1")
_AGENTS_NAME = "-project"
