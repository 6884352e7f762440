"""Rule 4 on the bytes of an index: an end that is cut off, a fork, a gap, a head that is lost."""

from __future__ import annotations

import pytest

from savepoint.core.chain import Gap
from savepoint.core.verdicts import Lack, Verdict
from savepoint.core.verify_index import Index
from tests.verify.indexes import (
    CHAIN,
    NAMES,
    OTHER_SEED,
    SEEN,
    WHOLE,
    Head,
    accept,
    head,
    judge,
    lines,
    rewritten,
    save,
    verdicts,
)


@pytest.mark.parametrize("kept", [5, 3, 1, 0])
def test_verify_4_index_without_its_end_is_rolled_back_for_every_savepoint(kept: int) -> None:
    data = lines(*CHAIN[:kept])
    assert judge(data) == (Verdict.ROLLED_BACK, {"VERIFY-4"})
    assert set(verdicts(data).values()) <= {Verdict.ROLLED_BACK}


def test_verify_4_trusted_head_that_lags_is_normal() -> None:
    assert judge(WHOLE, head(CHAIN[4]))[0] is Verdict.VERIFIED


def test_verify_4_damaged_last_line_is_not_also_a_rollback() -> None:
    verdict, rules = judge(lines(*CHAIN[:5], b"{}"))
    assert (verdict, rules) == (Verdict.TAMPERED, {"VERIFY-1"})


def test_verify_4_other_record_under_the_sequence_seen_is_a_fork() -> None:
    other = save(6, CHAIN[4].hash, text="other")
    further = save(7, other.hash)
    for data in (lines(*CHAIN[:5], other), lines(*CHAIN[:5], other, further)):
        assert judge(data) == (Verdict.ROLLED_BACK, {"VERIFY-4"})
        (found,) = [one for one in Index(data, SEEN, NAMES).findings() if one.result == "fail"]
        assert "two signed records of one key with one sequence: 6" in found.detail


def test_verify_4_two_signed_records_with_one_sequence_in_the_index_are_a_fork() -> None:
    other = save(6, CHAIN[4].hash, text="other")
    data = lines(*CHAIN, other)
    assert judge(data) == (Verdict.ROLLED_BACK, {"VERIFY-4"})
    unsigned = rewritten(CHAIN[5], trigger="auto")
    assert judge(lines(*CHAIN, unsigned))[0] is Verdict.TAMPERED


GAP = Gap(4, 6)
AFTER = save(7, CHAIN[5].hash)
GONE_ON = [*CHAIN[:3], AFTER]


def test_verify_4_gap_that_was_gone_on_from_is_a_rollback_for_every_savepoint() -> None:
    data = lines(*GONE_ON)
    assert judge(data, head(AFTER, GAP)) == (Verdict.ROLLED_BACK, {"VERIFY-4"})
    assert set(verdicts(data, head(AFTER, GAP)).values()) == {Verdict.ROLLED_BACK}


def test_verify_4_gap_is_known_before_the_head_was_raised_over_it() -> None:
    assert judge(lines(*GONE_ON), SEEN) == (Verdict.ROLLED_BACK, {"VERIFY-4"})


def test_verify_4_accepted_gap_passes() -> None:
    accepted = accept(8, AFTER.hash, GAP)
    data = lines(*GONE_ON, accepted)
    assert judge(data, head(accepted, GAP))[0] is Verdict.VERIFIED
    assert judge(data, head(accepted))[0] is Verdict.VERIFIED
    at_once = accept(7, CHAIN[5].hash, GAP)
    assert judge(lines(*CHAIN[:3], at_once), head(at_once, GAP))[0] is Verdict.VERIFIED


@pytest.mark.parametrize("gap", [Gap(4, 5), Gap(5, 6), Gap(3, 6), None])
def test_verify_4_accept_record_of_something_else_accepts_nothing(gap: Gap | None) -> None:
    accepted = accept(8, AFTER.hash, gap)
    data = lines(*GONE_ON, accepted)
    assert judge(data, head(accepted, GAP))[0] is Verdict.ROLLED_BACK


def test_verify_4_accept_record_that_the_key_did_not_sign_accepts_nothing() -> None:
    forged = accept(8, AFTER.hash, GAP, seed=OTHER_SEED)
    found = Index(lines(*GONE_ON, forged), head(AFTER, GAP), NAMES)
    assert found.unaccepted_gaps() == [GAP]


def test_verify_4_more_lines_cut_beside_an_accepted_gap_are_tampering() -> None:
    accepted = accept(8, AFTER.hash, GAP)
    data = lines(*CHAIN[:2], AFTER, accepted)
    assert judge(data, head(accepted, GAP))[0] is Verdict.TAMPERED


@pytest.mark.parametrize("seen", [None, head(CHAIN[-1], recreated=True)])
def test_verify_4_without_a_trusted_head_freshness_cannot_be_told(seen: Head | None) -> None:
    assert judge(WHOLE, seen) == (Verdict.UNVERIFIABLE, {"VERIFY-4"})
    (found,) = [one for one in Index(WHOLE, seen, NAMES).findings() if one.result != "pass"]
    assert found.result == "skipped"
    assert found.hint == "run `savepoint fsck --repair`"


def test_verify_4_recreated_head_still_shows_a_later_rollback() -> None:
    seen = head(CHAIN[-1], recreated=True)
    assert judge(lines(*CHAIN[:4]), seen)[0] is Verdict.ROLLED_BACK


def test_verify_4_unreadable_trusted_head_could_not_be_checked() -> None:
    lack = Lack("cannot be read: input/output error", unreadable=True)
    assert judge(WHOLE, lack) == (Verdict.UNVERIFIABLE, {"VERIFY-4"})


def test_gap_is_told_from_no_gap() -> None:
    assert Index(WHOLE, SEEN, NAMES).unaccepted_gaps() == []
    assert Index(WHOLE, SEEN, NAMES).is_unbroken
    assert not Index(lines(*CHAIN[:5], b"x"), SEEN, NAMES).is_unbroken
    assert not Index(b"", None, NAMES).is_unbroken
