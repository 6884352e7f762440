"""Verification of a proof, as numbered rules: a parsed file in, findings out.

A proof is held against VERIFY-3, 18, 19 and 21 to 25 as a store is, and against these:

VERIFY-29  The transaction in it puts this very entry into this account, and the key signed it.
           Stops somebody else's transaction, shown as the place to look the entry up.
VERIFY-30  The ledger has the entry, or had it: it is the account's, or the one before, or its
           transaction is final there.
           Stops an entry that was signed and never anchored.

All but VERIFY-30 hold or fail without a ledger. The chain's time, that the entry is final, and who
may change the program only a ledger tells: there VERIFY-17 to 20 and 26 to 28 are asked as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import keys, proof, spelling, verify_chain, verify_stored
from savepoint.core.errors import MalformedError
from savepoint.core.history import History
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import Finding, Verdict, passed, tampered, unchecked
from savepoint.core.verify_chain import Anchor, Commits, Seen, Who

if TYPE_CHECKING:
    from savepoint.core.entry import Account
    from savepoint.core.ledger import Landing
    from savepoint.core.proof import Proof

PROOF_RULES = ("VERIFY-29", "VERIFY-30")

_METADATA_AT, _BODY_AT = 209, 32
_EXPORT = "export the proof again where the store is"


class Offline(NamedTuple):
    """What a proof shows by itself."""

    findings: tuple[Finding, ...]
    account: Account | None  # its entry, if it can be read


def who_of(given: Proof) -> Who:
    """Whose account the proof is about."""
    return Who(given.birth.instance, given.birth.signer, given.program, given.account)


def offline(given: Proof, snapshot: bytes | None = None) -> Offline:
    """All that needs no ledger. snapshot: the bytes of the savepoint's snapshot file, if given."""
    who, one = who_of(given), given.records[0]
    found = [_records(given), verify_chain.derived(who)]
    read, spelled = verify_chain.spelling_of(given.account_data, who)
    found.append(spelled)
    if read is not None:
        found.append(verify_chain.signature(read, who, given.genesis))
        history = History(given.records)
        vouched = verify_chain.vouched(read, history, None)
        commits = _commits(given, read.claim.commit)
        if vouched.record is not None and len(vouched.behind) != len(given.records):
            vouched = vouched._replace(behind=frozenset())  # not one chain, or more than one needs
        found += verify_chain.savepoint(one, read, vouched, history, commits)
        if given.transaction is not None:
            found.append(_transaction(given))
    if snapshot is not None:
        found += _snapshot(given, snapshot)
    judged = sorted(map(_decided, found), key=lambda one: int(one.rule[7:]))
    return Offline(tuple(judged), read)


def _decided(one: Finding) -> Finding:
    """A file does not go back and is not on its way: what would be a rollback, or still to be done,
    in a store is a proof that does not fit together.
    """
    if one.verdict in (Verdict.ROLLED_BACK, Verdict.PENDING):
        return tampered(one.rule, one.detail)
    return one


def _records(given: Proof) -> Finding:
    """VERIFY-3: the key of the birth record has signed every record; the savepoint is the first."""
    birth, lines = given.birth, given.records
    if birth.kind != "birth" or lines[0].kind != "save":
        return tampered("VERIFY-3", "a proof leads from a savepoint, and from a birth its key")
    for one in (birth, *lines):
        if (one.signer, one.instance) != (birth.signer, birth.instance):
            return tampered("VERIFY-3", f"record {one.seq} is not of {birth.instance}")
        if not one.signature_holds():
            return tampered("VERIFY-3", f"the signature of record {one.seq} does not hold")
    key = spelling.base58(birth.signer)
    span = f"records {lines[0].seq} to {lines[-1].seq}"
    return passed("VERIFY-3", f"{span} and the birth record are signed by {key}")


def _commits(given: Proof, named: str) -> Commits:
    """Git's commit objects, as far as each is a parent of the one before it."""
    told, expected = list[str](), [named]
    for data in given.commits:
        if proof.commit_id(data) not in expected:
            return Commits(frozenset())
        told.append(proof.record_of(data))
        expected = proof.parents(data)
    return Commits(frozenset(told), told[0]) if told else Commits(None)


def _snapshot(given: Proof, data: bytes) -> list[Finding]:
    one = given.records[0]
    found = verify_stored.snapshot_file(one, data, "the snapshot")
    if found.result != "pass":
        return [found]
    return [found, verify_stored.snapshot_document(one, data, "the snapshot")[1]]


def _transaction(given: Proof) -> Finding:
    """VERIFY-29: read by hand, since a third party need not have a Solana library."""
    assert given.transaction is not None  # noqa: S101  # offline; for the type checker
    data = given.account_data
    size = int.from_bytes(data[22:24], "little")
    entry = data[_BODY_AT:_METADATA_AT] + data[22:24] + data[_METADATA_AT : _METADATA_AT + size]
    try:
        found = _Message.of(given.transaction.raw)
    except (MalformedError, IndexError):
        return tampered("VERIFY-29", "the transaction cannot be read")
    if not found.is_signed_by(given.birth.signer):
        return tampered("VERIFY-29", "the transaction is not signed by the key, or not by all")
    if not any(
        program == given.program and given.account in keys_ and told.endswith(entry)
        for program, keys_, told in found.instructions
    ):
        return tampered("VERIFY-29", "the transaction does not put this entry there")
    name = spelling.base58(given.transaction.signature)
    return passed("VERIFY-29", f"transaction {name} puts this entry there")


class _Message(NamedTuple):
    """A signed transaction with a legacy message. Source: Solana's `Transaction`, in short_vec."""

    signatures: list[bytes]
    signed: bytes
    signers: list[bytes]
    instructions: list[tuple[bytes, list[bytes], bytes]]  # program, accounts, data

    @classmethod
    def of(cls, raw: bytes) -> _Message:
        """Raises MalformedError, IndexError (it ends too soon)."""
        at = _Cursor(raw)
        signatures = [at.take(keys.SIGNATURE_BYTES) for _ in range(at.count())]
        signed = raw[at.place :]
        required, _, _ = at.take(3)
        known = [at.take(32) for _ in range(at.count())]
        at.take(32)  # blockhash
        told = [cls._instruction(at, known) for _ in range(at.count())]
        if at.place != len(raw) or len(signatures) != required or signed[0] & 0x80:
            raise MalformedError("not a legacy transaction")
        return cls(signatures, signed, known[:required], told)

    @staticmethod
    def _instruction(at: _Cursor, known: list[bytes]) -> tuple[bytes, list[bytes], bytes]:
        program = known[at.take(1)[0]]
        used = [known[number] for number in at.take(at.count())]
        return program, used, at.take(at.count())

    def is_signed_by(self, key: bytes) -> bool:
        """Is that key among the signers, and every signature good?"""
        return key in self.signers and all(
            keys.verifies_raw(signer, self.signed, signature)
            for signer, signature in zip(self.signers, self.signatures, strict=True)
        )


class _Cursor:
    """Bytes that are read from the front."""

    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def take(self, size: int) -> bytes:
        """So many bytes. Raises MalformedError if there are fewer."""
        found = self.data[self.place : self.place + size]
        if len(found) != size:
            raise MalformedError("a transaction that ends too soon")
        self.place += size
        return found

    def count(self) -> int:
        """Solana's short_vec: 7 bits a byte, the lowest first."""
        number, shift = 0, 0
        while (byte := self.take(1)[0]) & 0x80:
            number, shift = number | (byte & 0x7F) << shift, shift + 7
            if shift > 14:
                raise MalformedError("a count of more than three bytes")
        return number | byte << shift


def seen_of(read: Account) -> Seen:
    """What a proof has seen of its account: the ledger must not be older than that."""
    return Seen(read.seq, read.hash, ())


def online(read: Account, anchor: Anchor, landing: Landing | None, name: str) -> Finding:
    """VERIFY-30. anchor: what the ledger's account says; landing: what it knows of the proof's
    transaction.
    """
    now = anchor.account
    if now is not None and now.seq == read.seq and now.hash == read.hash:
        since = spelling.shown_time(now.chain_time)
        return passed("VERIFY-30", f"{name} has entry {read.seq}, since {since} by its clock")
    if now is not None and now.seq == read.seq + 1 and now.metadata.prev == read.hash:
        return passed("VERIFY-30", f"{name} had entry {read.seq} before the one that is there now")
    if landing is not None and landing.level == verify_chain.FINALIZED and landing.error is None:
        return passed("VERIFY-30", f"the transaction of entry {read.seq} is final at {name}")
    detail = f"{name} has later entries, and no longer knows the transaction of entry {read.seq}"
    return unchecked("VERIFY-30", detail, hint=_EXPORT)
