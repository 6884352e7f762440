"""VERIFY-17 to 20 and 25 to 28: each attack on the chain witness, by the rule that stops it."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from savepoint.core import accounts, entry, keys, verify_chain
from savepoint.core.verify_chain import CHAIN_RULES, Commits
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
    account,
    answer,
    claim,
    judged,
    only,
    seen,
    state,
    verdict,
    who,
)


def test_all_rules_hold() -> None:
    for one in (OLD, NEW):
        found = judged(INDEX, one, answer(GOOD))
        assert sorted(found, key=CHAIN_RULES.index) == list(CHAIN_RULES)
        assert {finding.result for finding in found.values()} == {"pass"}
    assert "is covered by record 4" in judged(INDEX, OLD, answer(GOOD))["VERIFY-24"].detail


# VERIFY-17


def test_verify_17_a_cluster_that_began_anew_is_told_and_pending() -> None:
    found = judged(INDEX, NEW, answer(None), seen(elsewhere=(7, "ab" * 32)))
    assert verdict(found) is PENDING
    assert "began anew" in found["VERIFY-17"].detail
    assert "to be anchored again" in found["VERIFY-17"].detail


def test_verify_17_anchored_again_after_that_is_fine() -> None:
    found = judged(INDEX, NEW, answer(GOOD), seen(elsewhere=(7, "ab" * 32)))
    assert verdict(found) is VERIFIED


# VERIFY-18


def test_verify_18_an_account_that_was_seen_and_is_gone_is_a_rollback() -> None:
    found = judged(INDEX, NEW, answer(None), seen(own=(1, GOOD.hash)))
    assert found["VERIFY-18"].verdict is BACK
    assert verdict(found) is BACK


def test_verify_18_no_account_yet_is_pending() -> None:
    only(judged(INDEX, NEW, answer(None)), "VERIFY-18", PENDING)


def test_verify_18_another_programs_account_in_its_place() -> None:
    for found in (
        state(GOOD.to_bytes(), owner=bytes(32)),
        state(GOOD.to_bytes(), executable=True),
    ):
        assert only(judged(INDEX, NEW, answer(found)), "VERIFY-18")


def test_verify_18_an_account_that_the_verifier_names_must_be_the_derived_one() -> None:
    right, wrong = who(who().address[0]), who(bytes(31) + b"\1")
    assert verdict(judged(INDEX, NEW, answer(GOOD), of=right)) is VERIFIED
    only(judged(INDEX, NEW, answer(GOOD), of=wrong), "VERIFY-18")


# VERIFY-19


@pytest.mark.parametrize(
    ("at", "byte"),
    [
        (0, 0xEE),  # magic
        (3, 0),  # version
        (21, 2),  # a flag that there is not
        (21, 1),  # retired by another entry than RETIRE
        (32, 5),  # type
        (105, 0x41),  # a commit in capitals
        (464, 1),  # behind the metadata
        (22, 255),  # its length
    ],
)
def test_verify_19_bytes_that_are_no_entry(at: int, byte: int) -> None:
    data = bytearray(GOOD.to_bytes())
    data[at] = byte
    found = judged(INDEX, NEW, answer(bytes(data)))
    assert found["VERIFY-19"].verdict is TAMPERED
    assert verdict(found) is TAMPERED


def test_verify_19_an_account_of_another_length() -> None:
    for data in (b"", GOOD.to_bytes()[:-1], GOOD.to_bytes() + b"\0"):
        assert judged(INDEX, NEW, answer(data))["VERIFY-19"].verdict is TAMPERED


def test_verify_19_a_second_spelling_of_the_metadata() -> None:
    for old, new in ((b'{"v":1', b'{"v": 1'), (b',"seq":4', b',"seq":04'), (b'"rec"', b'"Rec"')):
        told = claim(NEW)
        other = told._replace(metadata=told.metadata.replace(old, new))
        assert other != told
        only(judged(INDEX, NEW, answer(account(other))), "VERIFY-19")


def test_verify_19_another_bump_than_the_canonical_one() -> None:
    only(judged(INDEX, NEW, answer(GOOD._replace(bump=GOOD.bump - 1))), "VERIFY-19")


def test_verify_19_the_first_entry_and_no_other_follows_none() -> None:
    for told, seq in ((claim(NEW), 5), (claim(NEW, prev="cd" * 32), 1)):
        only(judged(INDEX, NEW, answer(account(told, seq))), "VERIFY-19")


def test_verify_19_a_later_version_is_not_damage() -> None:
    data = bytearray(GOOD.to_bytes())
    data[3] = 2
    found = judged(INDEX, NEW, answer(bytes(data)))
    assert only(found, "VERIFY-19", UNVERIFIABLE).unsupported


# VERIFY-20


def test_verify_20_a_ledger_that_goes_back() -> None:
    later = account(claim(NEW, prev="cd" * 32), 5)
    assert verdict(judged(INDEX, NEW, answer(later), seen(own=(4, "cd" * 32)))) is VERIFIED
    only(judged(INDEX, NEW, answer(later), seen(own=(6, "ef" * 32))), "VERIFY-20", BACK)


def test_verify_20_another_entry_of_the_same_number() -> None:
    only(judged(INDEX, NEW, answer(GOOD), seen(own=(1, "ef" * 32))), "VERIFY-20", BACK)
    assert verdict(judged(INDEX, NEW, answer(GOOD), seen(own=(1, GOOD.hash)))) is VERIFIED


def test_verify_20_an_entry_that_does_not_follow_the_one_seen() -> None:
    later = account(claim(NEW, prev="cd" * 32), 5)
    only(judged(INDEX, NEW, answer(later), seen(own=(4, "ef" * 32))), "VERIFY-20")


# VERIFY-25


def test_verify_25_a_commit_of_another_record() -> None:
    told = claim(NEW)._replace(commit=anchored.commit_of(OLD))
    only(judged(INDEX, OLD, answer(account(told))), "VERIFY-25")


def test_verify_25_a_history_without_the_savepoints_commit() -> None:
    commits = Commits(INDEX.hashes - {OLD.hash}, NEW.hash)
    only(judged(INDEX, OLD, answer(GOOD), commits=commits), "VERIFY-25")
    shallow = judged(INDEX, OLD, answer(GOOD), commits=commits._replace(has_border=True))
    only(shallow, "VERIFY-25", UNVERIFIABLE)
    assert verdict(judged(INDEX, NEW, answer(GOOD), commits=commits)) is VERIFIED


def test_verify_25_a_lost_commit_is_said_to_be_missing() -> None:
    found = judged(INDEX, NEW, answer(GOOD), commits=Commits(None))
    assert only(found, "VERIFY-25", UNVERIFIABLE).detail.startswith("anchored commit missing")
    found = judged(INDEX, NEW, answer(GOOD), commits=Commits(None, problem="no git"))
    assert only(found, "VERIFY-25", UNVERIFIABLE).detail == "no git"


# VERIFY-26


def test_verify_26_what_may_still_be_dropped_is_pending() -> None:
    only(judged(INDEX, NEW, answer(GOOD, level="confirmed")), "VERIFY-26", PENDING)


# VERIFY-27


def test_verify_27_a_program_that_is_not_ours() -> None:
    program, data = anchored.program_states(b"\x7fELF other")
    found = judged(INDEX, NEW, answer(GOOD, program=program, program_data=data))
    only(found, "VERIFY-27", UNVERIFIABLE)
    assert "not known to be the shipped one" in found["VERIFY-28"].detail


def test_verify_27_no_program_of_the_loader() -> None:
    program, data = anchored.program_states()
    for one, other in (
        (None, data),
        (program, None),
        (program._replace(executable=False), data),
        (program._replace(owner=bytes(32)), data),
        (program._replace(data=program.data[:4] + bytes(32)), data),
        (program, data._replace(owner=bytes(32))),
        (program, data._replace(data=data.data[:44])),
        (program, data._replace(data=b"\2" + data.data[1:])),
        (program, data._replace(data=data.data[:12] + b"\2" + data.data[13:])),
    ):
        found = judged(INDEX, NEW, answer(GOOD, program=one, program_data=other))
        only(found, "VERIFY-27", UNVERIFIABLE)


# VERIFY-28


def test_verify_28_every_reason_against_independence_is_said_and_lowers_nothing() -> None:
    authority = hashlib.sha256(b"upgrader").digest()
    program, data = anchored.program_states(authority=authority)
    for more, reason in (
        ({"is_public": False}, "no known public cluster"),
        ({"endpoints": 1}, "fewer than two endpoints"),
        ({"program": program, "program_data": data}, "can change the program"),
    ):
        found = verify_chain.account(who(), answer(GOOD, **more), seen(), anchored.ELF)
        assert not found.independent
        assert reason in found.dependence
        told = judged(INDEX, NEW, answer(GOOD, **more))
        assert verdict(told) is VERIFIED
        assert told["VERIFY-28"].detail == f"consistent, not independent: {found.dependence}"
    found = verify_chain.account(
        who(), answer(GOOD, program=program, program_data=data), seen(), anchored.ELF
    )
    assert found.upgrade_authority == authority
    assert verify_chain.account(who(), answer(GOOD), seen(), anchored.ELF).independent


def test_verify_28_nothing_anchored_is_nobodys_word() -> None:
    assert not verify_chain.account(who(), answer(None), seen(), anchored.ELF).independent


# all together

# What the program writes and the authority does not sign: any value is possible there.
_UNSIGNED = {*range(12, 20), *range(24, 32)}  # slot, chain time


def test_any_flipped_byte_of_an_account_is_noticed() -> None:
    data = GOOD.to_bytes()
    before = seen(own=(1, GOOD.hash))
    for at in set(range(len(data))) - _UNSIGNED:
        spoilt = bytearray(data)
        spoilt[at] ^= 1
        found = judged(INDEX, NEW, answer(bytes(spoilt)), before)
        assert verdict(found) in (TAMPERED, BACK, UNVERIFIABLE), at
        assert verdict(found) is not UNVERIFIABLE or at == 3, at  # a later version


digests = st.binary(min_size=32, max_size=32)


@settings(max_examples=50)
@given(
    seq=st.integers(1, 2**64 - 1),
    slot=st.integers(0, 2**64 - 1),
    chain_time=st.integers(-(2**63), 2**63 - 1),
    bump=st.integers(0, 255),
    kind=st.sampled_from(sorted(entry.KINDS)),
    client_time=st.integers(0, 2**64 - 1),
    instance=digests,
    snapshot=digests,
    commit=st.binary(min_size=20, max_size=20),
    signature=st.binary(min_size=64, max_size=64),
    metadata=st.binary(max_size=256),
)
def test_an_account_is_read_as_it_is_written(
    *,
    seq: int,
    slot: int,
    chain_time: int,
    bump: int,
    kind: int,
    client_time: int,
    instance: bytes,
    snapshot: bytes,
    commit: bytes,
    signature: bytes,
    metadata: bytes,
) -> None:
    told = entry.Claim(kind, client_time, instance, snapshot, commit.hex(), metadata)
    one = entry.Account(seq, slot, bump, kind == entry.RETIRE, chain_time, told, signature)
    assert entry.parse(one.to_bytes()) == one
    assert entry.parse(one.to_bytes()).to_bytes() == one.to_bytes()


@settings(max_examples=50)
@given(digests, digests, digests)
def test_addresses_are_those_of_solana(instance: bytes, authority: bytes, program: bytes) -> None:
    from solders.pubkey import Pubkey

    found = Pubkey.find_program_address([accounts.SEED, instance, authority], Pubkey(program))
    ours, bump = accounts.address(instance, authority, program)
    assert (ours, bump) == (bytes(found[0]), found[1])
    data, _ = Pubkey.find_program_address([program], Pubkey(accounts.LOADER))
    assert accounts.program_data(program) == bytes(data)
    assert accounts.is_on_curve(authority) == Pubkey(authority).is_on_curve()
    assert accounts.is_on_curve(keys.public_key(authority))
