"""Ways to spoil a file of a store, and what the local witness then says of its savepoints."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from savepoint.store import files
from savepoint.store.witness import evidence

if TYPE_CHECKING:
    import pytest

    from savepoint.core.verdicts import Report, Verdict


def failing(report: Report, seq: int) -> dict[str, str]:
    """Rule → details of what did not pass, of the local witness of one savepoint."""
    (one,) = [one for one in report.savepoints if one.seq == seq]
    found: dict[str, str] = {}
    for finding in one.witnesses["local"].findings:
        if finding.result != "pass":
            found[finding.rule] = found.get(finding.rule, "") + finding.detail + "\n"
    return found


def of(report: Report) -> dict[int, Verdict]:
    return {one.seq: one.verdict for one in report.savepoints}


def unreadable(
    monkeypatch: pytest.MonkeyPatch, path: Path, code: int, *, reading: bool = False
) -> None:
    """The kernel refuses to open one file, or to read it; everything else is as it is."""
    real_open, real_read = files.open_regular, os.read

    def open_regular(name: str) -> int:
        if name == str(path) and not reading:
            raise OSError(code, os.strerror(code), name)
        return real_open(name)

    def read(fd: int, size: int) -> bytes:
        if (
            reading
            and os.path.exists(f"/proc/self/fd/{fd}")
            and os.path.samestat(os.fstat(fd), path.stat())
        ):
            raise OSError(code, os.strerror(code))
        return real_read(fd, size)

    monkeypatch.setattr(evidence, "open_regular", open_regular)
    monkeypatch.setattr(os, "read", read)


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


SPOILING = [Path.unlink, _cut, _grow, _empty, _link, _folder, _fifo]
SPOILING_IDS = ["missing", "cut", "grown", "emptied", "link", "folder", "fifo"]
