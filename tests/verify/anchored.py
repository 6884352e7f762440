"""An instance with records, the account that vouches for them, and what a ledger says of it."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from savepoint.core import accounts, entry, keys, record, spelling, verify_chain
from savepoint.core.entry import Account, Claim, Metadata, Place
from savepoint.core.history import History
from savepoint.core.ledger import AccountState
from savepoint.core.verdicts import Verdict, worst
from savepoint.core.verify_chain import Answer, Commits, Seen, Who

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.core.verdicts import Finding

INSTANCE = "Gabriel #215"
SEED = bytes(range(32))
OTHER_SEED = bytes(range(1, 33))
GENESIS = hashlib.sha256(b"a cluster").digest()
PROGRAM = hashlib.sha256(b"a program").digest()
ELF = b"\x7fELF shipped"
NOW = 1_790_000_000
SYSTEM = bytes(32)


class Index(NamedTuple):
    """Records that are signed and linked."""

    records: tuple[Record, ...]

    @classmethod
    def born(cls, instance: str = INSTANCE, seed: bytes = SEED) -> Index:
        body: dict[str, Json] = {"nonce": "00" * 16}
        one = record.make(
            "birth", seq=1, prev="0" * 64, timestamp=NOW, instance=instance, seed=seed, body=body
        )
        return cls((one,))

    def add(self, kind: str = "save", *, skip: int = 0, **body: Json) -> Index:
        """One more record; `skip` numbers are left out before it."""
        last = self.records[-1]
        seq = last.seq + 1 + skip
        one = record.make(
            kind,
            seq=seq,
            prev="ab" * 32 if skip else last.hash,
            timestamp=NOW + seq,
            instance=last.instance,
            seed=SEED,
            body={**(save_body(seq) if kind == "save" else {}), **body},
        )
        return Index((*self.records, one))

    def saves(self, count: int) -> Index:
        """So many savepoints more."""
        found = self
        for _ in range(count):
            found = found.add()
        return found

    @property
    def last(self) -> Record:
        return self.records[-1]

    @property
    def history(self) -> History:
        return History(self.records)

    @property
    def hashes(self) -> frozenset[str]:
        """Of all records: what an honest git has behind its newest commit."""
        return frozenset(one.hash for one in self.records)


def save_body(seq: int) -> dict[str, Json]:
    return {
        "session_id": "0f5b2a52-3f0e-4e5b-9d0a-8a2f5f0f7c11",
        "from": None,
        "trigger": "manual",
        "snapshot_hash": "sha256:" + hashlib.sha256(b"snapshot %d" % seq).hexdigest(),
        "snapshot_size_bytes": 9,
        "snapshot_file": f"logs/precompact-saves/snapshot_2026-11-30T13-{seq % 60:02}-49Z.json",
        "layer_1_status": "SAVED_LOCALLY",
        "tokens_used_this_session": None,
        "tokens_remaining": None,
        "context_utilization_percent": None,
        "consciousness_preserved": True,
    }


def commit_of(one: Record) -> str:
    return one.hash[:40]


def who(named: bytes | None = None) -> Who:
    return Who(INSTANCE, keys.public_key(SEED), PROGRAM, named)


def claim(one: Record, kind: int = entry.SAVEPOINT, prev: str = entry.NO_ENTRY) -> Claim:
    """What an honest key says of a savepoint's record."""
    digest = bytes.fromhex(one.snapshot_hash) if one.kind == "save" else bytes(32)
    return Claim(
        kind,
        one.timestamp,
        who().instance_hash,
        digest,
        commit_of(one),
        Metadata(prev, one.hash, one.seq).to_bytes(),
    )


def account(
    told: Claim, seq: int = 1, *, place: Place | None = None, seed: bytes = SEED
) -> Account:
    """As the program keeps it."""
    address, bump = who().address
    at = place or Place(GENESIS, PROGRAM, address)
    signature = keys.sign(seed, "anchor", told.message(seq, at))
    retired = told.kind == entry.RETIRE
    return Account(seq, 77, bump, retired, NOW + 9, told, signature)


def state(data: bytes, owner: bytes = PROGRAM, *, executable: bool = False) -> AccountState:
    return AccountState(owner, 1, data, executable, 99)


def program_states(
    elf: bytes = ELF, authority: bytes | None = None
) -> tuple[AccountState, AccountState]:
    """The two accounts of loader-v3."""
    where = accounts.program_data(PROGRAM)
    option = b"\0" + bytes(32) if authority is None else b"\1" + authority
    head = (3).to_bytes(4, "little") + (5).to_bytes(8, "little") + option
    pointer = state((2).to_bytes(4, "little") + where, accounts.LOADER, executable=True)
    return pointer, state(head + elf + bytes(40), accounts.LOADER)


def answer(found: Account | bytes | AccountState | None, **more: object) -> Answer:
    """What a ledger says; `more` replaces members of it."""
    if isinstance(found, Account):
        found = found.to_bytes()
    if isinstance(found, bytes):
        found = state(found)
    program, data = program_states()
    whole = Answer("testnet", GENESIS, True, 2, "finalized", found, program, data)
    return whole._replace(**more)  # type: ignore[arg-type]  # members of it


def seen(**ledgers: tuple[int, str]) -> Seen:
    """`own` is this cluster; other names are other genesis hashes."""
    named: dict[str, Json] = {
        spelling.base58(GENESIS) if name == "own" else name: {"seq": seq, "entry": hashed}
        for name, (seq, hashed) in ledgers.items()
    }
    return Seen.of(named, GENESIS)


def judged(
    index: Index,
    one: Record,
    given: Answer,
    before: Seen | None = None,
    *,
    commits: Commits | None = None,
    bootstrap: bytes | None = None,
    of: Who | None = None,
) -> dict[str, Finding]:
    """The finding of each rule for a savepoint."""
    found = verify_chain.account(of or who(), given, before or seen(), ELF)
    findings = list(found.findings)
    if found.account is not None:
        history = index.history
        vouched = verify_chain.vouched(found.account, history, bootstrap)
        named = {commit_of(other): other.hash for other in index.records}
        git = commits or Commits(index.hashes, named.get(found.account.claim.commit, ""))
        findings += verify_chain.savepoint(one, found.account, vouched, history, git)
    assert len({one.rule for one in findings}) == len(findings)
    return {finding.rule: finding for finding in findings}


TAMPERED, BACK, PENDING = Verdict.TAMPERED, Verdict.ROLLED_BACK, Verdict.PENDING
UNVERIFIABLE, VERIFIED = Verdict.UNVERIFIABLE, Verdict.VERIFIED

INDEX = Index.born().saves(3)  # records 1 to 4
OLD, NEW = INDEX.records[1], INDEX.last
GOOD = account(claim(NEW))


def verdict(found: dict[str, Finding]) -> Verdict:
    return worst(one.verdict for one in found.values())


def only(found: dict[str, Finding], rule: str, expected: Verdict = TAMPERED) -> Finding:
    """That rule, and no other, does not pass."""
    assert [name for name, one in found.items() if one.result != "pass"] == [rule]
    assert found[rule].verdict is expected
    return found[rule]
