"""Running git: within its time and size, both pipes at once, in an environment of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from savepoint import gitcmd
from savepoint.core import limits
from tests.capture.gitrepo import Repo, environment

if TYPE_CHECKING:
    from pathlib import Path


def shim(folder: Path, script: str, interpreter: str = "/bin/sh") -> dict[str, str]:
    """An environment whose git is this script."""
    folder.mkdir(exist_ok=True)
    program = folder / "git"
    program.write_text(f"#!{interpreter}\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return environment() | {"PATH": f"{folder}:{os.environ['PATH']}"}


def soon(seconds: float = 30) -> float:
    return time.monotonic() + seconds


def test_output_and_exit_code(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    good = gitcmd.start(["-C", str(repo.path), "rev-parse", "HEAD"], env=environment())
    bad = gitcmd.start(["-C", str(repo.path), "rev-parse", "nothing"], env=environment())
    result = good.finish(soon())
    assert result.ok
    assert result.out.decode().strip() == repo.git("rev-parse", "HEAD")
    failed = bad.finish(soon())
    assert failed.code == 128
    assert failed.reason.startswith("git: fatal: ")


def test_stdin_larger_than_a_pipe_while_output_fills_another(tmp_path: Path) -> None:
    repo = Repo.with_commit(tmp_path / "p")
    oid = repo.git("rev-parse", "HEAD:a")
    args = ["-C", str(repo.path), "cat-file", "--batch-check"]
    running = gitcmd.start(args, env=environment(), stdin=f"{oid}\n".encode() * 20_000)
    result = running.finish(soon())
    assert result.ok
    assert result.out.count(b"\n") == 20_000


def test_flood_on_stderr_neither_deadlocks_nor_is_kept(tmp_path: Path) -> None:
    """Reading stdout to its end first hangs as soon as stderr is full."""
    env = shim(tmp_path / "bin", "head -c 10000000 /dev/zero >&2; echo done")
    result = gitcmd.start(["anything"], env=env).finish(soon())
    assert result.out == b"done\n"
    assert len(result.err) == limits.GIT_ERROR_BYTES


def test_a_process_that_closes_its_pipes_and_lives_on_is_ended(tmp_path: Path) -> None:
    env = shim(tmp_path / "bin", "exec >&- 2>&-; exec sleep 60")
    started = time.monotonic()
    result = gitcmd.start([], env=env).finish(soon(0.3))
    assert result.problem == "out of time"
    assert result.code == -9
    assert time.monotonic() - started < 30


def test_deadline_ends_the_whole_group(tmp_path: Path) -> None:
    """Git starts programs of its own; killing git alone would leave them, holding our pipe."""
    env = shim(tmp_path / "bin", f"sleep 60 & echo $! > {tmp_path}/child; wait")
    running = gitcmd.start([], env=env)
    while not (tmp_path / "child").exists() or not (tmp_path / "child").read_text().strip():
        time.sleep(0.01)
    child = int((tmp_path / "child").read_text())
    started = time.monotonic()
    assert running.finish(soon(0.2)).problem == "out of time"
    assert time.monotonic() - started < 30
    assert not is_running(child)


def is_running(pid: int) -> bool:
    """A zombie that nobody reaps yet has ended."""
    for _ in range(1000):
        shown = subprocess.run(
            ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
        )
        if not shown.stdout.strip() or shown.stdout.startswith("Z"):
            return False
        time.sleep(0.02)
    return True


def test_too_much_output_is_cut(tmp_path: Path) -> None:
    env = shim(tmp_path / "bin", "exec cat /dev/zero")
    result = gitcmd.start([], env=env, limit=100_000).finish(soon())
    assert result.problem == "git wrote more than 100000 bytes"
    assert len(result.out) < 100_000 + 2**16 + 1
    assert not result.ok


def test_stop_ends_it_and_may_be_repeated(tmp_path: Path) -> None:
    env = shim(tmp_path / "bin", f"echo $$ > {tmp_path}/pid; exec sleep 60")
    running = gitcmd.start([], env=env)
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text().strip():
        time.sleep(0.01)
    running.stop()
    running.stop()
    assert not is_running(int((tmp_path / "pid").read_text()))


class AlarmError(Exception):
    """Raised by a signal handler."""


def _raise(_number: int, _frame: object) -> None:
    raise AlarmError


def test_an_alarm_while_git_is_started_does_not_lose_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is there, and nobody knows its number yet: it would outlive us."""
    real = os.posix_spawn
    pids = []

    def spawn(*args: Any, **options: Any) -> int:  # noqa: ANN401  # as they are
        pids.append(real(*args, **options))
        signal.raise_signal(signal.SIGALRM)
        return pids[-1]

    before = signal.signal(signal.SIGALRM, _raise)
    monkeypatch.setattr(os, "posix_spawn", spawn)
    try:
        with pytest.raises(AlarmError):
            gitcmd.start([], env=shim(tmp_path / "bin", "sleep 60; :"))
    finally:
        signal.signal(signal.SIGALRM, before)
    assert signal.SIGALRM not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
    (pid,) = pids
    gitcmd.end_all()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL


def test_end_all_spares_what_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its number may be another's by now."""
    assert gitcmd.start(["--version"], env=environment()).finish(soon()).ok
    gitcmd.start([], env=shim(tmp_path / "bin", "exec sleep 60")).stop()
    monkeypatch.setattr(os, "killpg", lambda *told: pytest.fail(f"killed {told}"))
    gitcmd.end_all()


def test_stop_after_finish_is_harmless(tmp_path: Path) -> None:
    running = gitcmd.start(["--version"], env=environment())
    assert running.finish(soon()).ok
    running.stop()


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    for _ in range(5):
        gitcmd.start(["--version"], env=environment(), stdin=b"x").finish(soon())
        gitcmd.start(["--version"], env=environment(), stdin=b"x").stop()
        gitcmd.start([], env={"PATH": str(tmp_path)}).finish(soon())
    assert len(os.listdir("/dev/fd")) == before


@pytest.mark.parametrize("path", ["", "/nowhere", ".", "relative/bin"])
def test_no_git_is_a_result(path: str) -> None:
    running = gitcmd.start(["--version"], env={"PATH": path})
    running.stop()
    result = running.finish(soon())
    assert result.reason == "there is no git in PATH"
    assert result.code == gitcmd.NOT_STARTED
    assert not result.ok


def test_git_beside_the_caller_is_not_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `.` in PATH, or an empty entry, a project could bring its own git."""
    shim(tmp_path / "p", f"touch {tmp_path}/MARK")
    monkeypatch.chdir(tmp_path / "p")
    for path in (".", ":/usr/bin", "../p:/usr/bin"):
        gitcmd.start(["--version"], env={"PATH": path}).finish(soon())
    assert not (tmp_path / "MARK").exists()


def test_a_git_that_cannot_be_executed_is_a_result(tmp_path: Path) -> None:
    env = shim(tmp_path / "bin", "", interpreter="/nowhere/interpreter")
    result = gitcmd.start([], env=env).finish(soon())
    assert result.code == gitcmd.NOT_STARTED
    assert result.problem.startswith("git cannot be started: ")


def test_environment_is_what_was_allowed(tmp_path: Path) -> None:
    """Set GIT_DIR or GIT_INDEX_FILE lead git to another repository."""
    script = "import json, os\nprint(json.dumps(dict(os.environ)))"
    allowed = shim(tmp_path / "bin", script, sys.executable)
    hostile = {"GIT_DIR": "/x", "GIT_INDEX_FILE": "/x", "GIT_CONFIG_COUNT": "1", "LC_ALL": "de_DE"}
    result = gitcmd.start([], env=allowed | hostile).finish(soon())
    seen = json.loads(result.out)
    git = {name: value for name, value in seen.items() if name.startswith(("GIT_", "LC_ALL"))}
    assert git == {
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_TERMINAL_PROMPT": "0",
    }
    assert seen["PATH"] == allowed["PATH"]


def test_child_has_three_streams_and_a_group_of_its_own(tmp_path: Path) -> None:
    script = (
        "import json, os, signal, sys\n"
        "fds = sorted(int(fd) for fd in os.listdir('/dev/fd'))\n"
        "print(json.dumps([fds[:4], sys.stdin.read(), os.getpgid(0) == os.getpid()]))"
    )
    env = shim(tmp_path / "bin", script, sys.executable)
    with (tmp_path / "open").open("wb"):
        fds, stdin, leads = json.loads(gitcmd.start([], env=env).finish(soon()).out)
    assert fds == [0, 1, 2, 3]  # 3 is the folder that is being listed
    assert stdin == ""
    assert leads


@pytest.mark.parametrize("name", ["PIPE", "XFSZ"])
def test_signals_that_python_ignores_are_not_ignored_by_git(tmp_path: Path, name: str) -> None:
    """A git that ignores SIGPIPE writes on when nobody reads; an ignored signal is inherited."""
    env = shim(tmp_path / "bin", f"kill -{name} $$; echo survived")
    result = gitcmd.start([], env=env).finish(soon())
    assert result.out == b""
    assert result.code == -getattr(signal, f"SIG{name}")


def test_works_where_the_standard_streams_are_closed(tmp_path: Path) -> None:
    """`savepoint create <&- >&- 2>&-`: the pipes then get the numbers 0 to 2."""
    script = (
        "import os, time\n"
        "from savepoint import gitcmd\n"
        "os.closerange(0, 3)\n"
        "running = gitcmd.start(['hash-object', '--stdin'], env=dict(PATH=os.environ['PATH']),"
        " stdin=b'x')\n"
        "result = running.finish(time.monotonic() + 120)\n"
        f"open({str(tmp_path / 'out')!r}, 'wb').write(result.out)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=180)
    told = subprocess.run(
        ["git", "hash-object", "--stdin"], input=b"x", capture_output=True, check=True
    )
    assert (tmp_path / "out").read_bytes() == told.stdout
