"""VERIFY-21 to VERIFY-24: who signed the entry, and whether the index is that of its record."""

from __future__ import annotations

import hashlib

import pytest

from savepoint.core import entry, verify_chain
from savepoint.core.entry import Metadata, Place
from savepoint.core.history import History
from tests.verify import anchored
from tests.verify.anchored import (
    BACK,
    GOOD,
    INDEX,
    NEW,
    OLD,
    PENDING,
    TAMPERED,
    UNVERIFIABLE,
    VERIFIED,
    Index,
    account,
    answer,
    claim,
    judged,
    only,
    verdict,
    who,
)

PLACE = Place(anchored.GENESIS, anchored.PROGRAM, who().address[0])


# VERIFY-21


def test_verify_21_an_entry_of_another_key() -> None:
    forged = account(claim(NEW), seed=anchored.OTHER_SEED)
    only(judged(INDEX, NEW, answer(forged)), "VERIFY-21")


@pytest.mark.parametrize("member", ["genesis", "program", "account"])
def test_verify_21_an_entry_copied_from_another_place(member: str) -> None:
    elsewhere = PLACE._replace(**{member: bytes(32)})
    only(judged(INDEX, NEW, answer(account(claim(NEW), place=elsewhere))), "VERIFY-21")


def test_verify_21_an_entry_under_another_number() -> None:
    moved = account(claim(NEW, prev="cd" * 32), 2)._replace(seq=3)
    only(judged(INDEX, NEW, answer(moved)), "VERIFY-21")


def test_verify_21_an_entry_of_another_instance_with_the_same_key() -> None:
    other = hashlib.sha256(b"Gabriel #216").digest()
    only(judged(INDEX, NEW, answer(account(claim(NEW)._replace(instance_hash=other)))), "VERIFY-21")


def test_verify_21_a_signature_with_a_second_spelling() -> None:
    order = 2**252 + 27742317777372353535851937790883648493
    high = int.from_bytes(GOOD.signature[32:], "little") + order
    malleable = GOOD.signature[:32] + high.to_bytes(32, "little")
    neutral = b"\1" + bytes(63)  # R of small order
    for signature in (malleable, neutral, bytes(64)):
        only(judged(INDEX, NEW, answer(GOOD._replace(signature=signature))), "VERIFY-21")


# VERIFY-22


def test_verify_22_an_index_that_went_back() -> None:
    shorter = Index(INDEX.records[:-1])
    found = judged(shorter, OLD, answer(GOOD))
    assert "the index ends at 3" in only(found, "VERIFY-22", BACK).detail


def test_verify_22_a_record_of_a_newer_version_is_no_rollback() -> None:
    history = History(INDEX.records[:-1], {NEW.seq})
    named = verify_chain.vouched(GOOD, history, None).findings[0]
    assert (named.rule, named.unsupported, named.verdict) == ("VERIFY-22", True, UNVERIFIABLE)


def test_verify_22_a_second_history_of_one_key() -> None:
    other = Index(INDEX.records[:-1]).add(trigger="auto").add()
    found = judged(other, OLD, answer(GOOD))
    assert "another one of that number" in only(found, "VERIFY-22", BACK).detail


def test_verify_22_a_record_that_was_cut_out() -> None:
    cut = Index((*INDEX.records[:2], INDEX.records[3]))
    only(judged(cut, OLD, answer(account(claim(INDEX.records[2])))), "VERIFY-22")


def test_verify_22_a_record_whose_loss_was_accepted_is_anchored_again() -> None:
    index = Index.born().add().add(skip=1)  # record 3 is lost
    lost = Index.born().add().add()
    accepted = index.add("accept", reason="gap", first=3, last=3, tip=None)
    found = judged(accepted, accepted.records[1], answer(account(claim(lost.last))))
    only(found, "VERIFY-22", PENDING)


def test_verify_22_a_record_that_was_set_aside_for_the_remotes_is_anchored_again() -> None:
    aside = Index.born().add().add(trigger="auto")
    tip = Index.born().add().add()
    taken = tip.add("accept", reason="remote", first=3, last=3, tip=tip.last.hash)
    found = judged(taken, taken.records[1], answer(account(claim(aside.last))))
    only(found, "VERIFY-22", PENDING)


def test_verify_22_a_false_time_or_number_or_kind() -> None:
    for told in (
        claim(NEW)._replace(client_time=NEW.timestamp - 1),
        claim(NEW)._replace(metadata=Metadata(entry.NO_ENTRY, NEW.hash, 3).to_bytes()),
        claim(NEW, kind=entry.RETIRE),
    ):
        only(judged(INDEX, NEW, answer(account(told))), "VERIFY-22")


def test_verify_22_a_type_that_this_version_does_not_follow() -> None:
    found = judged(INDEX, NEW, answer(account(claim(NEW, kind=entry.BATCH_ROOT))))
    assert only(found, "VERIFY-22", UNVERIFIABLE).unsupported


# VERIFY-23


def test_verify_23_another_snapshot_than_the_records() -> None:
    told = claim(NEW)._replace(snapshot_hash=bytes.fromhex(OLD.snapshot_hash))
    only(judged(INDEX, NEW, answer(account(told))), "VERIFY-23")


def test_verify_23_retire_has_the_last_savepoint_before_it() -> None:
    retired = INDEX.add("retire")
    told = claim(retired.last, kind=entry.RETIRE)._replace(
        snapshot_hash=bytes.fromhex(NEW.snapshot_hash), commit=anchored.commit_of(NEW)
    )
    for one in (OLD, NEW):
        assert verdict(judged(retired, one, answer(account(told)))) is VERIFIED
    wrong = told._replace(snapshot_hash=bytes.fromhex(OLD.snapshot_hash))
    only(judged(retired, NEW, answer(account(wrong))), "VERIFY-23")
    wrong = told._replace(commit=anchored.commit_of(OLD))
    assert judged(retired, NEW, answer(account(wrong)))["VERIFY-25"].verdict is TAMPERED


def test_verify_23_successor_names_its_document() -> None:
    document = b'{"v":1}\n'
    born = INDEX.records[0]
    metadata = Metadata(entry.NO_ENTRY, born.hash, 1, "1" * 32).to_bytes()
    told = claim(born, kind=entry.SUCCESSOR)._replace(
        snapshot_hash=hashlib.sha256(document).digest(), metadata=metadata
    )
    found = judged(INDEX, OLD, answer(account(told)), bootstrap=document)
    assert found["VERIFY-23"].result == "pass"
    only(found, "VERIFY-24", PENDING)
    for other, expected in ((b"{}\n", TAMPERED), (None, UNVERIFIABLE)):
        found = judged(INDEX, OLD, answer(account(told)), bootstrap=other)
        assert found["VERIFY-23"].verdict is expected


# VERIFY-24


def test_verify_24_what_is_newer_than_the_entry_is_pending() -> None:
    found = judged(INDEX, NEW, answer(account(claim(OLD))))
    assert "comes after record 2" in only(found, "VERIFY-24", PENDING).detail
    assert verdict(judged(INDEX, OLD, answer(account(claim(OLD))))) is VERIFIED


def test_verify_24_a_savepoint_that_the_anchored_record_does_not_lead_back_to() -> None:
    other = Index.born().add(trigger="auto").last
    slipped = Index((INDEX.records[0], other, *INDEX.records[2:]))
    only(judged(slipped, other, answer(GOOD)), "VERIFY-24")


def test_verify_24_steps_over_a_loss_only_if_a_record_accepts_exactly_it() -> None:
    index = Index.born().add().add(skip=2)  # records 3 and 4 are lost
    for first, expected in ((3, VERIFIED), (2, TAMPERED)):
        accepted = index.add("accept", reason="gap", first=first, last=4, tip=None).add()
        found = judged(accepted, accepted.records[1], answer(account(claim(accepted.last))))
        assert verdict(found) is expected
