"""The hook as an agent runs it: whatever it gets, it exits with 0 and prints nothing on stdout."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.store import journal
from tests.fault.scene import HOOK, Fired, Scene, hook, hurried, run, session_id

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = ["PreCompact", "SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project, a store, and a session that has something to save."""
    scene = Scene.make(tmp_path / "scene")
    scene.say(5)
    return scene


def notes(scene: Scene) -> str:
    """What the newest snapshot says of how it came to be."""
    return json.dumps(scene.document()["notes"])


# What the agent says


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_saves(scene: Scene, event: str) -> None:
    assert scene.fire(event=event).is_allowed(event)
    (one,) = scene.saves()
    expected = {
        "SessionStart": "session_start",
        "UserPromptSubmit": "prompt",
        "Stop": "stop",
        "SessionEnd": "session_end",
    }
    assert one.body["trigger"] == expected.get(event, "manual")
    assert scene.conversation() == scene.transcript().read_bytes()


@pytest.mark.parametrize("event", EVENTS)
def test_a_repeated_fire_adds_nothing(scene: Scene, event: str) -> None:
    for _ in range(3):
        assert scene.fire(event=event).is_allowed(event)
    assert len(scene.saves()) == 1
    assert scene.log() == []


@pytest.mark.parametrize("event", ["PostCompact", "SubagentStop"])
def test_another_event_is_nothing_to_do(scene: Scene, event: str) -> None:
    assert scene.fire(event=event).is_quiet
    assert scene.saves() == []
    assert scene.log() == []


@pytest.mark.parametrize("event", ["", "PreCompct", "--new", "PreCompact\n"])
def test_a_misspelt_event_is_logged(scene: Scene, event: str) -> None:
    """It would never save, and nobody would know. `status` called it a missed session, which
    `init` could not catch up.
    """
    assert scene.fire(event=event).is_quiet
    assert scene.saves() == []
    (line,) = scene.log()
    assert line["reason"] == journal.printable(f"there is no event {event!r} to save at")
    assert line["transcript"] == str(scene.transcript())
    assert json.loads(scene.command("status", "--json").out)["missed_fires"] == 0


def test_no_event_is_nothing_to_do(scene: Scene) -> None:
    assert run(HOOK, scene.project, scene.environment(), scene.payload()).is_quiet
    assert scene.saves() == []


def test_stop_waits_for_a_megabyte_or_a_quarter_of_an_hour(scene: Scene) -> None:
    assert scene.fire(event="Stop").is_quiet
    scene.say(1)
    assert scene.fire(event="Stop").is_quiet
    assert len(scene.saves()) == 1
    scene.say(1, size=limits.STOP_GROWTH_BYTES)
    assert scene.fire(event="Stop").is_quiet
    assert len(scene.saves()) == 2


RUBBISH = {
    "empty": b"",
    "blank": b" \n",
    "null": b"null",
    "a list": b"[]",
    "a number": b"1" * 6000,
    "no JSON": b"\x00\xff{{{",
    "UTF-16": '{"session_id":"x"}'.encode("utf-16"),
    "deep": b"[" * 200_000,
    "members of wrong types": b'{"session_id":1,"transcript_path":[],"cwd":{},"trigger":null}',
    "NUL in a path": b'{"session_id":"x","transcript_path":"/a\\u0000b","cwd":"\\u0000"}',
    "lone surrogate": b'{"session_id":"\\ud800","transcript_path":"/\\udfff"}',
    "long path": b'{"session_id":"' + b"x" * 100_000 + b'","cwd":"' + b"/y" * 100_000 + b'"}',
    "huge": b'{"a":"' + b"x" * (limits.HOOK_PAYLOAD_BYTES + 1000) + b'"}',
    "huge, no JSON": b"{" + b'"session_id":"' * (1 << 20),
}


@pytest.mark.parametrize("data", RUBBISH.values(), ids=RUBBISH)
def test_rubbish_does_no_harm(scene: Scene, data: bytes) -> None:
    """What it can name no session for saves the project's state, and says what is missing."""
    assert scene.fire(payload=data).is_quiet
    assert scene.damage() == []
    assert len(scene.log()) <= 1
    scene.say(1)
    assert scene.fire().is_quiet
    assert scene.conversation(scene.saves(1)[-1]) == scene.transcript().read_bytes()
    assert scene.pending() == []


def test_raw_control_characters_in_a_string(scene: Scene) -> None:
    """anthropics/claude-code#53463: strict parsers give up."""
    marked = scene.payload(custom_instructions="MARK").replace(b"MARK", b"a\x00b\tc\nd\x1b[2Je")
    assert scene.fire(payload=marked).is_quiet
    assert scene.conversation() == scene.transcript().read_bytes()
    assert scene.log() == []


@pytest.mark.parametrize("kept", [1, 3, 20])
def test_a_last_string_that_never_ends(scene: Scene, kept: int) -> None:
    """anthropics/claude-code#53463, openai/codex#23784: id and path are found all the same."""
    whole = scene.payload(custom_instructions="x" * 40)
    cut = whole[: whole.index(b"xxxx") + kept]
    assert scene.fire(payload=cut).is_quiet
    assert scene.conversation() == scene.transcript().read_bytes()
    assert "no JSON" in notes(scene)


def test_control_characters_do_not_reach_the_log(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "scene", store=False)
    evil = "\x1b]0;evil\x07\x1b[2J\r\nsecond line\u2028\u202e"
    assert scene.fire(payload=scene.payload(transcript_path=f"/{evil}", session_id=evil)).is_quiet
    (line,) = (scene.home / "hook.log").read_bytes().splitlines()
    assert all(byte >= 0x20 for byte in line)
    (told,) = scene.log()
    assert told["transcript"].isprintable()
    assert "\\x1b" in told["transcript"]


# How it is run


@pytest.mark.parametrize("event", EVENTS)
def test_stdin_that_is_never_closed(scene: Scene, event: str) -> None:
    """Nobody waits for its end when the payload is whole: SessionEnd has but one second."""
    process = subprocess.Popen(
        hook(event),
        cwd=scene.project,
        env=scene.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.write(scene.payload(event=event))
    process.stdin.flush()
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.wait(timeout=180) == 0
    out, err = process.stdout.read(), process.stderr.read().decode()
    assert Fired(0, out, err).is_allowed(event)
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    assert scene.log() == []
    assert scene.conversation() == scene.transcript().read_bytes()


def test_a_payload_that_stops_in_mid_object_leaves_time_to_save(scene: Scene) -> None:
    """Reading it took all the time that SessionEnd has, and nothing was saved."""
    slow = (
        "from savepoint.core import limits;"
        "limits.SESSION_END_SECONDS = limits.HOOK_PAYLOAD_SECONDS = 10.0;"
        "from savepoint.hook import main; main()"
    )
    command = [HOOK[0], "-I", "-c", slow, "SessionEnd"]
    with subprocess.Popen(
        command, cwd=scene.project, env=scene.environment(), stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(scene.payload(more=1).removesuffix(b"1}"))
        process.stdin.flush()
        assert process.wait(timeout=180) == 0
    assert scene.log() == []
    assert scene.conversation() == scene.transcript().read_bytes()


def test_payload_that_comes_in_pieces(scene: Scene) -> None:
    process = subprocess.Popen(
        [*HOOK, "PreCompact"], cwd=scene.project, env=scene.environment(), stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    whole = scene.payload(nested={"a": {}}, last="}")
    for at in range(0, len(whole), 97):
        process.stdin.write(whole[at : at + 97])
        process.stdin.flush()
        time.sleep(0.02)
    process.stdin.close()
    assert process.wait(timeout=180) == 0
    assert scene.conversation() == scene.transcript().read_bytes()
    assert notes(scene) == "[]"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(scene: Scene, closed: str) -> None:
    shell = ["sh", "-c", f'exec "$@" {closed}', "sh"]
    assert scene.fire(wrap=shell).is_quiet
    assert scene.log() == []
    assert scene.damage() == []
    assert len(scene.saves()) == 1
    if "<" not in closed:
        assert scene.conversation() == scene.transcript().read_bytes()


@pytest.mark.parametrize("full", [">/dev/full 2>&1", "2>/dev/full", "| true"])
def test_streams_that_take_nothing(tmp_path: Path, full: str) -> None:
    scene = Scene.make(tmp_path / "scene", store=False)
    scene.home.rmdir()
    scene.home.write_bytes(b"")  # no log can be written, so it has something to say
    shell = ["sh", "-c", f'"$@" {full}; exit $?', "sh"]
    assert scene.fire(wrap=shell).code == 0


@pytest.mark.parametrize("name", ["HOME", "SAVEPOINT_HOME", "CLAUDE_CONFIG_DIR", "PATH"])
def test_a_variable_that_is_not_set(scene: Scene, name: str, home: Path) -> None:
    """HOME is that of the user database then, which here is the machine's: so nothing may be saved
    where the store is found by it, and all else goes on.
    """
    environment = scene.environment()
    del environment[name]
    if name == "SAVEPOINT_HOME":
        environment["HOME"] = str(home)
    assert scene.fire(env=environment) == Fired(0, b"", "")
    if name == "SAVEPOINT_HOME":
        assert "it made store" in (home / ".savepoint/hook.log").read_text()
        assert scene.saves() == []
    else:
        assert scene.conversation() == scene.transcript().read_bytes()


def test_the_project_folder_of_the_agent_may_be_missing(scene: Scene) -> None:
    environment = scene.environment()
    del environment["CLAUDE_PROJECT_DIR"]
    assert scene.fire(env=environment).is_quiet
    assert len(scene.saves()) == 1


@pytest.mark.parametrize("language", ["C", "POSIX", "tr_TR.UTF-8", "nonsense"])
def test_any_locale(tmp_path: Path, language: str) -> None:
    scene = Scene.make(tmp_path / "Projekt ü 日本")
    said = scene.say(2)
    environment = scene.environment(LANG=language, LC_ALL=language, PYTHONIOENCODING="ascii")
    assert scene.fire(env=environment).is_quiet
    assert scene.log() == []
    assert scene.conversation() == said


@pytest.mark.parametrize("mask", ["000", "027", "077", "277"])
def test_what_it_makes_is_private_whatever_the_umask(tmp_path: Path, mask: str) -> None:
    scene = Scene.make(tmp_path / "scene", store=False)
    shell = ["sh", "-c", f'umask {mask}; exec "$@"', "sh"]
    scene.say(3)
    assert scene.command("init", wrap=shell).code == 0
    for _ in range(2):
        scene.say(3)
        assert scene.fire(wrap=shell).is_quiet
        assert scene.create(wrap=shell).code == 0
    modes = {path: path.lstat().st_mode for path in scene.home.rglob("*") if not path.is_symlink()}
    assert {str(path): oct(mode) for path, mode in modes.items() if mode & 0o077} == {}
    assert scene.damage() == []
    assert len(scene.saves()) == 4


def test_a_current_folder_that_is_gone(scene: Scene) -> None:
    gone = scene.folder / "gone"
    gone.mkdir()
    shell = ["sh", "-c", 'cd "$GONE" && rmdir "$GONE" && exec "$@"', "sh"]
    environment = scene.environment(GONE=str(gone))
    assert scene.fire(wrap=shell, env=environment).is_quiet
    assert scene.conversation() == scene.transcript().read_bytes()
    del environment["CLAUDE_PROJECT_DIR"]
    gone.mkdir()
    assert scene.fire(wrap=shell, env=environment, payload=b"{}").is_quiet
    (line,) = scene.log()
    assert line["reason"] == "no folder is named, and the current one is gone"
    assert scene.damage() == []


def test_what_the_environment_says_to_python_counts_for_nothing(scene: Scene) -> None:
    """`-I`: an agent that develops Python has such variables, and modules of any name."""
    evil = scene.project / "json.py"
    evil.write_text("raise SystemExit(3)\n")
    environment = scene.environment(
        PYTHONPATH=str(scene.project),
        PYTHONSTARTUP=str(evil),
        PYTHONHOME="/nowhere",
        PYTHONWARNINGS="error",
        PYTHONDONTWRITEBYTECODE="1",
    )
    assert scene.fire(env=environment).is_quiet
    assert scene.conversation() == scene.transcript().read_bytes()


# What goes wrong


def test_the_first_fire_makes_the_store_and_touches_nothing_else(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "scene", store=False)
    said = scene.say(3)
    before = sorted(scene.project.rglob("*"))
    assert scene.fire().is_quiet
    (line,) = scene.log()
    assert line["reason"] == f"it made store {scene.store.id}"
    assert (line["session_id"], line["transcript"]) == (session_id(1), str(scene.transcript()))
    assert sorted(scene.project.rglob("*")) == before
    assert scene.conversation() == said
    assert scene.damage() == []


class Hanging:
    """A git that hangs, with a child, in front of the real one in PATH. All that it starts holds
    the writing end of a pipe of ours: its end tells that all of them are gone.
    """

    def __init__(self, scene: Scene) -> None:
        folder = scene.folder / "bin"
        folder.mkdir()
        pipe = folder / "pipe"
        os.mkfifo(pipe)
        program = folder / "git"
        program.write_text(f"#!/bin/sh\nexec 9>{pipe}\n>{folder}/$$\nsleep 77 & sleep 77\n")
        program.chmod(0o755)
        self.started = folder  # each is known by its number there, once it holds the pipe
        self.environment = scene.environment(PATH=f"{folder}:{os.environ['PATH']}")
        self._pipe = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    def assert_gone(self) -> None:
        """Nothing that was started is left, or will be in a moment: what is killed takes one."""
        end = time.monotonic() + 120
        while self._is_held():
            assert time.monotonic() < end, "one of them is still there"
            time.sleep(0.02)
        os.close(self._pipe)

    def _is_held(self) -> bool:
        try:
            return os.read(self._pipe, 1) != b""
        except BlockingIOError:
            return True


@pytest.mark.parametrize("event", ["SessionEnd", "Stop"])
def test_a_deadline_ends_it_and_the_next_save_finishes(scene: Scene, event: str) -> None:
    """A git that hangs takes its group with it."""
    git = Hanging(scene)
    holder = Holder(scene)
    begun = time.monotonic()
    payload = scene.payload(event=event)
    assert run(hurried(event, 4), scene.project, git.environment, payload).is_quiet
    assert time.monotonic() - begun < 4 + 30
    holder.release()
    git.assert_gone()
    (line,) = scene.log()
    assert line["session_id"] == session_id(1)
    assert scene.pending() == [f"{session_id(1)}.json"]
    scene.say(1, session=2)
    assert scene.fire(2).is_quiet
    assert scene.conversation(scene.saves(1)[-1]) == scene.transcript(1).read_bytes()
    assert "not finished then" in json.dumps(scene.document(scene.saves(1)[-1])["notes"])
    assert scene.pending() == []


@pytest.mark.parametrize("number", [1, 2, 3])
def test_no_git_outlives_an_alarm_that_comes_while_gits_are_started(
    scene: Scene, number: int
) -> None:
    """On a slow machine: the time is over before anybody has hold of the gits that run."""
    git = Hanging(scene)
    told = f"number, started = {number}, {str(git.started)!r}\n"
    command = [HOOK[0], "-I", "-c", told + _ALARM_AFTER_START, "PreCompact"]
    assert run(command, scene.project, git.environment, scene.payload()).is_quiet
    git.assert_gone()
    assert "time has passed" in scene.log()[-1]["reason"]
    assert scene.fire().is_quiet
    assert scene.conversation() == scene.transcript().read_bytes()


# The hook, whose alarm comes while the git of that number has just been started.
_ALARM_AFTER_START = """
import itertools, os, signal, time
from savepoint import hook
real, count = os.posix_spawn, itertools.count(1)
def spawn(*args, **options):
    pid = real(*args, **options)
    if next(count) == number:
        while not os.path.exists(f"{started}/{pid}"):
            time.sleep(0.01)
        signal.raise_signal(signal.SIGALRM)
    return pid
os.posix_spawn = spawn
hook.main()
"""


class Holder:
    """Another process that has the store's lock, and is stopped."""

    def __init__(self, scene: Scene) -> None:
        code = (
            "import fcntl, os, sys, time; fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600);"
            "fcntl.flock(fd, fcntl.LOCK_EX); print(flush=True); time.sleep(60)"
        )
        command = [HOOK[0], "-I", "-c", code, scene.store.lock]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._process.stdout.readline()
        self._process.send_signal(signal.SIGSTOP)

    def release(self) -> None:
        """Its death leaves no lock."""
        self._process.kill()
        self._process.communicate()
