"""The benchmark ends and tells about every case. Its times are never asserted: they are a machine's
and a moment's.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from bench import program, report
from bench.forwarder import Call, Forwarder
from bench.report import Row
from bench.scale import FULL
from tests.conftest import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

RESULTS = PROJECT / "bench" / "RESULTS.md"

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
    "a store that anchors",
    "VERIFIED on the embedded ledger",
    "on a cluster",
    "restored, no ledger",
    "restored, anchored on the embedded ledger",
    "`resurrect` of 3 MB",
    "`bootstrap`",
    "PreCompact (auto), 1 MiB new; 3 MB",
    "PreCompact (manual), nothing new",
    "PostCompact",
    "SessionStart (resume), 1 MiB new; 3 MB, beside 10 old sessions",
    "UserPromptSubmit, nothing new",
    "Stop, 1 MiB new",
    "SessionEnd",
    "12 fires of 4 sessions under load",
    "given up by the hook",
    "30 entries in Day, Dusk full, 100 in the lineage",
    "succession without its savepoint",
)


@pytest.mark.xdist_group("validator")  # there is one more of it
@pytest.mark.timeout(600)
def test_bench_tells_about_every_case() -> None:
    before = RESULTS.read_bytes()
    run = [str(PROJECT / "bench" / "run"), "--quick"]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [line for line in done.stdout.splitlines() if line.startswith("| ")]
    assert [case for case in _CASES if not any(case in row for row in rows)] == []
    assert RESULTS.read_bytes() == before


def test_an_unknown_case_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["bench/run", "--quick", "steady", "speed"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == 2
    assert "no case speed; the cases are steady, " in capsys.readouterr().err


def test_one_case_replaces_its_own_table_alone(tmp_path: Path) -> None:
    rows = [Row("a", "1 ms", "b: 1 ms", 1.0, 2)]
    first = [report.section(name, rows, 0.5) for name in ("steady", "first")]
    text = report.document(first, FULL, str(tmp_path))
    known = report.sections(text, str(tmp_path))
    assert list(known.values()) == first
    known["first"] = report.section("first", [rows[0]._replace(ratio=3.0)], 0.5)
    after = report.document(list(known.values()), FULL, str(tmp_path))
    assert after.replace("3.00 | ≤ 2 | **missed**", "1.00 | ≤ 2 | met", 1) == text
    assert "**missed**" in after


def test_what_another_machine_has_measured_is_not_kept(tmp_path: Path) -> None:
    text = report.document([report.section("steady", [], 0.5)], FULL, str(tmp_path))
    assert report.sections(text.replace(" cores (", " more cores ("), str(tmp_path)) == {}


def test_results_are_those_of_cases_that_there_are() -> None:
    names = [line[3:] for line in RESULTS.read_text().splitlines() if line.startswith("## ")]
    assert set(names[:-1]) <= set(program.CASES)
    assert names[-1] == "How it is measured"


def test_waits_for_finality_are_not_counted_as_calls() -> None:
    with Forwarder("http://127.0.0.1:1") as forwarder:
        forwarder.calls = [
            Call(method, 0.0, is_confirmed=confirmed)
            for method, confirmed in (
                ("sendTransaction", False),
                ("getSignatureStatuses", False),
                ("getSignatureStatuses", True),
                ("getGenesisHash", False),
                ("getSignatureStatuses", True),
                ("getMultipleAccounts", False),
            )
        ]
        assert forwarder.besides_finality() == 5
