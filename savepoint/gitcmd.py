"""The one way to run git: bounded in time and bytes, in an environment that names no repository.

`start` returns at once, so that several git processes work beside our own imports; `finish` reads
stdout and stderr together (one pipe at a time deadlocks as soon as the other is full), and kills
the whole process group when the deadline or the size limit passes. No failure of git is an
exception: a `Result` says what happened.

It stands on the hook's path: `subprocess` would cost 13 ms to import.
"""

from __future__ import annotations

import os
import select
import time
from contextlib import contextmanager

from savepoint.core import limits
from savepoint.core.named import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Iterable, Iterator, Mapping, Sequence
else:
    import _signal as signal  # as in hook.py

# What every git gets beside the caller's environment, of which no GIT_* is passed on: GIT_DIR or
# GIT_INDEX_FILE, set inside any git hook, would make git read or write another repository.
_ALWAYS = {
    "LC_ALL": "C",  # what is shown of its messages is in one language
    "GIT_OPTIONAL_LOCKS": "0",  # no refreshed index is written back
    "GIT_NO_LAZY_FETCH": "1",  # a missing object is missing, not fetched
    "GIT_NO_REPLACE_OBJECTS": "1",  # ids mean the objects they name
    "GIT_TERMINAL_PROMPT": "0",  # no question is ever asked
}

_OWN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

NOT_STARTED = 127  # exit code where there was no process
_ENDS_US = (signal.SIGALRM, signal.SIGINT, signal.SIGTERM)  # what may raise between any two steps
_living: set[int] = set()  # groups that were started, and neither ended nor were killed
_PIPE_CHUNK = 64 * limits.KIB  # bytes: what a pipe holds


class Result(NamedTuple):
    """What became of one git process."""

    code: int  # exit status; minus the signal's number; NOT_STARTED
    out: bytes
    err: bytes  # GIT_ERROR_BYTES of it: its first half and its last
    problem: str  # why `out` cannot be relied on although git may not be to blame, or nothing

    @property
    def ok(self) -> bool:
        """Git ran to its end and says that it succeeded."""
        return self.code == 0 and not self.problem

    @property
    def reason(self) -> str:
        """In words why it is not `ok`."""
        if self.problem:
            return self.problem
        lines = self.err.decode("utf-8", "backslashreplace").split("\n")
        said = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[0])
        ended = f"ended by signal {-self.code}" if self.code < 0 else f"exit code {self.code}"
        return f"git: {said or ended}"[: limits.GIT_REASON_CHARS]


class Running:
    """A git process at work. `finish` it or `stop` it; what is neither is left to run."""

    def __init__(self, pid: int, pipes: _Pipes, stdin: Iterable[bytes], limit: int) -> None:
        self._pid = pid
        self._pipes = pipes
        self._source = iter(stdin)
        self._stdin = memoryview(b"")
        self._limit = limit
        self._out = bytearray()
        self._err = bytearray()

    def finish(self, deadline: float) -> Result:
        """Feed it, read it to its end and reap it; at `deadline` (of time.monotonic) kill it.

        It is killed as well when what makes its stdin raises, which is raised here.
        """
        try:
            problem = self._exchange(deadline)
        except BaseException:
            self.stop()
            raise
        self._pipes.close()
        code = None if problem else self._wait(deadline)
        if code is None:
            problem = problem or "out of time"
            code = self._kill()
        return Result(code, bytes(self._out), bytes(self._err), problem)

    def stop(self) -> None:
        """Kill it: nobody is interested any more. Harmless after `finish`."""
        self._pipes.close()
        self._kill()

    def _exchange(self, deadline: float) -> str:
        poll = select.poll()
        for fd in (self._pipes.out, self._pipes.err):
            poll.register(fd, select.POLLIN)
        if self._pipes.stdin >= 0:
            poll.register(self._pipes.stdin, select.POLLOUT)
        waiting = {self._pipes.out, self._pipes.err}
        while waiting:
            left = deadline - time.monotonic()
            if left <= 0:
                return "out of time"
            for fd, _ in poll.poll(left * 1000):
                if fd == self._pipes.stdin:
                    if self._feed():
                        poll.unregister(fd)
                        self._pipes.close_stdin()
                elif not self._drain(fd):
                    poll.unregister(fd)
                    waiting.remove(fd)
            if len(self._out) > self._limit:
                return f"git wrote more than {self._limit} bytes"
        return ""

    def _feed(self) -> bool:
        """Write what the pipe takes; True when all is written, or nobody reads any more."""
        if not self._stdin:
            chunk = next(self._source, None)
            if chunk is None:
                return True
            self._stdin = memoryview(chunk)
        try:
            written = os.write(self._pipes.stdin, self._stdin[:_PIPE_CHUNK])
        except BlockingIOError:
            return False
        except OSError:  # EPIPE: its exit code tells why
            return True
        self._stdin = self._stdin[written:]
        return False

    def _drain(self, fd: int) -> bool:
        """Read what is there; False at the end. A flood on stderr is read, not kept."""
        chunk = os.read(fd, _PIPE_CHUNK)
        if fd == self._pipes.out:
            self._out += chunk
        else:
            self._err += chunk
            if len(self._err) > limits.GIT_ERROR_BYTES:
                half = limits.GIT_ERROR_BYTES // 2
                self._err[half - 1 : -half] = b"\n"
        return bool(chunk)

    def _wait(self, deadline: float) -> int | None:
        """The exit code, or None: a process may close its pipes and live on."""
        pause = 0.0002
        while True:
            with _undisturbed():  # the number of a reaped one may soon be another's
                pid, status = os.waitpid(self._pid, os.WNOHANG)
                if pid:
                    _living.discard(pid)
                    self._pid = 0
                    return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= deadline:
                return None
            time.sleep(pause)
            pause = min(2 * pause, 0.01)

    def _kill(self) -> int:
        """End the whole group (git starts programs of its own), and reap git itself."""
        if not self._pid:
            return NOT_STARTED
        pid = self._pid
        _kill_group(pid)  # first: an alarm of the hook that comes in between must not spare it
        _living.discard(pid)
        self._pid = 0
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


class Failed(Running):
    """A git that never ran: no git, no descriptors, no process."""

    def __init__(self, problem: str) -> None:
        super().__init__(0, _Pipes(), (), 0)
        self._problem = problem

    def finish(self, deadline: float) -> Result:  # noqa: ARG002  # there is nothing to wait for
        """Say why."""
        return Result(NOT_STARTED, b"", b"", self._problem)


def start(
    args: Sequence[str],
    *,
    env: Mapping[str, str],
    stdin: bytes | Iterable[bytes] = b"",
    limit: int = limits.GIT_OUTPUT_BYTES,
    own: bool = False,
    variables: Mapping[str, str] = {},
) -> Running:
    """Start `git ARGS` in a session and process group of its own: it has no terminal to ask on.
    `env` holds all that it may see of the environment, and `variables` what is put over it, GIT_*
    too; `limit` is in bytes of stdout. A `stdin` in pieces is made while git reads it. `own`: the
    repository is ours, and no config of the user's or the machine's counts for it.
    Never raises for want of git or of resources.
    """
    program = find_git(env)
    if program is None:
        return Failed("there is no git in PATH")
    pipes = _Pipes()
    try:
        pipes.open(with_stdin=stdin != b"")
        seen = _environment(env) | (_OWN if own else {}) | dict(variables)
        with _undisturbed():
            pid = _spawn(program, args, seen, pipes)
            _living.add(pid)
    except OSError as failure:
        pipes.close()
        return Failed(f"git cannot be started: {failure.strerror}")
    pipes.close_far_ends()
    return Running(pid, pipes, (stdin,) if isinstance(stdin, bytes) else stdin, limit)


def end_all() -> None:
    """Kill every git that is left. For who ends the process: an alarm or a Ctrl-C may raise before
    anybody has hold of a git that runs already, and it would outlive us.
    """
    while _living:
        _kill_group(_living.pop())


@contextmanager
def _undisturbed() -> Iterator[None]:
    """No signal raises within the block; one that comes meanwhile does at its end."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS_US)  # raises what came before it
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:  # it has ended by itself; it is still ours to reap
        return


def find_git(env: Mapping[str, str]) -> str | None:
    """The first git in `env`'s PATH. Relative entries are skipped: with `.` in PATH a project
    could bring a git of its own.
    """
    for folder in env.get("PATH", os.defpath).split(os.pathsep):
        program = os.path.join(folder, "git")
        if os.path.isabs(folder) and os.path.isfile(program) and os.access(program, os.X_OK):
            return program
    return None


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    return {name: env[name] for name in env if not name.startswith("GIT_")} | _ALWAYS


def _spawn(program: str, args: Sequence[str], env: Mapping[str, str], pipes: _Pipes) -> int:
    actions: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_DUP2, pipes.far_stdin, 0)
        if pipes.far_stdin >= 0
        else (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_DUP2, pipes.far_out, 1),
        (os.POSIX_SPAWN_DUP2, pipes.far_err, 2),
    ]

    def spawn(**apart: bool | int) -> int:
        return os.posix_spawn(
            program,
            ["git", *args],
            env,
            file_actions=actions,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # Python ignores both; it is inherited
            **apart,  # type: ignore[arg-type]  # setsid or setpgroup
        )

    try:
        return spawn(setsid=True)
    except NotImplementedError:  # this system cannot: a group of its own must do
        return spawn(setpgroup=0)


class _Pipes:
    """Our ends and the child's ("far") of its three streams; -1 where closed."""

    def __init__(self) -> None:
        self.stdin = self.out = self.err = -1
        self.far_stdin = self.far_out = self.far_err = -1

    def open(self, *, with_stdin: bool) -> None:
        self.out, self.far_out = os.pipe()
        self.err, self.far_err = os.pipe()
        if with_stdin:
            self.far_stdin, self.stdin = os.pipe()
            os.set_blocking(self.stdin, False)

    def close_far_ends(self) -> None:
        _close(self.far_stdin, self.far_out, self.far_err)
        self.far_stdin = self.far_out = self.far_err = -1

    def close_stdin(self) -> None:
        _close(self.stdin)
        self.stdin = -1

    def close(self) -> None:
        self.close_far_ends()
        self.close_stdin()
        _close(self.out, self.err)
        self.out = self.err = -1


def _close(*descriptors: int) -> None:
    for fd in descriptors:
        if fd >= 0:
            os.close(fd)
