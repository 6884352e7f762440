"""Rules 1 to 3 on the bytes of an index: every way to change, cut, reorder or forge it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core.verdicts import Lack, Verdict, Witness
from savepoint.core.verify_index import Index
from tests.verify.indexes import (
    CHAIN,
    NAMES,
    OTHER_SEED,
    SEEN,
    WHOLE,
    birth,
    head,
    judge,
    lines,
    rewritten,
    save,
    verdicts,
)

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


def test_whole_index_passes_all_rules() -> None:
    assert judge(WHOLE) == (Verdict.VERIFIED, set())
    assert set(verdicts(WHOLE).values()) == {Verdict.VERIFIED}


# VERIFY-1


@pytest.mark.parametrize("mask", [0x01, 0x80])
@pytest.mark.parametrize("number", [1, 3, 6])
def test_verify_1_to_4_every_flipped_byte_of_a_line_is_tampering(number: int, mask: int) -> None:
    before, line = lines(*CHAIN[: number - 1]), CHAIN[number - 1].line + b"\n"
    after = lines(*CHAIN[number:])
    for at in range(len(line)):
        flipped = bytearray(line)
        flipped[at] ^= mask
        verdict, _ = judge(before + bytes(flipped) + after)
        assert verdict is Verdict.TAMPERED, at


@pytest.mark.parametrize("member", json.loads(CHAIN[-1].line))
@pytest.mark.parametrize("number", [3, 6])
def test_verify_1_to_3_every_changed_field_is_tampering(number: int, member: str) -> None:
    one = CHAIN[number - 1]
    value = json.loads(one.line)[member]
    if isinstance(value, str):
        changed: Json = ("b" if value[:1] != "b" else "c") + value[1:]
    else:
        changed = 0 if value else 7
    spoiled = rewritten(one, **{member: changed})
    verdict, rules = judge(lines(*CHAIN[: number - 1], spoiled, *CHAIN[number:]))
    assert verdict is Verdict.TAMPERED
    assert rules & {"VERIFY-1", "VERIFY-2", "VERIFY-3"}


@pytest.mark.parametrize(
    "data",
    [
        WHOLE.replace(b"\n", b"\r\n"),
        WHOLE.replace(b"\n", b"\n\n", 1),
        WHOLE.replace(b":", b": ", 1),
        lines(CHAIN[0], CHAIN[1].line + CHAIN[2].line, *CHAIN[3:]),
        lines(CHAIN[0], CHAIN[1].line[:40], CHAIN[1].line[40:], *CHAIN[2:]),
        lines(CHAIN[0], b"", *CHAIN[1:]),
        lines(CHAIN[0], b"x" * 9000, *CHAIN[1:]),
        lines(CHAIN[0], b'{"v":1,"v":1}', *CHAIN[1:]),
    ],
    ids=["crlf", "blank", "spelling", "glued", "halved", "empty-line", "long", "two-keys"],
)
def test_verify_1_what_is_no_whole_record_is_tampering(data: bytes) -> None:
    verdict, rules = judge(data)
    assert verdict is Verdict.TAMPERED
    assert "VERIFY-1" in rules


def test_verify_1_missing_index_is_tampering_and_unreadable_one_is_not() -> None:
    missing, _ = judge(Lack("is missing"), None)
    unreadable, rules = judge(Lack("cannot be read: input/output error", unreadable=True), None)
    assert missing is Verdict.TAMPERED
    assert unreadable is Verdict.UNVERIFIABLE
    assert "VERIFY-1" in rules


def test_verify_1_damaged_line_spares_what_is_before_and_is_told_by_number() -> None:
    data = lines(*CHAIN[:3], rewritten(CHAIN[3], kind="none"), *CHAIN[4:])
    assert verdicts(data) == {
        2: Verdict.VERIFIED,
        3: Verdict.VERIFIED,
        5: Verdict.TAMPERED,
        6: Verdict.TAMPERED,
    }
    details = [one.detail for one in Index(data, SEEN, NAMES).findings() if one.result == "fail"]
    assert f"{NAMES.index_file} line 4: a record of no known kind" in details


def test_verify_1_torn_tail_is_harmless_only_if_its_record_was_never_seen() -> None:
    torn = CHAIN[5].line[:50]
    index = Index(lines(*CHAIN[:5]) + torn, head(CHAIN[4]), NAMES)
    assert Witness(index.findings()).verdict is Verdict.VERIFIED
    assert index.leftover == "50 bytes at its end, of a record that was never acknowledged"
    assert judge(lines(*CHAIN[:5]) + torn, SEEN)[0] is Verdict.TAMPERED
    assert judge(lines(*CHAIN[:5]) + b"{", SEEN)[0] is Verdict.TAMPERED


def test_verify_1_torn_tail_above_a_rollback_does_not_hide_the_rollback() -> None:
    torn = save(7, CHAIN[5].hash).line[:50]
    verdict, rules = judge(lines(*CHAIN[:3]) + torn)
    assert (verdict, rules) == (Verdict.ROLLED_BACK, {"VERIFY-4"})


def test_verify_1_whole_last_line_without_its_lf_counts() -> None:
    index = Index(WHOLE[:-1], SEEN, NAMES)
    assert Witness(index.findings()).verdict is Verdict.VERIFIED
    assert [one.seq for one, _ in index.saves] == [2, 3, 4, 5, 6]
    assert index.leftover == "a last record that lacks its LF"


def test_verify_1_newer_version_is_unsupported_not_damage() -> None:
    newer = rewritten(CHAIN[5], v=2)
    index = Index(lines(*CHAIN[:5], newer), SEEN, NAMES)
    (found,) = [one for one in index.findings() if one.result != "pass"]
    assert (found.rule, found.result, found.unsupported) == ("VERIFY-1", "skipped", True)
    assert found.verdict is Verdict.UNVERIFIABLE


def test_verify_2_a_record_after_one_of_a_newer_version_is_tampered() -> None:
    newer = rewritten(CHAIN[2], v=2)
    after = save(4, hashlib.sha256(newer).hexdigest())
    data = lines(*CHAIN[:2], newer, after)
    assert judge(data, head(after)) == (Verdict.TAMPERED, {"VERIFY-1", "VERIFY-2"})
    changed = lines(*CHAIN[:2], newer.replace(b"manual", b"Manual"), after)
    assert judge(changed, head(after))[0] is Verdict.TAMPERED


def test_verify_1_many_bad_lines_make_a_short_report() -> None:
    found = Index(lines(*CHAIN, *[b"x"] * 100), SEEN, NAMES).findings()
    assert len(found) < 16
    assert any("92 more faults" in one.detail for one in found)


# VERIFY-2


@pytest.mark.parametrize(
    "data",
    [
        lines(*CHAIN[:2], *CHAIN[3:]),
        lines(*CHAIN[:2], CHAIN[3], CHAIN[2], *CHAIN[4:]),
        lines(*CHAIN[:3], CHAIN[2], *CHAIN[3:]),
        lines(*CHAIN, CHAIN[5]),
        lines(*CHAIN[:3], save(4, "11" * 32), *CHAIN[4:]),
        lines(*CHAIN[:3], save(3, CHAIN[1].hash, text="b"), *CHAIN[3:]),
    ],
    ids=["cut", "reordered", "doubled", "doubled-last", "replaced", "inserted"],
)
def test_verify_2_lines_cut_moved_doubled_or_put_in_are_tampering(data: bytes) -> None:
    verdict, rules = judge(data)
    assert verdict is Verdict.TAMPERED
    assert "VERIFY-2" in rules


def test_verify_2_gap_that_nobody_saw_spares_what_is_before_it() -> None:
    found = verdicts(lines(*CHAIN[:2], *CHAIN[4:]))
    assert found == {2: Verdict.VERIFIED, 5: Verdict.TAMPERED, 6: Verdict.TAMPERED}


def test_verify_2_gap_under_an_unreadable_trusted_head_could_not_be_checked() -> None:
    lack = Lack("cannot be read: permission denied", unreadable=True)
    verdict, rules = judge(lines(*CHAIN[:2], *CHAIN[4:]), lack)
    assert (verdict, rules) == (Verdict.UNVERIFIABLE, {"VERIFY-2", "VERIFY-4"})


# VERIFY-3


def test_verify_3_record_of_another_key_is_tampering() -> None:
    forged = save(6, CHAIN[4].hash, seed=OTHER_SEED)
    assert judge(lines(*CHAIN[:5], forged), head(CHAIN[4]))[0] is Verdict.TAMPERED


def test_verify_3_record_that_names_the_key_without_its_signature_is_tampering() -> None:
    forged = save(6, CHAIN[4].hash, seed=OTHER_SEED)
    claimed = rewritten(forged, signer=json.loads(CHAIN[0].line)["signer"])
    verdict, rules = judge(lines(*CHAIN[:5], claimed), head(CHAIN[4]))
    assert (verdict, rules) == (Verdict.TAMPERED, {"VERIFY-3"})


def test_verify_3_whole_index_of_another_key_is_tampering() -> None:
    first = birth(seed=OTHER_SEED)
    second = save(2, first.hash, seed=OTHER_SEED)
    verdict, rules = judge(lines(first, second), head(second))
    assert (verdict, rules) == (Verdict.TAMPERED, {"VERIFY-3"})


def test_verify_3_index_of_another_name_with_the_same_key_is_tampering() -> None:
    assert judge(lines(birth(instance="Gabriel #216")), None)[0] is Verdict.TAMPERED


def test_verify_3_index_without_its_birth_is_tampering() -> None:
    verdict, rules = judge(lines(*CHAIN[1:]))
    assert verdict is Verdict.TAMPERED
    assert "VERIFY-3" in rules


@given(
    start=st.integers(0, len(WHOLE)),
    length=st.sampled_from([0, 1, 2, 64, 700, 1400]),
    put=st.one_of(st.binary(max_size=8), st.sampled_from([one.line + b"\n" for one in CHAIN])),
)
def test_verify_1_to_4_nothing_but_what_was_signed_is_ever_verified(
    start: int, length: int, put: bytes
) -> None:
    data = WHOLE[:start] + put + WHOLE[start + length :]
    found = Index(data, SEEN, NAMES)
    if Witness(found.findings()).verdict is Verdict.VERIFIED:
        assert [one.line for one, _ in found.records] == [one.line for one in CHAIN]
