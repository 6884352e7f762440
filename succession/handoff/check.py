"""An offline checker of one handoff. It shares nothing with what writes them but `core`, and
follows the log with a reading of its own.

CHECK-1  The receipt is one, in its one spelling, and its signature holds.
CHECK-2  The record in it is that of the savepoint it names, signed by the key of the receipt.
CHECK-3  handoff.md is the page that the receipt names.
CHECK-4  The log is whole: each line follows the one before, and is signed by the key it names.
CHECK-5  The receipt stands on a line of that log, and a later one settles the thread by naming it.
CHECK-6  What the receipt lists is exactly what the thread owed at that line.
CHECK-7  Every candidate that was drawn was mapped to an item, or dismissed with a reason.
CHECK-8  One session accepted, and each item was taken over, left with a reason, or closed with
         evidence; a binding was taken over only with what was read back.

Keys are those that the lines name: whether they are yours is for `savepoint verify`, or for who
compares them. Not told by any of this: whether the texts are true.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import handoff_log, handoff_receipt
from savepoint.core.errors import SavepointError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from savepoint.core.handoff_log import Entry
    from savepoint.core.handoff_receipt import Receipt
    from savepoint.core.strict_json import Json

COMPLETE, PARTIAL, INVALID = "complete", "partial", "invalid"
EXIT_CODES = {COMPLETE: 0, PARTIAL: 3, INVALID: 20}
_ADDS = {"offer", "work", "bind"}


class Finding(NamedTuple):
    """What one rule says."""

    rule: str
    verdict: str  # complete: it holds; partial: not yet, or it could not be looked at; invalid
    detail: str


class Checked(NamedTuple):
    """The findings on one handoff."""

    findings: tuple[Finding, ...]
    signer: str  # base58; empty where the receipt is none

    @property
    def verdict(self) -> str:
        """The worst."""
        found = {one.verdict for one in self.findings}
        return next(one for one in (INVALID, PARTIAL, COMPLETE) if one in found)

    def to_json(self) -> dict[str, Json]:
        """As in `handoff verify --json`."""
        return {
            "verdict": self.verdict,
            "signer": self.signer or None,
            "findings": [dict(one._asdict()) for one in self.findings],
        }


def check(receipt: bytes | None, page: bytes | None, log: bytes | None) -> Checked:
    """Check a handoff. None: there is no such file."""
    if receipt is None:
        verdict = PARTIAL if page is not None else INVALID
        return Checked((Finding("CHECK-1", verdict, "there is no receipt.json"),), "")
    try:
        told = handoff_receipt.parse(receipt)
    except UnsupportedFormatError:
        raise
    except SavepointError as failure:
        return Checked((Finding("CHECK-1", INVALID, failure.message),), "")
    found = [_signed(told), _savepoint(told), _page(told, page)]
    if log is None:
        found.append(Finding("CHECK-4", PARTIAL, "there is no log beside it"))
    else:
        chain = handoff_log.Chain(log)
        found.append(_whole(chain))
        if chain.fault is None:
            found += _followed(told, chain.entries)
    return Checked(tuple(found), str(told.body["signer"]))


def _signed(receipt: Receipt) -> Finding:
    if receipt.signature_holds():
        return Finding("CHECK-1", COMPLETE, "the receipt's signature holds")
    return Finding("CHECK-1", INVALID, "the receipt's signature does not hold")


def _savepoint(receipt: Receipt) -> Finding:
    try:
        one = receipt.savepoint()
    except SavepointError as failure:
        return Finding("CHECK-2", INVALID, failure.message)
    if not one.signature_holds() or one.signer != receipt.signer:
        return Finding(
            "CHECK-2", INVALID, f"savepoint {one.seq} is not signed by the receipt's key"
        )
    return Finding("CHECK-2", COMPLETE, f"savepoint {one.seq}, {one.body['snapshot_hash']}")


def _page(receipt: Receipt, page: bytes | None) -> Finding:
    if page is None:
        return Finding("CHECK-3", INVALID, "there is no handoff.md")
    if hashlib.sha256(page).hexdigest() != receipt.body["document"]:
        return Finding("CHECK-3", INVALID, "handoff.md is another page than the receipt names")
    return Finding("CHECK-3", COMPLETE, "handoff.md is the page that the receipt names")


def _whole(chain: handoff_log.Chain) -> Finding:
    if chain.fault is not None:
        if isinstance(chain.fault, UnsupportedFormatError):
            raise chain.fault
        return Finding("CHECK-4", INVALID, chain.fault.message)
    lines = counted(len(chain.entries), "line")
    if chain.torn:
        lines += f"; what follows was never acknowledged: {counted(len(chain.torn), 'byte')}"
    return Finding("CHECK-4", COMPLETE, lines)


def _followed(receipt: Receipt, entries: Sequence[Entry]) -> list[Finding]:
    """The rules that hold the receipt against the log."""
    head = receipt.body["log"]
    at, digest = (head["seq"], head["record"]) if isinstance(head, dict) else (0, "")
    if not isinstance(at, int) or at > len(entries) or entries[at - 1].hash != digest:
        why = f"the log has no line {at} as the receipt names it"
        return [Finding("CHECK-5", INVALID, why)]
    own = [one for one in entries if one.kind == "settle" and one.thread == receipt.thread]
    if not own:
        return [Finding("CHECK-5", PARTIAL, "no line of the log settles the thread")]
    if own[0].body["receipt"] != receipt.hash:
        return [Finding("CHECK-5", INVALID, f"line {own[0].seq} names another receipt")]
    settled = own[0]
    found = [Finding("CHECK-5", COMPLETE, f"line {settled.seq} settles {receipt.thread} by it")]
    if settled.seq != at + 1 or settled.body["from"] != receipt.body["savepoint"]:
        why = f"line {settled.seq} settles it on another state than the receipt"
        return [Finding("CHECK-5", INVALID, why)]
    found.append(_listed(receipt, entries[:at]))
    found.append(_reconciled(receipt, entries[:at]))
    found.append(_accepted(receipt, entries[settled.seq :]))
    return found


def _listed(receipt: Receipt, before: Sequence[Entry]) -> Finding:
    """Follows each item to where it is, line by line."""
    places: dict[str, str] = {}
    told: dict[str, dict[str, Json]] = {}
    for one in before:
        item = str(one.body.get("item"))
        if one.kind in _ADDS:
            places[item] = one.thread
            binding = {name: one.body[name] for name in handoff_log.BINDING if name in one.body}
            told[item] = {"item": item, "text": one.body["text"], "binding": binding or None}
        elif one.kind == "take":
            places[item] = one.thread
        elif one.kind in {"close", "leave"}:
            places.pop(item, None)
    owed = {item for item, thread in places.items() if thread == receipt.thread}
    wrong = owed ^ receipt.items.keys()
    wrong |= {item for item in owed - wrong if receipt.items[item] != told[item]}
    if wrong:
        return Finding("CHECK-6", INVALID, f"not as the log has it: {', '.join(sorted(wrong))}")
    return Finding("CHECK-6", COMPLETE, f"{counted(len(owed), 'item')}, as the log has it")


def _reconciled(receipt: Receipt, before: Sequence[Entry]) -> Finding:
    own = [one for one in before if one.thread == receipt.thread]
    drawn = {one.body["candidate"] for one in own if one.kind == "candidate"}
    answered = {one.body["candidate"] for one in own if one.kind in {"map", "dismiss"}}
    if drawn - answered or not any(one.kind == "gather" for one in own):
        return Finding("CHECK-7", INVALID, f"{len(drawn - answered)} candidates have no answer")
    return Finding("CHECK-7", COMPLETE, f"{len(drawn)} candidates, all of them answered")


def _accepted(receipt: Receipt, after: Sequence[Entry]) -> Finding:
    took = [one for one in after if one.kind == "accept" and one.thread == receipt.successor]
    if len(took) > 1:
        return Finding("CHECK-8", INVALID, f"{receipt.successor} was accepted more than once")
    bound = {item for item, one in receipt.items.items() if one["binding"] is not None}
    ends: dict[str, str] = {}
    for one in after:
        item = str(one.body.get("item"))
        if one.kind == "close" and item in receipt.items:
            ends.setdefault(item, "closed")
        elif one.kind in {"take", "leave"} and one.thread == receipt.successor:
            odd = one.kind == "take" and (one.body["value"] is None) == (item in bound)
            if not took or item in ends or item not in receipt.items or odd:
                return Finding("CHECK-8", INVALID, f"line {one.seq} cannot {one.kind} {item}")
            ends[item] = one.kind
    if not took:
        return Finding("CHECK-8", PARTIAL, f"{receipt.successor} was not accepted yet")
    missing = sorted(receipt.items.keys() - ends.keys())
    if missing:
        return Finding("CHECK-8", PARTIAL, f"not taken over yet: {', '.join(missing)}")
    counts = {word: sum(end == word for end in ends.values()) for word in ("take", "leave")}
    who = f"session {took[0].body['session']}"
    return Finding(
        "CHECK-8", COMPLETE, f"{who} took {counts['take']} items over and left {counts['leave']}"
    )
