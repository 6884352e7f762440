"""The benchmark ends and tells about every case. Its times are never asserted: they are a machine's
and a moment's.
"""

from __future__ import annotations

import subprocess

import pytest

from tests.conftest import PROJECT

_CASES = (
    "`python -I -c pass`",
    "to acknowledged",
    "6 MB + 1 MB new",
    "copy in git",
    "`cp`, `git add`, `git commit`",
    "nothing new",
    "stored bytes",
    "`create`",
    "auto compaction",
    "first save of 3 MB",
    "peak memory",
    "savepoint number 12",
    "`verify --all`",
    "bytes read",
)


@pytest.mark.timeout(180)
def test_bench_tells_about_every_case() -> None:
    results = PROJECT / "bench" / "RESULTS.md"
    before = results.read_bytes() if results.exists() else None
    done = subprocess.run(
        [PROJECT / "bench" / "run", "--quick"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [case for case in _CASES if not any(case in row for row in rows)] == []
    assert before == (results.read_bytes() if results.exists() else None)
