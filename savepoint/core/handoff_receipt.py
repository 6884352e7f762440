"""receipt.json: what a thread passed on, signed by the key of the savepoint it stands on
(docs/format.md, section 17). What matters most comes first.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import handoff_log, keys, record, schema, signed_line, spelling
from savepoint.core.errors import MalformedError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import Json, parse_file
from savepoint.core.verdicts import Verdict

if TYPE_CHECKING:
    from savepoint.core.record import Record

VERSION = 1
TYPE = "HANDOFF_RECEIPT"

_THREAD: dict[str, schema.Check] = {"thread": handoff_log.thread_id, "title": schema.text}
_SHAPE = schema.members(
    {
        "v": schema.one_of(VERSION),
        "type": schema.one_of(TYPE),
        "timestamp": schema.spelled(spelling.time_seconds),
        "predecessor": schema.members(_THREAD),
        "successor": schema.members(_THREAD),
        "number": schema.positive,
        "items": schema.array(
            schema.members(
                {
                    "item": handoff_log.item_id,
                    "text": schema.text,
                    "binding": schema.nullable(schema.members(handoff_log.BINDING)),
                }
            )
        ),
        "savepoint": record.ORIGIN,
        "record": schema.text,
        "witnesses": schema.mapping(schema.one_of(*map(str, Verdict))),
        "unverified": schema.array(schema.spelled(spelling.word)),
        "project": schema.text,
        "session": schema.nullable(schema.spelled(spelling.session_key)),
        "log": schema.members({"seq": schema.positive, "record": schema.spelled(spelling.digest)}),
        "document": schema.spelled(spelling.digest),
        "instance": schema.spelled(spelling.Instance.parse),
        "signer": schema.spelled(spelling.key_bytes),
        "signature": schema.hexadecimal(keys.SIGNATURE_BYTES),
    }
)


class Receipt(NamedTuple):
    """A receipt. `data` is the file, `body` what it says."""

    data: bytes
    body: dict[str, Json]

    @property
    def hash(self) -> str:
        """SHA-256 of the file: what the log names."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def thread(self) -> str:
        """The thread that was handed off."""
        return str(self._of("predecessor", "thread"))

    @property
    def successor(self) -> str:
        """The thread that takes over."""
        return str(self._of("successor", "thread"))

    @property
    def signer(self) -> bytes:
        """32 bytes."""
        return spelling.key_bytes(str(self.body["signer"]))

    @property
    def items(self) -> dict[str, dict[str, Json]]:
        """What was open, by id."""
        listed = self.body["items"]
        found = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
        return {str(one["item"]): one for one in found}

    def savepoint(self) -> Record:
        """The record of the savepoint. Raises MalformedError: it is not the one named beside it."""
        one = record.parse(str(self.body["record"]).encode())
        if one.kind != "save" or one.origin() != self.body["savepoint"]:
            raise MalformedError("the receipt's record is not that of the savepoint it names")
        return one

    def signature_holds(self) -> bool:
        """Is it signed by the key that it names?"""
        signature = bytes.fromhex(str(self.body["signature"]))
        return signed_line.holds(self.data.removesuffix(b"\n"), self.signer, signature, "receipt")

    def _of(self, member: str, name: str) -> Json:
        value = self.body[member]
        return value[name] if isinstance(value, dict) else None


def make(seed: bytes, body: dict[str, Json]) -> Receipt:
    """A new one. body: all members from `timestamp` to `instance`, in their order.

    Raises MalformedError if what was given cannot be one.
    """
    head: dict[str, Json] = {"v": VERSION, "type": TYPE}
    signer: dict[str, Json] = {"signer": spelling.base58(keys.public_key(seed))}
    return parse(signed_line.seal({**head, **body, **signer}, seed, "receipt") + b"\n")


def parse(data: bytes) -> Receipt:
    """The receipt of a file's bytes. Its signature is not checked here.

    Raises MalformedError, or UnsupportedFormatError for a version above ours.
    """
    value = parse_file(data)
    version = value.get("v")
    if type(version) is int and version > VERSION:
        raise UnsupportedFormatError(f"receipt.json of version {version}")
    _SHAPE(value, "receipt.json")
    receipt = Receipt(data, value)
    listed = receipt.body["items"]
    if not isinstance(listed, list) or len(receipt.items) != len(listed):
        raise MalformedError("receipt.json names an item twice")
    return receipt
