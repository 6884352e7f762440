"""Runs every case and tells what came out: on stdout, and in bench/RESULTS.md unless --quick."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile

from bench import cases, report
from bench.cases import FULL, QUICK
from bench.world import ROOT, World


def main() -> None:
    """The program."""
    parser = argparse.ArgumentParser(prog="bench/run", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="small and few: shows that it runs, measures nothing"
    )
    scale = QUICK if parser.parse_args().quick else FULL
    load = os.getloadavg()[0]
    rows = []
    os.makedirs(os.path.join(ROOT, "build"), exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="bench-", dir=os.path.join(ROOT, "build")) as folder:
        world = World(folder)
        for case in cases.ALL:
            print(f"bench: {case.__name__}", file=sys.stderr, flush=True)
            rows += case(world, scale)
        text = report.document(rows, scale, folder, load)
    print(text)
    if scale is FULL:
        with open(os.path.join(ROOT, "bench", "RESULTS.md"), "w", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    main()
