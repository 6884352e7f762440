"""The trusted head's one spelling (docs/format.md, section 9): bytes in, value out."""

from __future__ import annotations

from savepoint.core import limits, schema, spelling
from savepoint.core.chain import Gap
from savepoint.core.errors import UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import Json, dump, parse_file

_digest = schema.spelled(spelling.digest)
_SHAPE = schema.members(
    {
        "v": schema.one_of(1),
        "seq": schema.count,
        "record": _digest,
        "recreated": schema.truth,
        "gaps": schema.array(schema.members({"first": schema.count, "last": schema.count})),
        "remote_tip": schema.nullable(schema.text),
        "ledgers": schema.mapping(schema.members({"seq": schema.count, "entry": _digest})),
    }
)


class TrustedHead(NamedTuple):
    """What this machine has seen of one instance."""

    seq: int  # of the newest record
    record: str  # its hash
    recreated: (
        bool  # written anew where none was found: counts as missing until a witness was asked
    )
    gaps: tuple[Gap, ...]  # sequences that were rolled back and gone on from
    remote_tip: str | None  # newest commit read back from the remote
    ledgers: dict[str, Json]  # genesis hash → {"seq", "entry"}, at finalized

    def raised(self, seq: int, record_hash: str) -> TrustedHead:
        """With `seq` and its hash, if that is higher."""
        return self._replace(seq=seq, record=record_hash) if seq > self.seq else self

    def entry_seen(self, genesis: str) -> int:
        """Sequence of the newest finalized entry on the cluster of that genesis hash; 0: none."""
        match self.ledgers.get(genesis):
            case {"seq": int(seq)}:
                return seq
        return 0

    def with_entry(
        self, genesis: str, seq: int, entry_hash: str, *, is_embedded: bool
    ) -> TrustedHead:
        """With a finalized entry of the cluster of that genesis hash (base58), if it is newer. A
        head that was made anew counts again, as a ledger was asked; not so the embedded one: its
        file lies in the store, and is put back with it.
        """
        known = self if is_embedded else self._replace(recreated=False)
        if seq <= self.entry_seen(genesis):
            return known
        return known._replace(ledgers={**self.ledgers, genesis: {"seq": seq, "entry": entry_hash}})

    def without_ledger(self, genesis: str) -> TrustedHead:
        """The owner chose another program there, whose account begins at 1."""
        kept = {name: one for name, one in self.ledgers.items() if name != genesis}
        return self._replace(ledgers=kept)

    def to_bytes(self) -> bytes:
        """Its file (docs/format.md, section 9)."""
        return dump(self.to_json()) + b"\n"

    def to_json(self) -> Json:
        """As it stands there, and in a backup of the keys."""
        return {"v": 1, **self._asdict(), "gaps": [dict(gap._asdict()) for gap in self.gaps]}


def first(seq: int, record_hash: str, *, recreated: bool) -> TrustedHead:
    """A head where there was none."""
    return TrustedHead(seq, record_hash, recreated, (), None, {})


def parse(data: bytes) -> TrustedHead:
    """The head of a file's bytes. Raises MalformedError (which counts as missing: a power cut may
    leave an empty file), and UnsupportedFormatError.
    """
    value = parse_file(data, limits.SMALL_DOCUMENT_BYTES - 1)
    version = value.get("v")
    if type(version) is int and version > 1:
        raise UnsupportedFormatError(f"is of version {version}")
    return from_json(value)


def from_json(value: Json) -> TrustedHead:
    """The inverse of `to_json`. Raises MalformedError."""
    _SHAPE(value, "trusted head")
    assert isinstance(value, dict)  # noqa: S101  # _SHAPE saw it; for the type checker
    gaps = tuple(Gap(one["first"], one["last"]) for one in value["gaps"])  # type: ignore[union-attr,call-overload,index,arg-type]  # _SHAPE
    more = {name: one for name, one in value.items() if name not in ("v", "gaps")}
    return TrustedHead(gaps=gaps, **more)  # type: ignore[arg-type]  # _SHAPE
