"""The report: which verdict counts, which exit code follows, which JSON others build on."""

from __future__ import annotations

import pytest

from savepoint.core import verdicts
from savepoint.core.verdicts import (
    CheckedSavepoint,
    Report,
    Verdict,
    Witness,
    passed,
    rolled_back,
    tampered,
    unchecked,
    worst,
)

PASS = passed("VERIFY-1", "fine")
FAIL = tampered("VERIFY-5", "changed")
BACK = rolled_back("VERIFY-4", "older")
SKIP = unchecked("VERIFY-5", "nobody could read it")
NEWER = unchecked("VERIFY-1", "version 2", unsupported=True)
OFF = Witness((), off="not configured")


def report(*found: verdicts.Finding, chain: verdicts.Finding = PASS) -> Report:
    witnesses = {"local": Witness(found or (PASS,)), "git": OFF}
    return Report(Witness((chain,)), (CheckedSavepoint(2, "sha256:" + "0" * 64, witnesses),))


def test_worst_is_in_the_order_of_the_design_and_off_does_not_count() -> None:
    order = ["TAMPERED", "ROLLED_BACK", "UNVERIFIABLE", "PENDING", "VERIFIED"]
    assert [str(one) for one in Verdict] == [*order, "OFF"]
    for at, name in enumerate(order):
        assert worst([Verdict.OFF, *map(Verdict, order[at:])]) is Verdict(name)
    assert worst([Verdict.OFF]) is Verdict.UNVERIFIABLE


@pytest.mark.parametrize(
    ("found", "verdict", "code"),
    [
        ([PASS], Verdict.VERIFIED, 0),
        ([PASS, SKIP], Verdict.UNVERIFIABLE, 21),
        ([SKIP, BACK], Verdict.ROLLED_BACK, 22),
        ([NEWER, PASS], Verdict.UNVERIFIABLE, 23),
        ([NEWER, SKIP], Verdict.UNVERIFIABLE, 23),
        ([NEWER, FAIL, BACK], Verdict.TAMPERED, 20),
    ],
)
def test_exit_code_follows_the_verdict(
    found: list[verdicts.Finding], verdict: Verdict, code: int
) -> None:
    assert (report(*found).verdict, report(*found).exit_code) == (verdict, code)
    assert bool(report(*found).hint) == (code != 0)


def test_pending_is_3() -> None:
    pending = verdicts.Finding("VERIFY-9", "skipped", "not pushed", Verdict.PENDING)
    assert (report(pending).exit_code, report(pending, SKIP).exit_code) == (3, 21)


def test_fault_of_the_index_counts_whatever_was_asked_for() -> None:
    assert report(chain=tampered("VERIFY-1", "line 9")).exit_code == 20


def test_hint_is_the_one_of_what_is_worst() -> None:
    own = unchecked("VERIFY-4", "no trusted head", hint="do this")
    assert report(SKIP, own).hint == "do this"
    assert report(own, BACK).hint == verdicts.REPAIR
    assert "fsck" in report(own, FAIL).hint
    assert "upgrade" in report(NEWER).hint


def test_json_has_the_members_that_others_build_on() -> None:
    assert report(FAIL).to_json() == {
        "verdict": "TAMPERED",
        "savepoints": [
            {
                "seq": 2,
                "snapshot_hash": "sha256:" + "0" * 64,
                "verdict": "TAMPERED",
                "witnesses": {
                    "local": {
                        "verdict": "TAMPERED",
                        "findings": [{"rule": "VERIFY-5", "result": "fail", "detail": "changed"}],
                    },
                    "git": {"verdict": "OFF", "findings": [], "reason": "not configured"},
                },
            }
        ],
        "index": {
            "verdict": "VERIFIED",
            "findings": [{"rule": "VERIFY-1", "result": "pass", "detail": "fine"}],
        },
        "repository": {"verdict": "OFF", "findings": [], "reason": "not asked"},
    }


def test_a_rule_that_says_nothing_was_not_looked_at() -> None:
    """One that was left out counted as one that holds."""
    rules = ("VERIFY-1", "VERIFY-2", "VERIFY-3")
    (_, second, third) = verdicts.completed([PASS], rules)
    assert {second.verdict, third.verdict} == {Verdict.UNVERIFIABLE}
    assert "was not looked at" in second.detail
    broken = tampered("VERIFY-2", "changed")
    assert verdicts.completed([broken, PASS], rules)[1:] == (
        broken,
        unchecked("VERIFY-3", "not looked at: VERIFY-2 does not hold"),
    )
    for skipped in (NEWER, verdicts.behind("VERIFY-1", "behind the border")):
        found = verdicts.completed([skipped], rules)
        assert [one._replace(rule="VERIFY-1") for one in found] == [skipped] * 3
