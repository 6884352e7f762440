"""Every fault at every file syscall of a save, and every power cut; prints what came of it."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.fault import sweep
from tests.fault.power import PowerCut
from tests.fault.sweep import Birth, Outcome, Sweep

if TYPE_CHECKING:
    from collections.abc import Iterable

WORKERS = os.cpu_count() or 1
SHARDS = 4 * WORKERS
OPTIONS = ("auto_da_alloc", "noauto_da_alloc")


class Part(NamedTuple):
    """What one shard found."""

    runs: Counter[tuple[str, str, str]]  # what was run, fault, syscall
    missed: int  # runs in which the call did not occur: counts vary a little from run to run
    problems: list[str]


def main() -> int:
    """Run everything; returns the exit code."""
    began = time.monotonic()
    with ProcessPoolExecutor(WORKERS) as pool:
        hooks = pool.map(_swept, ["hook"] * SHARDS, range(SHARDS))
        creates = pool.map(_swept, ["create"] * SHARDS, range(SHARDS))
        births = pool.map(_born, range(SHARDS))
        cuts = pool.map(_cut, [*OPTIONS, *OPTIONS], [False, False, True, True])
        parts = [*hooks, *creates, *births, *cuts]
    _print(parts, time.monotonic() - began)
    return 1 if any(part.problems for part in parts) else 0


def _swept(command: str, shard: int) -> Part:
    """All faults at all calls of the hook; of `create`, which does the same within a larger
    program, at those that change the store.
    """
    with tempfile.TemporaryDirectory() as folder:
        swept = Sweep.prepare(Path(folder), command)
        calls = swept.calls()
        if command == "create":
            calls = [call for call in calls if call.changes(str(swept.scene.home))]
        outcomes = [swept.run(case) for case in sweep.cases(calls)[shard::SHARDS]]
        swept.scene.settle()  # a worker would make folders anew while they are removed
    return _part(command, outcomes)


def _born(shard: int) -> Part:
    with tempfile.TemporaryDirectory() as folder:
        birth = Birth.prepare(Path(folder))
        outcomes = [birth.run(case) for case in sweep.cases(birth.calls())[shard::SHARDS]]
        birth.scene.settle()
    return _part("init", outcomes)


def _part(what: str, outcomes: list[Outcome]) -> Part:
    runs = Counter((what, one.case.fault, one.case.call.syscall) for one in outcomes)
    missed = sum(not one.reached for one in outcomes)
    return Part(runs, missed, [problem for one in outcomes for problem in one.problems])


def _cut(options: str, commits: bool) -> Part:  # noqa: FBT001  # called by map
    how = f"power cut, {options}, journal {'committed' if commits else 'as it was'}"
    with tempfile.TemporaryDirectory() as folder:
        cut = PowerCut.prepare(Path(folder), options)
        calls = cut.calls()
        problems = [problem for call in calls for problem in cut.run(call, commits=commits)]
    return Part(Counter((how, "cut", call.syscall) for call in calls), 0, problems)


def _print(parts: Iterable[Part], seconds: float) -> None:
    runs: Counter[tuple[str, str, str]] = Counter()
    problems: list[str] = []
    missed = 0
    for part in parts:
        runs += part.runs
        missed += part.missed
        problems += part.problems
    day = time.strftime("%Y-%m-%d", time.gmtime())
    machine = (
        f"{platform.system()} {platform.release()}, {platform.machine()}, {WORKERS} processors"
    )
    print(f"{day}, {machine}, Python {platform.python_version()}, {seconds:.0f} s: ", end="")
    print(f"{runs.total()} runs, {missed} of them missed their call, {len(problems)} problems.\n")
    print("| what was run | fault | runs | by syscall |")
    print("| --- | --- | --- | --- |")
    for what, fault in dict.fromkeys((what, fault) for what, fault, _ in runs):
        of = {name: n for (w, f, name), n in sorted(runs.items()) if (w, f) == (what, fault)}
        listed = ", ".join(f"{name} {count}" for name, count in of.items())
        print(f"| {what} | {fault} | {sum(of.values())} | {listed} |")
    for problem in problems:
        print(f"\n{problem}")


if __name__ == "__main__":
    sys.exit(main())
