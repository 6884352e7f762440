"""The table, and beside it what it was measured on and how."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bench.cases import Scale
    from bench.measure import Series


class Row(NamedTuple):
    """One line. `ratio` and `target` share a unit: a ratio, or the MB of a memory row."""

    case: str
    measured: str
    against: str
    ratio: float | None
    target: float | None  # None: shown, not bounded


def bound(
    case: str, series: Series, name: str, reference: str, against: str, target: float | None
) -> Row:
    """A row of times."""
    against += f": {series.median(reference) * 1000:.1f} ms"
    return Row(case, _times(series, name), against, series.ratio(name, reference), target)


def shown(case: str, series: Series, name: str) -> Row:
    """A row of a time that others are measured against."""
    return Row(case, _times(series, name), "", None, None)


def _times(series: Series, name: str) -> str:
    return f"{series.median(name) * 1000:.1f} ms (least {series.least(name) * 1000:.1f})"


def document(rows: list[Row], scale: Scale, folder: str, load: float) -> str:
    """bench/RESULTS.md. load: the machine's load average when the run began."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    lines = [
        "# Speed and memory",
        "",
        f"`bench/run` on {day}. {_machine(folder)} Load average when it began: {load:.1f}.",
        "",
        "| case | median | against | ratio | target | |",
        "| --- | --- | --- | --- | --- | --- |",
        *map(_line, rows),
        "",
        _METHOD.format(rounds=scale.rounds, rest=scale.rest),
    ]
    return "\n".join(lines)


def _line(row: Row) -> str:
    ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
    if row.target is None:
        return f"| {row.case} | {row.measured} | {row.against} | {ratio} | | |"
    met = "met" if row.ratio is not None and row.ratio <= row.target else "**missed**"
    return f"| {row.case} | {row.measured} | {row.against} | {ratio} | ≤ {row.target:g} | {met} |"


def _machine(folder: str) -> str:
    git = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True)
    return (
        f"{os.cpu_count()} cores ({_processor()}), {platform.system()} {platform.release()}, "
        f"{platform.python_implementation()} {platform.python_version()}, {git.stdout.strip()}; "
        f"data and stores on {_file_system(folder)}, in the checkout's `build/`."
    )


def _processor() -> str:
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        names = [line.partition(":")[2].strip() for line in file if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _file_system(folder: str) -> str:
    """The type of the file system that a folder lies on."""
    with open("/proc/mounts", encoding="utf-8") as file:
        mounts = [line.split()[1:3] for line in file]
    over = [(len(at), kind) for at, kind in mounts if os.path.commonpath((at, folder)) == at]
    return max(over)[1]


_METHOD = """\
- Times are of whole processes, from before the start until they were reaped, as a parent sees them.
  The hook runs as `python -I savepoint-hook PreCompact`, trigger manual, in a git repository of
  1,000 files of which three are changed and one is new. After each fire the index is counted: a
  hook that had failed would stop the run.
- Ratios are medians over {rounds} rounds of the ratio within a round, in which the two are measured
  one right after the other, after one round that does not count. Before each round all disks are
  synced, so that what the preparation wrote does not weigh on what is measured, and transcripts are
  still for {rest:g} s. Pages are in the cache. 1 MB is 10^6 bytes.
- The sessions are generated from a fixed seed (`bench/material.py`).
- Peak memory is the most that the processes of the tree had together (VmRSS, read every
  millisecond; what they share counts for each), and never less than the peak that the kernel kept
  of the process itself.
- Bytes read are those of all read calls (rchar of /proc/PID/io), less those of the same command in
  an empty store. Stored bytes are the growth of all files of the store but logs.
- Targets are those of a save with its encrypted commit to our own git repository, as it is made.
- Stores with many savepoints, and the sessions that are verified, are made by the code that saves,
  with syncing off and without asking git about the project; where they are "not in git yet", no git
  is found at all.
- What is against nothing, or has no target, is shown for comparison.
"""
