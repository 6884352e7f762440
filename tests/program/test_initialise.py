"""INITIALISE: what it makes, byte for byte, and everything that it must refuse."""

from __future__ import annotations

import pytest
from solders.account import Account
from solders.pubkey import Pubkey
from solders.rent import Rent
from solders.system_program import ID as SYSTEM_PROGRAM

from anchor_service.program import instructions
from savepoint.core import accounts
from tests.program.scene import (
    BATCH_ROOT,
    ELSEWHERE,
    INITIALISE_UNITS,
    PROGRAM,
    RETIRE,
    SAVEPOINT,
    SOL,
    SUCCESSOR,
    Scene,
    a_body,
    account_bytes,
    address_of,
    instance_of,
    with_account,
    with_accounts,
    with_data,
)

_SIZE = 128 + 465  # what an account is charged for
_RENT = _SIZE * 6_960  # lamports, at LiteSVM's rate
_UNITS, _UNITS_A_BUMP = 4_819, 372
_PAYER, _AUTHORITY, _ACCOUNT, _SYSTEM = range(4)


# What it makes.


@pytest.mark.parametrize("kind", [SAVEPOINT, BATCH_ROOT, RETIRE, SUCCESSOR])
def test_makes_the_account_with_entry_one(scene: Scene, kind: int) -> None:
    body = a_body(kind)
    assert scene.send(scene.initialise(body)).error is None
    account = scene.svm.get_account(scene.account)
    assert account is not None
    assert account.data == account_bytes(1, scene.bump, body)
    assert account.owner == PROGRAM
    assert account.lamports == _RENT
    assert scene.svm.get_balance(scene.payer.pubkey()) == SOL - _RENT
    assert scene.svm.get_balance(scene.authority.pubkey()) == SOL


@pytest.mark.parametrize("size", [0, 1, 255, 256])
def test_takes_metadata_of_any_length(scene: Scene, size: int) -> None:
    body = a_body(metadata=b"\xff" * size)
    assert scene.send(scene.initialise(body)).error is None
    assert scene.data() == account_bytes(1, scene.bump, body)


def test_authority_may_pay(scene: Scene) -> None:
    scene.payer = scene.authority
    assert scene.send(scene.initialise()).error is None
    assert scene.data() == account_bytes(1, scene.bump, a_body())


def test_one_authority_has_an_account_for_each_instance(begun: Scene) -> None:
    begun.account, begun.bump = address_of(instance_of(2), begun.authority.pubkey())
    body = a_body(instance_hash=instance_of(2))
    assert begun.send(begun.initialise(body)).error is None
    assert begun.data() == account_bytes(1, begun.bump, body)


@pytest.mark.parametrize("rate", [696, 5_080, 6_960])
def test_rent_is_what_the_cluster_asks_for(scene: Scene, rate: int) -> None:
    scene.svm.set_rent(Rent.with_lamports_per_byte(rate))
    assert scene.send(scene.initialise()).error is None
    assert scene.svm.get_balance(scene.account) == _SIZE * rate


@pytest.mark.parametrize("there", [1, _RENT - 1, _RENT, _RENT + 1])
def test_prefunded_address_is_made(scene: Scene, there: int) -> None:
    """A stranger's lamports block create_account (hyperlane#2267, SPL#2751)."""
    scene.put(b"", SYSTEM_PROGRAM, there)
    assert scene.send(scene.initialise()).error is None
    assert scene.data() == account_bytes(1, scene.bump, a_body())
    assert scene.svm.get_balance(scene.account) == max(there, _RENT)
    assert scene.svm.get_balance(scene.payer.pubkey()) == SOL - max(_RENT - there, 0)


def test_units_are_those_of_the_docs() -> None:
    """Each bump that is on the curve costs; one key in 500 has so many that the bar is passed."""
    tried = set()
    for number in range(32):
        scene = Scene(number)
        sent = scene.send(scene.initialise(a_body(metadata=b"x" * 256)))
        assert sent.units == _UNITS + _UNITS_A_BUMP * (255 - scene.bump)
        assert sent.units <= INITIALISE_UNITS
        tried.add(scene.bump)
    assert len(tried) > 3


# Who must sign, and what the accounts must be.


def test_authority_must_sign(scene: Scene) -> None:
    scene.refuses(with_account(scene.initialise(), _AUTHORITY, signer=False), "AuthorityNotSigner")


def test_payer_must_sign(scene: Scene) -> None:
    scene.refuses(with_account(scene.initialise(), _PAYER, signer=False), "PayerNotSigner")


def test_other_authority_has_another_address(scene: Scene) -> None:
    other = scene.stranger.pubkey()
    _, bump = address_of(scene.instance, other)
    given = instructions.initialise(
        PROGRAM, scene.payer.pubkey(), other, scene.account, bump, a_body()
    )
    scene.refuses(given, "WrongAddress")


def test_address_must_be_derived(scene: Scene) -> None:
    scene.refuses(with_account(scene.initialise(), _ACCOUNT, ELSEWHERE), "WrongAddress")


def test_address_of_another_instance_is_refused(scene: Scene) -> None:
    scene.account, scene.bump = address_of(instance_of(2), scene.authority.pubkey())
    given = scene.initialise()
    _, bump = address_of(scene.instance, scene.authority.pubkey())
    data = bytes(given.data)
    scene.refuses(with_data(given, data[:1] + bytes([bump]) + data[2:]), "WrongAddress")


@pytest.mark.parametrize("bump", [0, 1, 127])
def test_bump_must_be_that_of_the_address(scene: Scene, bump: int) -> None:
    scene.bump = bump
    scene.refuses(scene.initialise(), "WrongBump")


def test_lower_bump_with_its_own_address_is_refused(scene: Scene) -> None:
    """Or one instance and authority had several accounts, each with a history of its own."""
    seeds = (accounts.SEED, scene.instance, bytes(scene.authority.pubkey()))
    lower = [
        (bump, address)
        for bump in range(scene.bump - 1, 0, -1)
        if not accounts.is_on_curve(
            address := accounts.derive((*seeds, bytes([bump])), bytes(PROGRAM))
        )
    ]
    assert len(lower) > 100
    for bump, address in lower[:3]:
        scene.bump, scene.account = bump, Pubkey(address)
        scene.refuses(scene.initialise(), "WrongBump")


@pytest.mark.parametrize(
    ("owner", "data"),
    [(ELSEWHERE, b""), (ELSEWHERE, bytes(465)), (SYSTEM_PROGRAM, bytes(80))],
    ids=["empty", "full", "a nonce's"],
)
def test_account_of_somebody_else_is_left_alone(scene: Scene, owner: Pubkey, data: bytes) -> None:
    scene.put(data, owner)
    scene.refuses(scene.initialise(), "WrongOwner")


@pytest.mark.parametrize("place", [_PAYER, _ACCOUNT])
def test_payer_and_account_must_be_writable(scene: Scene, place: int) -> None:
    scene.refuses(with_account(scene.initialise(), place, writable=False), "AccountNotWritable")


@pytest.mark.parametrize("name", [ELSEWHERE, PROGRAM])
def test_other_system_program_is_refused(scene: Scene, name: Pubkey) -> None:
    scene.refuses(with_account(scene.initialise(), _SYSTEM, name), "NotSystemProgram")


@pytest.mark.parametrize(
    ("place", "same_as", "error"),
    [
        (_PAYER, _ACCOUNT, "PayerNotSigner"),
        (_AUTHORITY, _ACCOUNT, "AuthorityNotSigner"),
        (_ACCOUNT, _PAYER, "WrongAddress"),
        (_ACCOUNT, _AUTHORITY, "WrongAddress"),
        (_SYSTEM, _ACCOUNT, "NotSystemProgram"),
        (_SYSTEM, _PAYER, "NotSystemProgram"),
    ],
)
def test_account_in_two_places_is_refused(
    scene: Scene, place: int, same_as: int, error: str
) -> None:
    given = scene.initialise()
    name = given.accounts[same_as].pubkey
    signer = same_as != _ACCOUNT and place != _SYSTEM  # nobody can sign for the account
    scene.refuses(with_account(given, place, name, signer=signer), error)


@pytest.mark.parametrize("count", range(4))
def test_missing_account_is_refused(scene: Scene, count: int) -> None:
    given = scene.initialise()
    scene.refuses(with_accounts(given, given.accounts[:count]), "AccountCount")


@pytest.mark.parametrize("more", [1, 2, 20])
def test_account_too_many_is_refused(scene: Scene, more: int) -> None:
    given = scene.initialise()
    scene.refuses(with_accounts(given, given.accounts + given.accounts[:1] * more), "AccountCount")


def test_payer_without_the_rent_is_refused(scene: Scene) -> None:
    scene.svm.set_account(scene.payer.pubkey(), Account(_RENT - 1, b"", SYSTEM_PROGRAM))
    scene.refuses(scene.initialise(), "PayerTooPoor")


# Data.


@pytest.mark.parametrize("size", [1, 2, 178, 179, 180, 198])
def test_short_data_is_refused(scene: Scene, size: int) -> None:
    given = scene.initialise()
    assert len(given.data) == 2 + 177 + 2 + 19
    scene.refuses(with_data(given, bytes(given.data)[:size]), "InstructionLength")


def test_long_data_is_refused(scene: Scene) -> None:
    given = scene.initialise()
    scene.refuses(with_data(given, bytes(given.data) + b"\0"), "InstructionLength")


@pytest.mark.parametrize("first", [b"", b"\x02", b"\xff"])
def test_unknown_instruction_is_refused(scene: Scene, first: bytes) -> None:
    given = scene.initialise()
    rest = bytes(given.data)[1:] if first else b""
    scene.refuses(with_data(given, first + rest), "UnknownInstruction")


def test_zeros_are_refused(scene: Scene) -> None:
    scene.refuses(with_data(scene.initialise(), bytes(2 + 177 + 2)), "EntryType")


@pytest.mark.parametrize("kind", [0, 5, 255])
def test_unknown_type_is_refused(scene: Scene, kind: int) -> None:
    scene.refuses(scene.initialise(a_body(kind)), "EntryType")


@pytest.mark.parametrize("wrong", [b"A", b"F", b"g", b"/", b":", b"`", b"\0", b" ", b"\xff"])
@pytest.mark.parametrize("place", [0, 39])
def test_commit_must_be_lower_case_hex(scene: Scene, wrong: bytes, place: int) -> None:
    commit = b"0" * place + wrong + b"f" * (39 - place)
    scene.refuses(scene.initialise(a_body(commit=commit)), "CommitNotHex")


def test_metadata_has_at_most_256_bytes(scene: Scene) -> None:
    scene.refuses(scene.initialise(a_body(metadata=b"x" * 257)), "MetadataTooLong")


# Once.


@pytest.mark.parametrize("kind", [SAVEPOINT, RETIRE])
def test_account_is_made_once(scene: Scene, kind: int) -> None:
    """A second first entry would be a sequence that starts again: a way to hide what came after."""
    assert scene.send(scene.initialise(a_body(kind))).error is None
    scene.refuses(scene.initialise(), "AlreadyInitialised")


def test_same_transaction_lands_once(scene: Scene) -> None:
    transaction = scene.transaction(scene.initialise())
    assert scene.submit(transaction).error is None
    before = scene.data()
    assert "AlreadyProcessed" in str(scene.submit(transaction).error)
    assert scene.data() == before


def test_two_in_one_transaction_leave_nothing(scene: Scene) -> None:
    sent = scene.send(scene.initialise(), scene.initialise(a_body(snapshot=b"other")))
    assert sent.error == 1007
    assert scene.svm.get_account(scene.account) is None
