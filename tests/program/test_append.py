"""APPEND: the next entry takes the place of the one that was named, or nothing happens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from solders.instruction import AccountMeta, Instruction
from solders.system_program import ID as SYSTEM_PROGRAM

from anchor_service.program import instructions
from savepoint.core import entry
from tests.program.scene import (
    APPEND_UNITS,
    BATCH_ROOT,
    ELSEWHERE,
    PROGRAM,
    RETIRE,
    SAVEPOINT,
    SLOT,
    SOL,
    SUCCESSOR,
    TIME,
    Scene,
    a_body,
    account_bytes,
    address_of,
    entry_hash,
    instance_of,
    with_account,
    with_accounts,
    with_data,
)

if TYPE_CHECKING:
    from solders.pubkey import Pubkey

_UNITS = 1_229
_LATER = 30 * 10**6  # slots; as many seconds
_AUTHORITY, _ACCOUNT = range(2)


# What it makes.


@pytest.mark.parametrize("kind", [SAVEPOINT, BATCH_ROOT, RETIRE])
def test_next_entry_takes_the_place_of_the_last(begun: Scene, kind: int) -> None:
    lamports = begun.svm.get_balance(begun.account)
    begun.set_time(SLOT + _LATER, TIME + _LATER)
    body = a_body(kind, snapshot=b"next", metadata=b'{"v":1}')
    sent = begun.send(begun.append(body))
    assert sent.error is None
    assert sent.units == _UNITS - (kind == RETIRE)  # a branch less
    assert begun.data() == account_bytes(2, begun.bump, body, SLOT + _LATER, TIME + _LATER)
    assert begun.svm.get_balance(begun.account) == lamports


def test_nothing_is_left_of_longer_metadata(begun: Scene) -> None:
    for seq, size in enumerate([256, 0, 256, 1], 2):
        body = a_body(metadata=b"m" * size)
        sent = begun.send(begun.append(body))
        assert sent.error is None
        assert sent.units <= APPEND_UNITS
        assert begun.data() == account_bytes(seq, begun.bump, body)


def test_sequence_grows_by_one(begun: Scene) -> None:
    for seq in range(2, 40):
        body = a_body(snapshot=b"%d" % seq)
        assert begun.send(begun.append(body)).error is None
        assert begun.data() == account_bytes(seq, begun.bump, body)


def test_two_in_one_transaction_follow_each_other(begun: Scene) -> None:
    first, second = a_body(snapshot=b"first"), a_body(snapshot=b"second")
    seen = entry_hash(account_bytes(2, begun.bump, first))
    assert begun.send(begun.append(first), begun.append_after(2, seen, second)).error is None
    assert begun.data() == account_bytes(3, begun.bump, second)


def test_time_before_1970_is_written_signed(begun: Scene) -> None:
    begun.set_time(SLOT, -1)
    assert begun.send(begun.append()).error is None
    assert begun.data() == account_bytes(2, begun.bump, a_body(), SLOT, -1)


def test_hash_is_the_one_that_core_computes(begun: Scene) -> None:
    account = entry.parse(begun.data())
    assert account.to_bytes() == begun.data()
    seen = bytes.fromhex(account.hash)
    assert begun.send(begun.append_after(account.seq, seen)).error is None


# Who must sign, and what the accounts must be.


def test_authority_must_sign(begun: Scene) -> None:
    begun.refuses(with_account(begun.append(), _AUTHORITY, signer=False), "AuthorityNotSigner")


def test_other_authority_is_refused(begun: Scene) -> None:
    other = begun.stranger.pubkey()
    begun.refuses(with_account(begun.append(), _AUTHORITY, other), "WrongAddress")


def test_account_of_another_authority_is_refused(begun: Scene) -> None:
    """Its entry is of the same instance: anybody may make an account that says so."""
    given, body = begun.append(), a_body()
    begun.authority = begun.stranger
    begun.account, begun.bump = address_of(begun.instance, begun.authority.pubkey())
    assert begun.send(begun.initialise(body)).error is None
    begun.refuses(with_account(given, _ACCOUNT, begun.account), "WrongAddress")


def test_account_of_another_instance_is_refused(begun: Scene) -> None:
    begun.account, begun.bump = address_of(instance_of(2), begun.authority.pubkey())
    assert begun.send(begun.initialise(a_body(instance_hash=instance_of(2)))).error is None
    begun.refuses(begun.append(a_body()), "InstanceChanged")


def test_instance_never_changes(begun: Scene) -> None:
    begun.refuses(begun.append(a_body(instance_hash=instance_of(2))), "InstanceChanged")


@pytest.mark.parametrize("change", [-1, +1])
def test_stored_bump_must_be_that_of_the_address(begun: Scene, change: int) -> None:
    begun.put(account_bytes(1, (begun.bump + change) % 256, a_body()))
    begun.refuses(begun.append(), "WrongAddress")


@pytest.mark.parametrize("owner", [ELSEWHERE, SYSTEM_PROGRAM])
def test_account_of_another_program_is_refused(begun: Scene, owner: Pubkey) -> None:
    begun.put(begun.data(), owner)
    begun.refuses(begun.append(), "WrongOwner")


def test_account_that_is_not_there_is_refused(scene: Scene) -> None:
    scene.refuses(scene.append_after(0, bytes(32)), "WrongOwner")


def _account(**changed: bytes) -> bytes:
    """A valid account's bytes with some of them replaced, named by their offset: `at4=…`."""
    data = bytearray(
        account_bytes(1, address_of(instance_of(1), Scene().authority.pubkey())[1], a_body())
    )
    for place, value in changed.items():
        offset = int(place.removeprefix("at"))
        data[offset : offset + len(value)] = value
    return bytes(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        _account()[:4],
        _account()[:-1],
        _account() + b"\0",
        _account(at0=b"\xfe\xff\x00"),
        _account(at3=b"\0"),
        _account(at3=b"\2"),
        _account(at22=b"\x01\x01"),  # 257 bytes of metadata
        _account(at22=b"\xff\xff"),
        bytes(465),
    ],
    ids=range(10),
)
def test_account_that_no_entry_made_is_refused(begun: Scene, data: bytes) -> None:
    """Only this program writes accounts of its own; were that ever untrue, it goes no further."""
    given = begun.append()
    begun.put(data)
    begun.refuses(given, "MalformedAccount")


def test_account_must_be_writable(begun: Scene) -> None:
    begun.refuses(with_account(begun.append(), _ACCOUNT, writable=False), "AccountNotWritable")


def test_account_in_both_places_is_refused(begun: Scene) -> None:
    given = begun.append()
    twice = [AccountMeta(begun.account, is_signer=False, is_writable=True)] * 2
    begun.refuses(with_accounts(given, twice), "AuthorityNotSigner")


def test_authority_in_both_places_is_refused(begun: Scene) -> None:
    given = begun.append()
    twice = [AccountMeta(begun.authority.pubkey(), is_signer=True, is_writable=True)] * 2
    begun.refuses(with_accounts(given, twice), "WrongOwner")


@pytest.mark.parametrize("count", range(2))
def test_missing_account_is_refused(begun: Scene, count: int) -> None:
    given = begun.append()
    begun.refuses(with_accounts(given, given.accounts[:count]), "AccountCount")


@pytest.mark.parametrize("more", [1, 2, 20])
def test_account_too_many_is_refused(begun: Scene, more: int) -> None:
    given = begun.append()
    begun.refuses(with_accounts(given, given.accounts + given.accounts[:1] * more), "AccountCount")


# Data.


@pytest.mark.parametrize("size", [1, 8, 9, 40, 41, 217, 218, 219, 220, 238])
def test_short_data_is_refused(begun: Scene, size: int) -> None:
    given = begun.append()
    assert len(given.data) == 1 + 8 + 32 + 177 + 2 + 19
    begun.refuses(with_data(given, bytes(given.data)[:size]), "InstructionLength")


def test_long_data_is_refused(begun: Scene) -> None:
    given = begun.append()
    begun.refuses(with_data(given, bytes(given.data) + b"\0"), "InstructionLength")


@pytest.mark.parametrize("first", [b"", b"\x02", b"\xff"])
def test_unknown_instruction_is_refused(begun: Scene, first: bytes) -> None:
    given = begun.append()
    rest = bytes(given.data)[1:] if first else b""
    begun.refuses(with_data(given, first + rest), "UnknownInstruction")


def test_zeros_are_refused(begun: Scene) -> None:
    given = begun.append()
    begun.refuses(with_data(given, b"\1" + bytes(8 + 32 + 177 + 2)), "EntryType")


@pytest.mark.parametrize("kind", [0, 5, 255])
def test_unknown_type_is_refused(begun: Scene, kind: int) -> None:
    begun.refuses(begun.append(a_body(kind)), "EntryType")


def test_successor_is_a_first_entry_only(begun: Scene) -> None:
    begun.refuses(begun.append(a_body(SUCCESSOR)), "EntryType")


@pytest.mark.parametrize("commit", [b"A" * 40, b"g" * 40, bytes(40)])
def test_commit_must_be_lower_case_hex(begun: Scene, commit: bytes) -> None:
    begun.refuses(begun.append(a_body(commit=commit)), "CommitNotHex")


def test_metadata_has_at_most_256_bytes(begun: Scene) -> None:
    begun.refuses(begun.append(a_body(metadata=b"x" * 257)), "MetadataTooLong")


# Compare and swap.


@pytest.mark.parametrize("seq", [0, 1, 3, 2**64 - 1])
def test_stale_and_future_sequences_are_refused(begun: Scene, seq: int) -> None:
    assert begun.send(begun.append()).error is None
    begun.refuses(begun.append_after(seq, entry_hash(begun.data())), "WrongSequence")


def test_last_sequence_has_no_next(begun: Scene) -> None:
    begun.put(account_bytes(2**64 - 1, begun.bump, a_body()))
    begun.refuses(begun.append(), "WrongSequence")


def _hashes_of_others() -> list[bytes]:
    """Of entries that differ in one hashed field from the one that is there."""
    bump = address_of(instance_of(1), Scene().authority.pubkey())[1]
    others = [
        account_bytes(2, bump, a_body()),
        account_bytes(1, bump, a_body(BATCH_ROOT)),
        account_bytes(1, bump, a_body()._replace(client_time=1)),
        account_bytes(1, bump, a_body(instance_hash=instance_of(2))),
        account_bytes(1, bump, a_body()._replace(snapshot_hash=bytes(32))),
        account_bytes(1, bump, a_body(commit=b"f" * 40)),
        account_bytes(1, bump, a_body(metadata=b"")),
        account_bytes(1, bump, a_body(metadata=a_body().metadata + b"\0")),
    ]
    right = entry_hash(account_bytes(1, bump, a_body()))
    return [bytes(32), right[:31] + bytes([right[31] ^ 1]), *map(entry_hash, others)]


@pytest.mark.parametrize("seen", _hashes_of_others(), ids=range(10))
def test_another_hash_is_refused(begun: Scene, seen: bytes) -> None:
    begun.refuses(begun.append_after(1, seen), "WrongEntryHash")


def test_hash_leaves_out_signature_slot_and_time(begun: Scene) -> None:
    """It must be known before an entry is sent, and the same when it is signed once more."""
    body = a_body()._replace(signature=bytes(64))
    other = account_bytes(1, begun.bump, body, SLOT + 1, TIME + 1)
    assert other != begun.data()
    assert begun.send(begun.append_after(1, entry_hash(other))).error is None


def test_second_writer_of_the_same_place_loses(begun: Scene) -> None:
    seen = entry_hash(begun.data())
    assert begun.send(begun.append_after(1, seen, a_body(snapshot=b"ours"))).error is None
    begun.refuses(begun.append_after(1, seen, a_body(snapshot=b"theirs")), "WrongSequence")


def test_same_transaction_lands_once(begun: Scene) -> None:
    transaction = begun.transaction(begun.append())
    assert begun.submit(transaction).error is None
    before = begun.data()
    assert "AlreadyProcessed" in str(begun.submit(transaction).error)
    assert begun.data() == before


def test_same_instruction_lands_once(begun: Scene) -> None:
    """Signed anew with another blockhash it is another transaction, but not another entry."""
    given = begun.append()
    assert begun.send(given).error is None
    begun.refuses(given, "WrongSequence")


def test_two_for_one_place_in_one_transaction_leave_nothing(begun: Scene) -> None:
    before = begun.data()
    assert begun.send(begun.append(), begun.append(a_body(snapshot=b"other"))).error == 1018
    assert begun.data() == before


# The end.


@pytest.mark.parametrize("kind", [SAVEPOINT, BATCH_ROOT, RETIRE, SUCCESSOR])
def test_nothing_follows_retirement(begun: Scene, kind: int) -> None:
    assert begun.send(begun.append(a_body(RETIRE))).error is None
    begun.refuses(begun.append(a_body(kind)), "Retired")


def test_nothing_follows_retirement_as_first_entry(scene: Scene) -> None:
    assert scene.send(scene.initialise(a_body(RETIRE))).error is None
    scene.refuses(scene.append(), "Retired")


def test_no_instruction_takes_lamports_out(begun: Scene) -> None:
    """There is none to close, withdraw or resize: every first byte but ours is refused."""
    begun.put(begun.data(), lamports=SOL)
    metas = [
        AccountMeta(begun.authority.pubkey(), is_signer=True, is_writable=True),
        AccountMeta(begun.account, is_signer=False, is_writable=True),
    ]
    for first in range(2, 256):
        begun.refuses(Instruction(PROGRAM, bytes([first]), metas), "UnknownInstruction")


def test_fields_of_another_size_are_no_instruction() -> None:
    key = ELSEWHERE
    for changed in (
        a_body()._replace(signature=bytes(63)),
        a_body()._replace(snapshot_hash=bytes(33)),
        a_body(commit=b"0" * 41),
        a_body(instance_hash=b""),
    ):
        with pytest.raises(ValueError, match="bytes, not"):
            instructions.append(PROGRAM, key, key, 1, bytes(32), changed)
    with pytest.raises(ValueError, match="31 bytes, not 32"):
        instructions.append(PROGRAM, key, key, 1, bytes(31), a_body())
    with pytest.raises(OverflowError):
        instructions.initialise(PROGRAM, key, key, key, 255, a_body()._replace(client_time=2**64))
