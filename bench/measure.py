"""Whole processes from outside: wall time, peak memory of the process tree, bytes read."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_SAMPLE_SECONDS = 0.001


class Command(NamedTuple):
    """What is run."""

    args: Sequence[str]
    env: Mapping[str, str]
    cwd: str
    stdin: bytes = b""
    code: int | None = 0  # exit code that it must end with; None: any

    def start(self) -> subprocess.Popen[bytes]:
        """Start it, its stdin written and closed. What it prints is thrown away."""
        process = subprocess.Popen(
            self.args,
            env=self.env,
            cwd=self.cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None  # noqa: S101  # asked for just above
        process.stdin.write(self.stdin)
        process.stdin.close()
        return process

    def seconds(self) -> float:
        """Wall time from before its start until it was reaped."""
        begun = time.perf_counter()
        process = self.start()
        code = process.wait()
        taken = time.perf_counter() - begun
        self._demand_end(code)
        return taken

    def peak_bytes(self) -> int:
        """The most resident memory that its process tree had at one time (VmRSS of all of it, read
        every millisecond), and never less than the peak that the kernel kept of the process
        itself (VmHWM; `ru_maxrss` begins with that of the parent). Pages that processes share count
        for each.
        """
        peak = 0
        process = self.start()
        while process.poll() is None:
            together = sum(_memory(pid, "VmRSS") for pid in _tree(process.pid))
            peak = max(peak, together, _memory(process.pid, "VmHWM"))
            time.sleep(_SAMPLE_SECONDS)
        self._demand_end(process.returncode)
        return peak

    def bytes_read(self) -> int:
        """What it took through read and its like, from wherever (rchar of /proc/PID/io)."""
        process = self.start()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        with open(f"/proc/{process.pid}/io", encoding="ascii") as file:
            fields = dict(line.split(": ") for line in file)
        self._demand_end(process.wait())
        return int(fields["rchar"])

    def output(self) -> bytes:
        """What it prints on stdout."""
        ran = subprocess.run(
            self.args,
            env=self.env,
            cwd=self.cwd,
            input=self.stdin,
            capture_output=True,
            check=False,
        )
        self._demand_end(ran.returncode)
        return ran.stdout

    def _demand_end(self, code: int) -> None:
        if code != self.code and self.code is not None:
            raise SystemExit(f"bench: error: exit code {code} of {' '.join(self.args)}")


def _tree(pid: int) -> list[int]:
    """A process and its descendants, as far as they live. One that has not become another program
    yet still has the memory of its parent, and is not counted twice.
    """
    own = _read(f"/proc/{pid}/cmdline")
    children = map(int, _read(f"/proc/{pid}/task/{pid}/children").split())
    others = [one for one in children if _read(f"/proc/{one}/cmdline") != own]
    return [pid, *(one for child in others for one in _tree(child))]


def _memory(pid: int, kind: str) -> int:
    """Bytes; 0 for a process that has just ended."""
    lines = _read(f"/proc/{pid}/status").splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{kind}:")), 0)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


class Series:
    """Times of things measured in turn, round by round."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {}

    def rounds(self, count: int) -> Iterator[Series]:
        """Where the times of each round go: those of one before the others do not count. A single
        round has none before it.
        """
        if count > 1:
            yield Series()
        for _ in range(count):
            yield self

    def add(self, name: str, seconds: float) -> None:
        """One time of this round."""
        self._seconds.setdefault(name, []).append(seconds)

    def median(self, name: str) -> float:
        """Seconds."""
        return statistics.median(self._seconds[name])

    def least(self, name: str) -> float:
        """Seconds."""
        return min(self._seconds[name])

    def ratio(self, name: str, reference: str) -> float:
        """Median of the rounds' own ratios: what slows a whole round down cancels out."""
        pairs = zip(self._seconds[name], self._seconds[reference], strict=True)
        return statistics.median(one / other for one, other in pairs)
