"""Rules 1 to 4 on the bytes of an index: every way to change, cut, reorder or forge it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import keys, record, spelling
from savepoint.core.chain import Gap
from savepoint.core.spelling import Instance
from savepoint.core.verdicts import Lack, Verdict, Witness
from savepoint.core.verify_index import INDEX_RULES, Index, Names

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json

NOW = 1_790_000_000
SEED = bytes(range(32))
OTHER_SEED = bytes(range(1, 33))
NAME = "Gabriel #215"
SLUG = Instance.parse(NAME).slug(keys.public_key(SEED))
NAMES = Names(SLUG, f"instances/{SLUG}/index.jsonl", f"trusted/{SLUG}.json")


class Head(NamedTuple):
    seq: int
    record: str
    recreated: bool = False
    gaps: tuple[Gap, ...] = ()


def make(
    kind: str,
    seq: int,
    prev: str,
    body: dict[str, Json],
    *,
    seed: bytes = SEED,
    instance: str = NAME,
) -> Record:
    return record.make(
        kind, seq=seq, prev=prev, timestamp=NOW + seq, instance=instance, seed=seed, body=body
    )


def birth(seed: bytes = SEED, instance: str = NAME) -> Record:
    body: dict[str, Json] = {"nonce": "00" * 16}
    return make("birth", 1, spelling.ZERO_DIGEST, body, seed=seed, instance=instance)


def save(seq: int, prev: str, *, seed: bytes = SEED, text: str = "a") -> Record:
    body: dict[str, Json] = {
        "session_id": "s",
        "from": None,
        "trigger": "manual",
        "snapshot_hash": "sha256:" + hashlib.sha256(text.encode()).hexdigest(),
        "snapshot_size_bytes": 1,
        "snapshot_file": "logs/precompact-saves/snapshot_2026-11-30T13-26-49Z.json",
        "layer_1_status": "SAVED_LOCALLY",
        "tokens_used_this_session": None,
        "tokens_remaining": None,
        "context_utilization_percent": None,
        "consciousness_preserved": True,
    }
    return make("save", seq, prev, body, seed=seed)


def accept(seq: int, prev: str, gap: Gap | None, *, seed: bytes = SEED) -> Record:
    first, last = gap or (None, None)
    reason = "gap" if gap else "recreated"
    body: dict[str, Json] = {"reason": reason, "first": first, "last": last, "tip": None}
    return make("accept", seq, prev, body, seed=seed)


def chain(count: int) -> list[Record]:
    """A birth and savepoints up to `count` records."""
    made = [birth()]
    while len(made) < count:
        made.append(save(len(made) + 1, made[-1].hash))
    return made


CHAIN = chain(6)


def lines(*records: Record | bytes) -> bytes:
    return b"".join((o if isinstance(o, bytes) else o.line) + b"\n" for o in records)


def head(one: Record, *gaps: Gap, recreated: bool = False) -> Head:
    return Head(one.seq, one.hash, recreated, gaps)


WHOLE = lines(*CHAIN)
SEEN = head(CHAIN[-1])


def judge(data: bytes | Lack, seen: Head | Lack | None = SEEN) -> tuple[Verdict, set[str]]:
    """The verdict of the whole index, and the rules that did not pass."""
    found = Index(data, seen, NAMES).findings()
    assert {one.rule for one in found} == set(INDEX_RULES)
    return Witness(found).verdict, {one.rule for one in found if one.result != "pass"}


def verdicts(data: bytes, seen: Head | Lack | None = SEEN) -> dict[int, Verdict]:
    """The verdict of each savepoint by its sequence."""
    index = Index(data, seen, NAMES)
    return {one.seq: Witness(index.findings(line)).verdict for one, line in index.saves}


def rewritten(one: Record, **members: Json) -> bytes:
    """Its line with other members, the old signature kept."""
    value = json.loads(one.line)
    value.update(members)
    return json.dumps(value, separators=(",", ":")).encode()


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


def test_verify_1_records_after_a_newer_version_are_judged_by_its_hash() -> None:
    newer = rewritten(CHAIN[2], v=2)
    after = save(4, hashlib.sha256(newer).hexdigest())
    data = lines(*CHAIN[:2], newer, after)
    assert judge(data, head(after)) == (Verdict.UNVERIFIABLE, {"VERIFY-1"})
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


# VERIFY-4


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


def test_gap_is_told_from_no_gap() -> None:
    assert Index(WHOLE, SEEN, NAMES).unaccepted_gaps() == []
    assert Index(WHOLE, SEEN, NAMES).is_unbroken
    assert not Index(lines(*CHAIN[:5], b"x"), SEEN, NAMES).is_unbroken
    assert not Index(b"", None, NAMES).is_unbroken
