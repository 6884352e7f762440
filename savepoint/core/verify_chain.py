"""Verification of the chain witness, as numbered rules: values in, findings out.

VERIFY-17  The cluster is the one where this instance's entries were seen, by its genesis hash.
           Stops a cluster that anybody can start, taken for the one that was chosen; and tells one
           that began anew.
VERIFY-18  The account lies where instance, key and program put it, and belongs to the program.
           Stops another account in its place: of another key, or one that another program writes.
VERIFY-19  The account's bytes are one entry in its one spelling: length, magic, version, type,
           flags, canonical bump, commit in hex, metadata, and zeros behind it.
           Stops what no program of ours has written, and a second meaning of an entry.
VERIFY-20  The ledger is as new as it was ever seen: no lower sequence, at an equal one the equal
           entry, at the next one an entry that follows it.
           Stops a ledger, or who speaks for it, that goes back to an older entry or tells another
           history.
VERIFY-21  The entry is of this instance, and its signature is the key's own for this cluster,
           program, account and sequence.
           Stops entries that somebody else made, or copied from another place; and signatures that
           hold for many messages, which Solana refuses and OpenSSL does not.
VERIFY-22  The index has the record that the entry names, of its kind and with its time.
           Stops an index that lacks what was anchored, a second history of one key, a false date.
VERIFY-23  The entry has the snapshot hash of that record; RETIRE that of the last savepoint before
           it, SUCCESSOR that of BOOTSTRAP_VERIFICATION.json.
           Stops an entry that vouches for other content than the index.
VERIFY-24  The index leads from that record back to the savepoint.
           Stops a savepoint that hides behind an entry which does not cover it.
VERIFY-25  The commit that the entry names is that record's, and comes from the savepoint's commit.
           Stops another git history than the one that was anchored.
VERIFY-26  The entry is finalized.
           Stops an entry that the cluster may still drop, taken for one that stays.
VERIFY-27  The program is the one that we ship, byte for byte.
           Stops a program of the same interface that lets entries go back.
VERIFY-28  What the ledger's word is worth is said: `independent` needs a known public cluster, two
           endpoints, and a program that nobody can change.
           Stops a ledger that its user runs, taken for somebody else's word.

17 to 21 and 26 to 28 are of the account (`account`), 22 to 25 of each savepoint (`savepoint`). That
snapshot file and git blob have the hash of the record is for VERIFY-5 and VERIFY-12, so that the
chain's verdict tells of the chain. A savepoint above the entry's record is PENDING. What nobody
could look at is UNVERIFIABLE, never TAMPERED.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import accounts, deployed, entry, spelling, verify_git
from savepoint.core.errors import MalformedError, SavepointError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import Finding, Verdict, passed, rolled_back, tampered, unchecked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.core.entry import Account, Metadata
    from savepoint.core.history import History
    from savepoint.core.ledger import AccountState
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json

CHAIN_RULES = tuple(f"VERIFY-{number}" for number in range(17, 29))
ACCOUNT_RULES = (*CHAIN_RULES[:5], *CHAIN_RULES[9:])

FINALIZED = "finalized"
NO_COMMIT = "0" * 40  # of a RETIRE before any savepoint
NO_SNAPSHOT = bytes(32)  # as NO_COMMIT
_ENDPOINTS = 2  # that agree, for an independent word

_SYNC = "run `savepoint sync`"
_ANOTHER = (
    "ask another endpoint: `savepoint verify --ledger URL`; if it says so too, the ledger lies. "
    "An embedded ledger.db that was put back from a copy can be moved away: a new one begins"
)
_FORK = "the key is used in two places: if the other one is not yours, run `savepoint keys retire`"
_OTHER_PROGRAM = "upgrade savepoint, or name the id of the shipped program with --program"
_KINDS = {entry.SAVEPOINT: "save", entry.RETIRE: "retire", entry.SUCCESSOR: "birth"}


class Who(NamedTuple):
    """Whose account is looked for, and under which program."""

    instance: str  # `NAME #N`
    authority: bytes  # 32 bytes
    program: bytes  # 32 bytes
    named: bytes | None = None  # the account that the verifier names; None: whichever it must be

    @property
    def instance_hash(self) -> bytes:
        """32 bytes: SHA-256 of the instance id."""
        return hashlib.sha256(self.instance.encode("utf-8")).digest()

    @property
    def address(self) -> tuple[bytes, int]:
        """(account, bump) that these must have."""
        return accounts.address(self.instance_hash, self.authority, self.program)


class Answer(NamedTuple):
    """What a ledger says, from one bank."""

    ledger: str  # its name
    genesis: bytes  # 32 bytes
    is_public: bool  # a known public cluster, by that
    endpoints: int  # how many were asked, and agree
    level: str  # finalized | confirmed
    account: AccountState | None
    program: AccountState | None
    program_data: AccountState | None


class Commits(NamedTuple):
    """What git has of the commit that the entry names."""

    behind: frozenset[str] | None  # the records of it and of all that it comes from; None: lost
    record: str = ""  # that of the commit itself
    has_border: bool = False  # a shallow history: what lies behind it is not here
    problem: str = ""  # why nobody could look


class Anchor(NamedTuple):
    """What the rules say of an account."""

    findings: tuple[Finding, ...]
    address: bytes  # 32 bytes: where it lies, or would
    account: Account | None  # the entry; None where there is none of ours that can be read
    upgrade_authority: bytes | None  # 32 bytes: who can change the program, if anybody
    dependence: str  # why the ledger is no independent witness; empty if it is

    @property
    def independent(self) -> bool:
        """Is it somebody else's word?"""
        return self.account is not None and not self.dependence


class Seen(NamedTuple):
    """What this machine has seen of an account at finalized, from the trusted head's `ledgers`."""

    seq: int  # of the entry; 0: none at this genesis
    entry: str  # its hash
    elsewhere: tuple[str, ...]  # other genesis hashes at which entries were seen

    @classmethod
    def of(cls, ledgers: Mapping[str, Json], genesis: bytes) -> Seen:
        """What is known of the cluster with that genesis hash (32 bytes)."""
        own = spelling.base58(genesis)
        others = tuple(one for one in ledgers if one != own)
        match ledgers.get(own):
            case {"seq": int(seq), "entry": str(entry_hash)}:
                return cls(seq, entry_hash, others)
            case _:
                return cls(0, "", others)


def account(who: Who, answer: Answer, seen: Seen, shipped: bytes) -> Anchor:
    """Rules 17 to 21 and 26 to 28. shipped: the program's bytes, as we ship them."""
    address, _ = who.address
    shown = shown_of(who)
    found = [_cluster(answer, seen), _place(who, answer.account, seen, shown)]
    state = answer.account
    if state is None or found[-1].result != "pass":
        return Anchor(tuple(found), address, None, None, "there is no entry of ours")
    read, spelled = spelling_of(state.data, who)
    found.append(spelled)
    if read is not None:
        found += [_freshness(read, seen, shown), signature(read, who, answer.genesis)]
    authority, program = _program(who.program, answer, shipped)
    dependence = _dependence(answer, authority, program)
    found += [_finality(answer, state.slot, shown), program, _independence(dependence)]
    return Anchor(tuple(found), address, read, authority, dependence)


def shown_of(who: Who) -> str:
    """How findings name the account."""
    return f"account {spelling.base58(who.address[0])}"


def _cluster(answer: Answer, seen: Seen) -> Finding:
    """VERIFY-17: a genesis hash is what tells one cluster, or one life of it, from another."""
    where = f"{answer.ledger} with genesis {spelling.base58(answer.genesis)}"
    if seen.seq or not seen.elsewhere:
        return passed("VERIFY-17", where)
    before = f"entries were seen at genesis {', '.join(seen.elsewhere)}"
    if answer.account is not None:
        return passed("VERIFY-17", f"{where}; {before} as well")
    detail = f"{where} is another cluster, or began anew: {before}; to be anchored again"
    return pending("VERIFY-17", detail)


def _place(who: Who, state: AccountState | None, seen: Seen, shown: str) -> Finding:
    """VERIFY-18: derived again, never believed."""
    named = derived(who)
    if named.result != "pass":
        return named
    if state is None and seen.seq:
        gone = f"{shown} is gone; entry {seen.seq} was seen there"
        return rolled_back("VERIFY-18", gone)._replace(hint=_ANOTHER)
    if state is None:
        return pending("VERIFY-18", f"there is no {shown} yet: nothing is anchored")
    if state.owner != who.program or state.executable:
        owner = spelling.base58(state.owner)
        return tampered("VERIFY-18", f"{shown} belongs to {owner}, not to the program")
    return named


def derived(who: Who) -> Finding:
    """VERIFY-18, without a ledger: the account that is named is the one that must be."""
    address, shown = who.address[0], shown_of(who)
    if who.named not in (None, address):
        detail = f"{who.instance} has {shown}, not {spelling.base58(who.named or b'')}"
        return tampered("VERIFY-18", detail)
    return passed("VERIFY-18", f"{shown} of program {spelling.base58(who.program)}")


def spelling_of(data: bytes, who: Who) -> tuple[Account | None, Finding]:
    """VERIFY-19. A later version is not damage."""
    shown, bump = shown_of(who), who.address[1]
    try:
        found = entry.parse(data)
        prev = entry.parse_metadata(found.claim.metadata, found.claim.kind).prev
    except UnsupportedFormatError as newer:
        return None, unchecked("VERIFY-19", f"{shown}: {newer.message}", unsupported=True)
    except SavepointError as failure:
        return None, tampered("VERIFY-19", f"{shown}: {failure.message}")
    if (found.seq == 1) != (prev == entry.NO_ENTRY):
        return None, tampered("VERIFY-19", f"{shown}: the first entry, and no other, follows none")
    if found.bump != bump:
        return None, tampered("VERIFY-19", f"{shown}: bump {found.bump} where {bump} belongs")
    kind = entry.KINDS[found.claim.kind]
    return found, passed("VERIFY-19", f"{shown}: entry {found.seq}, {kind}")


def _freshness(read: Account, seen: Seen, shown: str) -> Finding:
    """VERIFY-20: the program never goes back, so whoever shows less than was seen does."""
    back = ""
    if read.seq < seen.seq:
        back = f"{shown} has entry {read.seq}; {seen.seq} was seen"
    elif read.seq == seen.seq and read.hash != seen.entry:
        back = f"{shown}: entry {read.seq} is not the one that was seen"
    if back:
        return rolled_back("VERIFY-20", back)._replace(hint=_ANOTHER)
    if seen.seq and read.seq == seen.seq + 1 and read.metadata.prev != seen.entry:
        return tampered("VERIFY-20", f"{shown}: entry {read.seq} does not follow the one before")
    return passed("VERIFY-20", f"{shown}: entry {read.seq}, up to {seen.seq} was seen before")


def signature(read: Account, who: Who, genesis: bytes) -> Finding:
    """VERIFY-21: the stored signature, by the strict rules of `core.keys`."""
    shown = shown_of(who)
    if read.claim.instance_hash != who.instance_hash:
        return tampered("VERIFY-21", f"{shown}: the entry is not of {who.instance}")
    place = entry.Place(genesis, who.program, who.address[0])
    if not read.is_signed_by(who.authority, place):
        return tampered("VERIFY-21", f"{shown}: the entry's signature does not hold here")
    key = spelling.base58(who.authority)
    return passed("VERIFY-21", f"{shown}: signed by {key} for this place")


def _finality(answer: Answer, slot: int, shown: str) -> Finding:
    """VERIFY-26."""
    if answer.level != FINALIZED:
        return pending("VERIFY-26", f"{shown} is {answer.level}, not final, as of slot {slot}")
    return passed("VERIFY-26", f"{shown} is finalized as of slot {slot}")


def _program(program: bytes, answer: Answer, shipped: bytes) -> tuple[bytes | None, Finding]:
    """VERIFY-27: what an account's rules are worth depends on who keeps them. With it who can
    change the program.
    """
    try:
        found = deployed.parse(program, answer.program, answer.program_data)
    except MalformedError as failure:
        return None, unchecked("VERIFY-27", failure.message, hint=_OTHER_PROGRAM)
    digest = hashlib.sha256(found.elf).hexdigest()
    wanted = hashlib.sha256(deployed.trimmed(shipped)).hexdigest()
    if digest != wanted:
        detail = f"the program there has SHA-256 {digest}, the shipped one {wanted}"
        return found.upgrade_authority, unchecked("VERIFY-27", detail, hint=_OTHER_PROGRAM)
    held = f"the program is the shipped one, SHA-256 {digest}"
    return found.upgrade_authority, passed("VERIFY-27", held)


def _dependence(answer: Answer, authority: bytes | None, program: Finding) -> str:
    """Why nobody but its user may stand behind what a ledger says; empty if somebody does."""
    lacks = []
    if not answer.is_public:
        lacks.append(f"{answer.ledger} is no known public cluster")
    if answer.endpoints < _ENDPOINTS:
        lacks.append("fewer than two endpoints were asked")
    if program.result != "pass":
        lacks.append("the program is not known to be the shipped one")
    if authority is not None:
        lacks.append(f"{spelling.base58(authority)} can change the program")
    if answer.level != FINALIZED:
        lacks.append("the entry is not final")
    return "; ".join(lacks)


def _independence(dependence: str) -> Finding:
    """VERIFY-28: it lowers no verdict, and is never passed over in silence."""
    told = f"consistent, not independent: {dependence}" if dependence else "independent"
    return passed("VERIFY-28", told)


class Vouched(NamedTuple):
    """What the entry of an account vouches for; the same for all savepoints of an index."""

    record: Record | None  # the one that the entry names
    behind: frozenset[str]  # it and the records that the index leads back to from there
    findings: tuple[Finding, ...]  # of rules 22 and 23


def vouched(read: Account, history: History, bootstrap: bytes | None) -> Vouched:
    """Rules 22 and 23. bootstrap: BOOTSTRAP_VERIFICATION.json of a successor, if there is one."""
    one, named = _record(read, history)
    if one is None:
        return Vouched(None, frozenset(), (named,))
    content = _content(read, one, history, bootstrap)
    return Vouched(one, frozenset(history.behind(one)), (named, content))


def _record(read: Account, history: History) -> tuple[Record | None, Finding]:
    """VERIFY-22."""
    told, kind = read.metadata, read.claim.kind
    where = f"entry {read.seq} names record {told.seq}"
    one = history.find(told.rec)
    if kind not in _KINDS:
        newer = f"entry {read.seq} is a {entry.KINDS[kind]}, which this version does not follow"
        return None, unchecked("VERIFY-22", newer, unsupported=True)
    if one is None:
        return None, _without_record(told, history, where)
    if (one.seq, one.kind) != (told.seq, _KINDS[kind]):
        return None, tampered("VERIFY-22", f"{where}: record {one.seq} is a {one.kind}")
    if one.timestamp != read.claim.client_time:
        return None, tampered("VERIFY-22", f"{where}, and has another time than that")
    return one, passed("VERIFY-22", f"{where}, which the index has")


def _without_record(told: Metadata, history: History, where: str) -> Finding:
    """VERIFY-22: the key vouched for a record, and the index has it not, or not as one that this
    version can read.
    """
    if told.seq in history.newer:
        newer = f"{where}, which a newer version wrote"
        return unchecked("VERIFY-22", newer, unsupported=True)
    if told.seq > history.last_seq:
        return rolled_back("VERIFY-22", f"{where}; the index ends at {history.last_seq}")
    if history.is_given_up(told.seq):
        return pending("VERIFY-22", f"{where}, whose loss was accepted; to be anchored again")
    if history.at(told.seq) is not None:
        other = f"{where}; the index has another one of that number"
        return rolled_back("VERIFY-22", other)._replace(hint=_FORK)
    return tampered("VERIFY-22", f"{where}, which the index lacks")


def _content(read: Account, one: Record, history: History, bootstrap: bytes | None) -> Finding:
    """VERIFY-23."""
    if one.kind == "birth":
        return _bootstrap(read, bootstrap)
    last = history.last_save(one) if one.kind == "retire" else one
    expected = NO_SNAPSHOT if last is None else bytes.fromhex(last.snapshot_hash)
    if read.claim.snapshot_hash != expected:
        of = "no savepoint" if last is None else f"record {last.seq}"
        return tampered("VERIFY-23", f"entry {read.seq} has another snapshot hash than {of}")
    return passed("VERIFY-23", f"entry {read.seq} has the snapshot hash {expected.hex()}")


def _bootstrap(read: Account, bootstrap: bytes | None) -> Finding:
    """VERIFY-23 of a SUCCESSOR: which document it means. Whether that holds is its own question."""
    if bootstrap is None:
        return unchecked("VERIFY-23", "BOOTSTRAP_VERIFICATION.json is not here")
    if hashlib.sha256(bootstrap).digest() != read.claim.snapshot_hash:
        return tampered("VERIFY-23", "BOOTSTRAP_VERIFICATION.json is not the one that was anchored")
    return passed("VERIFY-23", "BOOTSTRAP_VERIFICATION.json is the one that was anchored")


def savepoint(
    one: Record, read: Account, found: Vouched, history: History, commits: Commits
) -> list[Finding]:
    """Rules 22 to 25 of a savepoint."""
    if found.record is None:
        return list(found.findings)
    covered = _covered(one, found, read)
    if covered.result != "pass":
        return [*found.findings, covered]
    return [*found.findings, covered, _commit(one, found.record, read, history, commits)]


def _covered(one: Record, found: Vouched, read: Account) -> Finding:
    """VERIFY-24."""
    assert found.record is not None  # noqa: S101  # savepoint; for the type checker
    last = found.record.seq
    if one.seq > last:
        detail = f"record {one.seq} comes after record {last}, the newest that is anchored"
        return pending("VERIFY-24", detail)
    if one.hash not in found.behind:
        return tampered("VERIFY-24", f"record {last} does not lead back to record {one.seq}")
    how = "is the one anchored" if one.seq == last else f"is covered by record {last}"
    return passed("VERIFY-24", f"record {one.seq} {how}, entry {read.seq}")


def _commit(
    one: Record, last: Record, read: Account, history: History, commits: Commits
) -> Finding:
    """VERIFY-25. Git's ids only locate: what a commit holds is for VERIFY-12."""
    named = read.claim.commit
    if commits.problem:
        return unchecked("VERIFY-25", commits.problem)
    if commits.behind is None:
        return unchecked("VERIFY-25", f"anchored commit missing: {named}")
    of = history.last_save(last) if last.kind == "retire" else last
    if of is not None and commits.record != of.hash:
        return tampered("VERIFY-25", f"commit {named} is not that of record {of.seq}")
    if one.hash in commits.behind:
        return passed("VERIFY-25", f"commit {named} has record {one.seq} behind it")
    if commits.has_border:
        return verify_git.behind("VERIFY-25", one)
    return tampered("VERIFY-25", f"commit {named} does not come from that of record {one.seq}")


def not_asked(reason: str, hint: str = "") -> list[Finding]:
    """All rules, where the ledger could not be asked, or was not to be."""
    return [unchecked(rule, reason, hint=hint) for rule in CHAIN_RULES]


def pending(rule: str, detail: str) -> Finding:
    """Nothing is wrong; it is still to be done."""
    return Finding(rule, "skipped", detail, Verdict.PENDING, hint=_SYNC)
