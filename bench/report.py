"""The table, and beside it what it was measured on and how."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from bench.measure import Series
    from bench.scale import Scale


class Row(NamedTuple):
    """One line. `ratio` and `target` share a unit: a ratio, or what the row tells, MB, s, calls."""

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


def passed_over(case: str, why: str) -> Row:
    """A row that cannot be measured here."""
    return Row(f"{case}: not measured, {why}", "", "", None, None)


def section(name: str, rows: list[Row], load: float) -> str:
    """The table of one case. load: the machine's load average when it began."""
    day = time.strftime("%Y-%m-%d", time.gmtime())
    lines = [
        f"{_HEADING}{name}",
        "",
        f"On {day}; load average when it began: {load:.1f}.",
        "",
        "| what | median | against | ratio | target | |",
        "| --- | --- | --- | --- | --- | --- |",
        *map(_line, rows),
    ]
    return "\n".join(lines) + "\n"


def document(sections: list[str], scale: Scale, folder: str) -> str:
    """bench/RESULTS.md."""
    how = _METHOD.format(rounds=scale.rounds, rest=scale.rest, entries=scale.entries)
    text = f"# Speed and memory\n\n{_machine(folder)}\n\n{_ABOUT}"
    return "\n".join([text, *sections, f"{_HEADING}{_HOW}\n\n{how}"])


def sections(text: str, folder: str) -> dict[str, str]:
    """Name → table of each case, of an earlier run on a machine like this; else nothing."""
    if _machine(folder) not in text:
        return {}
    parts = text.split(f"\n{_HEADING}")[1:]
    named = ((one.partition("\n")[0], one.strip()) for one in parts)
    return {name: f"{_HEADING}{one}\n" for name, one in named if name != _HOW}


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


_HEADING = "## "
_HOW = "How it is measured"
_ABOUT = """\
Each heading is a case: `bench/run NAME` measures it alone and replaces its table.
"""
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
- Stores do not anchor, as after `savepoint config ledger --unset`, but in the rows that say so.
- On a cluster: the real `solana-test-validator` with slots of 400 ms, {entries} entries after one
  that does not count. Calls are counted by a forwarder on the loopback between us and it. A call
  that asks for the status of a transaction is a poll for finality once a reply has called it
  confirmed; all others count. Finality is asked of the cluster beside us, every 20 ms.
- `resurrect` begins each time in a new store with that one savepoint. By hand means `git clone` of
  the one commit, then for each of its packs and its snapshot `git cat-file | age -d | zstd -d`,
  into one file. `bootstrap` has to open the backup of the keys as well, whose passphrase age
  stretches with 256 or 512 MiB of memory. What the remote sends is counted in an ssh that runs
  git's own side of it here.
- Events fire with 1 MiB more in the transcript, so that Stop saves it as well, and once more with
  nothing new. Old sessions are of 20 kB, and older than the store.
- Under load: a process for each processor never rests, and four sessions of one project fire at
  once, all events in turn. A fire is past its deadline by its wall time, start of Python included.
- The dynasty has lived through as many successions as it takes to have such a lineage; before each
  round its folder is as it was. The succession runs as a function in a process of its own
  (`bench/turn.py`), with what it imports, and asks git for the last commits.
- What is against nothing, or has no target, is shown for comparison.
"""
