"""The program around the commands: errors, exit codes, streams, signals."""

from __future__ import annotations

import fcntl
import inspect
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

from savepoint.cli import terminal
from savepoint.cli.shapes.shape import Failure
from savepoint.core import errors
from savepoint.core.errors import SavepointError
from tests.cli.scene import COMMAND, SESSION, Scene, program, start
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.strict_json import Json


# Errors


@pytest.mark.parametrize(
    "arguments",
    [
        ["bogus"],
        ["list", "--bogus"],
        ["export", "latest"],
        ["show", "--only", "bogus"],
        ["create", "--transcript"],
        ["list", "too", "many"],
    ],
)
def test_wrong_use_is_2_in_one_style(cli: Scene, arguments: list[str]) -> None:
    ran = cli(*arguments)
    assert (ran.code, ran.out) == (2, b"")
    error, hint = ran.err.splitlines()
    assert error.startswith("savepoint: error: ")
    assert re.fullmatch(r"savepoint: hint: see `savepoint( \w+)? --help`", hint)
    if "--transcript" not in arguments:
        told = cli(*arguments, "--json")
        assert told.code == 2
        assert (told.json["error"]["code"], told.json["error"]["name"]) == (2, "usage")
        assert told.err == ""


def test_an_error_with_json_is_the_one_document(bare: Scene) -> None:
    ran = bare("list", "--json")
    assert ran.code == 10
    Failure.model_validate(ran.json)
    assert ran.json["error"]["name"] == "no_store"
    assert ran.err == ""


def _classes() -> list[type[SavepointError]]:
    found = [one for _, one in inspect.getmembers(errors, inspect.isclass)]
    return [one for one in found if issubclass(one, SavepointError)]


@pytest.mark.parametrize("failure", _classes())
def test_every_error_has_its_exit_code(
    cli: Scene, monkeypatch: pytest.MonkeyPatch, failure: type[SavepointError]
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise failure("it failed")

    monkeypatch.setattr("savepoint.cli.place.find", refuse)
    ran = cli("list")
    assert ran.code == failure.exit_code
    assert ran.err.startswith("savepoint: error: it failed\n")


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ZeroDivisionError("x"), 1),
        (MemoryError(), 1),
        (OSError(28, "full"), 40),
        (KeyboardInterrupt(), 130),
    ],
)
def test_no_failure_is_a_traceback(
    cli: Scene, monkeypatch: pytest.MonkeyPatch, failure: BaseException, code: int
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise failure

    monkeypatch.setattr("savepoint.cli.place.find", refuse)
    ran = cli("list")
    assert ran.code == code
    assert "Traceback" not in ran.err


def test_a_traceback_is_there_for_who_asks(bare: Scene) -> None:
    for arguments in (["--debug", "list"], ["list", "--debug"]):
        ran = bare(*arguments)
        assert ran.code == 10
        assert ran.err.startswith("Traceback")
        assert ran.err.rstrip().endswith("in the project's folder")


def test_errors_do_not_steer_the_terminal(bare: Scene) -> None:
    ran = bare("list", "-C", "/no\x1b[2J\nwhere\u202e")
    assert ran.code == 2
    assert "/no\\x1b[2J\\x0awhere\\x202e" in ran.err


def test_the_folder_is_named_by_option(cli: Scene, tmp_path: Path) -> None:
    cli.created()
    where = str(cli.project)
    cli.project = tmp_path
    assert cli("list").code == 10
    for option in ("-C", "--project"):
        assert len(cli.good("list", option, where, "--json").json["savepoints"]) == 1


def test_a_folder_that_is_gone(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"import os; os.rmdir({str(gone)!r}); {COMMAND[-1]}"
    command = [sys.executable, "-c", script, "list"]
    done = subprocess.run(command, cwd=gone, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"the current folder is gone" in done.stderr


# Streams


@pytest.mark.parametrize(
    "arguments", [["list", "--records"], ["show", "--only", "conversation"], ["list", "--json"]]
)
def test_a_reader_that_goes_is_no_failure_worth_a_word(cli: Scene, arguments: list[str]) -> None:
    cli.write(b"x" * 3_000_000 + b"\n")
    cli.created()
    reading, writing = os.pipe()
    os.close(reading)
    running = subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cli.project,
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    _, err = running.communicate(timeout=180)
    assert (running.returncode, err) == (141, b"")


@pytest.mark.parametrize("arguments", ["create", "create --json", "show --only conversation"])
def test_closed_streams(cli: Scene, arguments: str) -> None:
    cli.created()
    command = shlex.join(COMMAND) + f" {arguments}"
    for closed in (">&-", "2>&-", "<&-", ">&- 2>&- <&-"):
        done = subprocess.run(
            ["sh", "-c", f"{command} {closed}"], cwd=cli.project, capture_output=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("arguments", ["list", "list --json", "show --only conversation"])
def test_a_full_disk_behind_stdout_is_40(cli: Scene, arguments: str) -> None:
    cli.created()
    command = shlex.join(COMMAND) + f" {arguments} >/dev/full"
    done = subprocess.run(["sh", "-c", command], cwd=cli.project, capture_output=True, check=False)
    assert done.returncode == 40
    assert done.stderr.startswith(b"savepoint: error: the output: no space left")
    assert b"again" not in done.stderr


@pytest.mark.parametrize("arguments", ["create", "create --json"])
def test_a_savepoint_stands_whose_report_is_lost(cli: Scene, arguments: str) -> None:
    """It said: free space, then run the same again."""
    command = shlex.join(COMMAND) + f" {arguments} >/dev/full"
    done = subprocess.run(["sh", "-c", command], cwd=cli.project, capture_output=True, check=False)
    assert done.returncode == 40
    assert b"savepoint: error: savepoint 2 is saved, but the output: no space left" in done.stderr
    assert b"do not make it again" in done.stderr
    assert b"Exception" not in done.stderr
    assert len(cli.good("list", "--json").json["savepoints"]) == 1


def test_any_locale(cli: Scene) -> None:
    name = "caf\u00e9.py"
    (cli.project / name).write_text("x")
    cli.read_file(name)
    cli.created()
    env = {"PYTHONIOENCODING": "ascii"}
    done = program("show", "--only", "files", cwd=cli.project, env=env)
    assert done.returncode == 0
    assert b"caf\\xe9.py" in done.stdout
    done = program("show", "--only", "files", "--json", cwd=cli.project, env=env)
    assert json.loads(done.stdout)[0]["path"] == name
    done = program("create", cwd=cli.project, env=env)
    assert done.stdout.startswith(b"+ Layer 1: Local savepoint created\n")


def test_a_name_that_is_not_utf8_is_printed(cli: Scene) -> None:
    where = os.fsdecode(b"caf\xe9")
    ran = cli("list", "-C", where, "--json")
    assert ran.code == 2
    assert ran.json["error"]["message"] == f"{where} is no folder"


@pytest.mark.parametrize(
    "arguments",
    [["create"], ["verify", "--all"], ["fsck"], ["export", "2", "-o", "out.json"], ["doctor"]],
)
def test_on_a_terminal(cli: Scene, arguments: list[str]) -> None:
    """Progress and colours are for people: they are there, and nothing fails for it."""
    cli.created()
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color"}
    running = subprocess.Popen(
        [*COMMAND, *arguments], cwd=cli.project, env=env, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    shown = b""
    with suppress(OSError):  # what Linux says when the other end is closed
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    assert running.wait(timeout=180) == 0 or arguments == ["doctor"], shown
    assert b"\x1b[" in shown
    assert b"Traceback" not in shown


# Signals


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_in_order(cli: Scene, number: int, code: int) -> None:
    with Path(cli.paths.store.session_lock(SESSION)).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        running = start("create", cwd=cli.project)
        scratch = Path(cli.paths.store.scratch)
        _wait_until(lambda: _waits_for(running.pid, held.name))
        running.send_signal(number)
        out, err = running.communicate(timeout=180)
    assert (running.returncode, out) == (code, b"")
    assert b"Traceback" not in err
    assert list(scratch.iterdir()) == []
    assert cli.good("create").code == 0


def _waits_for(pid: int, path: str) -> bool:
    """Has the process opened that file?"""
    try:
        fds = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")]
    except OSError:
        return False
    return path in fds


def _wait_until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 120
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


# What is imported when


def test_the_hook_does_not_import_the_command_line() -> None:
    code = (
        f"import sys; sys.path.insert(0, {str(PROJECT)!r})\n"
        "import savepoint.hook, savepoint.save\n"
        "heavy = ('savepoint.cli', 'typer', 'rich', 'pydantic')\n"
        "print([name for name in sys.modules if name.startswith(heavy)])"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, check=True)
    assert done.stdout == b"[]\n"


def test_sizes_and_spans_for_people() -> None:
    assert [terminal.size(n) for n in (0, 999, 1000, 1_250_000, 10**12, 10**16)] == [
        "0 B",
        "999 B",
        "1.0 kB",
        "1.2 MB",
        "1.0 TB",
        "10000.0 TB",
    ]
    assert [terminal.span(n) for n in (-5, 0, 1, 59, 60, 7200, 90000)] == [
        "0 seconds",
        "0 seconds",
        "1 second",
        "59 seconds",
        "1 minute",
        "2 hours",
        "1 day",
    ]


def test_what_a_terminal_would_obey_is_escaped_in_json(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    """A hostile path or model turned the line round, or sent a command by an 8-bit escape."""
    value: dict[str, Json] = {"path": "a\u202eb\x9b31m\x1b[0m\udc80", "word": "Grüße \U0001f600"}
    terminal.document(value)
    out, _ = capfdbinary.readouterr()
    assert out.decode().removesuffix("\n").isprintable()
    assert "Grüße".encode() in out
    assert json.loads(out) == value
