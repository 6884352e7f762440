"""Measures cases, all or those named, and tells what came out: on stdout, and in bench/RESULTS.md
unless --quick.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from bench import report
from bench.cases import anchoring, dynasty, firing, resurrecting, saving, verifying
from bench.scale import FULL, QUICK
from bench.world import ROOT, World

CASES = {
    case.__name__: case
    for case in (
        saving.steady,
        saving.beside,
        saving.first,
        saving.old_store,
        verifying.verify,
        anchoring.anchor,
        anchoring.cluster,
        resurrecting.resurrect,
        resurrecting.bootstrap,
        firing.events,
        firing.load,
        dynasty.succession,
    )
}
RESULTS = os.path.join(ROOT, "bench", "RESULTS.md")


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small and few: shows that it runs, measures nothing"
    )
    parser.add_argument("case", nargs="*", help=", ".join(CASES))
    asked = parser.parse_args()
    if unknown := set(asked.case) - set(CASES):
        parser.error(f"no case {', '.join(sorted(unknown))}; the cases are {', '.join(CASES)}")
    scale = QUICK if asked.quick else FULL
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=os.path.join(ROOT, "build")) as folder:
        known = {} if asked.quick else _known(folder)
        world = World(folder)
        for name in asked.case or CASES:
            print(f"bench: {name}", file=sys.stderr, flush=True)
            load = os.getloadavg()[0]
            known[name] = report.section(name, CASES[name](world, scale), load)
            print(known[name], flush=True)
            world.clear()
            if not asked.quick:
                _write(known, folder)


def _known(folder: str) -> dict[str, str]:
    with open(RESULTS, encoding="utf-8") as file:
        return report.sections(file.read(), folder)


def _write(known: dict[str, str], folder: str) -> None:
    """At once: a run that is broken off keeps what it has measured."""
    text = report.document([known[name] for name in CASES if name in known], FULL, folder)
    with open(RESULTS, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
