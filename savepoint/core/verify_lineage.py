"""Verification of a line of instances, as numbered rules: values in, findings out.

LINEAGE-1  Modulo zero: the predecessor's key has signed that this instance, with this key and this
           nonce, follows it; the number is higher, and whoever holds a number in between is named.
           Stops an instance that calls itself a successor, and a line that leaves somebody out.
LINEAGE-2  The predecessor's index has the savepoint that the successor comes from.
           Stops a birth from a state that never was, or was taken back.
LINEAGE-3  The successor's index says that it was restored from that savepoint.
           Stops a document that was put beside another instance's index.
LINEAGE-4  The first commit of the successor's branch holds this very document.
           Stops one that was put in its place later.
LINEAGE-5  The SUCCESSOR entry names this document, and the account of the predecessor.
           Stops an entry by which somebody else claims the line.

What nobody could look at is UNVERIFIABLE, what is not committed or anchored yet PENDING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import bootstrap_document, entry
from savepoint.core.verdicts import REPAIR, Finding, Verdict, passed, tampered, unchecked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from savepoint.core.bootstrap_document import Bootstrap
    from savepoint.core.entry import Account
    from savepoint.core.record import Record

LINEAGE_RULES = tuple(f"LINEAGE-{number}" for number in range(1, 6))
_SYNC = "run `savepoint sync`"


def lawful(document: Bootstrap, birth: Record, where: str) -> Finding:
    """LINEAGE-1."""
    fault = bootstrap_document.fault(document, birth)
    if fault:
        return tampered("LINEAGE-1", f"{where}: {fault}")
    before, after = document.predecessor.instance, document.successor.instance
    return passed("LINEAGE-1", f"modulo zero holds: {before} → {after}")


def first(restored: Record | None, where: str) -> Finding:
    """LINEAGE-1 of an instance without a document. restored: the record that says where it comes
    from; without one it is the first of its line.
    """
    if restored is None:
        return passed("LINEAGE-1", "it is the first of its line")
    lost = f"{where} has no BOOTSTRAP_VERIFICATION.json, and comes from another by record"
    return tampered("LINEAGE-1", f"{lost} {restored.seq}")._replace(hint=REPAIR)


def origin(document: Bootstrap, records: Sequence[Record] | None) -> Finding:
    """LINEAGE-2. records: those of the predecessor; None: it is not here."""
    wanted, who = document.savepoint, document.predecessor.instance
    if records is None:
        return unchecked("LINEAGE-2", f"{who} is not in this store")
    named = [one for one in records if one.hash == wanted.record]
    agrees = any(
        (one.kind, one.seq, one.body.get("snapshot_hash"), one.signer)
        == ("save", wanted.seq, wanted.snapshot_hash, document.predecessor.key)
        for one in named
    )
    if not agrees:
        return tampered("LINEAGE-2", f"{who} has no savepoint {wanted.seq} as the document has it")
    return passed("LINEAGE-2", f"it comes from savepoint {wanted.seq} of {who}")


def restored(document: Bootstrap, records: Sequence[Record]) -> Finding:
    """LINEAGE-3. records: those of the successor."""
    wanted = document.savepoint
    for one in records:
        named = one.body.get("from") if one.kind == "restore" else None
        if isinstance(named, dict):
            agrees = (named["seq"], named["snapshot_hash"]) == (wanted.seq, wanted.snapshot_hash)
            if not agrees:
                return tampered("LINEAGE-3", f"record {one.seq} names another savepoint")
            return passed("LINEAGE-3", f"record {one.seq} names that savepoint")
    return tampered("LINEAGE-3", "no record says from which savepoint it was restored")


def committed(document: Bootstrap, held: bytes | None, commit: str | None) -> Finding:
    """LINEAGE-4. held: the document in the branch's first commit; commit: that, None: none yet."""
    if commit is None:
        return Finding(
            "LINEAGE-4", "skipped", "the birth is not committed yet", Verdict.PENDING, hint=_SYNC
        )
    if held != document.data:
        return tampered("LINEAGE-4", f"commit {commit} does not hold this document")
    return passed("LINEAGE-4", f"commit {commit} holds the document")


def not_anchored(why: str) -> Finding:
    """LINEAGE-5 where there is no ledger that counts: it is named, and lowers no verdict."""
    return Finding("LINEAGE-5", "skipped", f"it does not count: {why}", Verdict.OFF)


def anchored(document: Bootstrap, account: Account | None, predecessor: str) -> Finding:
    """LINEAGE-5. account: of the successor, whose own rules hold; None: there is none yet.
    predecessor: base58 of the predecessor's account.
    """
    if account is None:
        detail = "the SUCCESSOR entry is not on the ledger yet"
        return Finding("LINEAGE-5", "skipped", detail, Verdict.PENDING, hint=_SYNC)
    if account.claim.kind != entry.SUCCESSOR:
        return passed("LINEAGE-5", f"entry {account.seq} goes on from the SUCCESSOR entry")
    if account.claim.snapshot_hash.hex() != document.hash:
        return tampered("LINEAGE-5", "the SUCCESSOR entry names another document")
    if account.metadata.pred != predecessor:
        return tampered("LINEAGE-5", "the SUCCESSOR entry names another predecessor")
    return passed("LINEAGE-5", "the SUCCESSOR entry names this document and the predecessor")
