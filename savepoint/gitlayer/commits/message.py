"""What a commit says: subject, body, the trailers that name its record; and reading them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import limits, spelling
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json

_SUBJECTS = {
    "save": "PRECOMPACT: Savepoint before context compaction",
    "birth": "BIRTH: Successor of an earlier instance",
    "retire": "RETIRE: The key of this instance signs nothing more",
    "accept": "ACCEPT: What the remote has is gone on from",
}
_SEQ = b"Savepoint-Seq: "
_RECORD = b"Savepoint-Record: "


class Commit(NamedTuple):
    """A commit object of ours."""

    tree: str
    parents: tuple[str, ...]
    seq: int  # of the record that the trailers name
    record: str  # its hash


def compose(one: Record, document: dict[str, Json] | None) -> bytes:
    """The message of a record's commit; `document` is that of its snapshot, if it has one."""
    lines = [
        f"[{one.instance}] {_SUBJECTS[one.kind]}",
        "",
        f"Instance: {one.instance}",
        f"Timestamp: {spelling.time_text(one.timestamp)}",
    ]
    if document is not None:
        used, budget = document["tokens_used_this_session"], document["session_token_budget"]
        lines.append(f"Snapshot hash: {one.body['snapshot_hash']}")
        lines.append(f"Tokens used: {_count(used)}/{_count(budget)}")
    trailers = b"%b%d\n%b%b\n" % (_SEQ, one.seq, _RECORD, one.hash.encode())
    return "\n".join(lines).encode() + b"\n\n" + trailers


def author(slug: str, one: Record) -> str:
    """Who committed, in the syntax of git: no person's name or address, and no time zone's."""
    return f"{slug} <{slug}@savepoint.invalid> {one.timestamp} +0000"


def parse(data: bytes) -> Commit:
    """A commit object. Raises MalformedError for one that is none of ours."""
    header, _, text = data.partition(b"\n\n")
    fields = [line.partition(b" ") for line in header.split(b"\n")]
    trees = [value.decode("ascii", "replace") for name, _, value in fields if name == b"tree"]
    parents = tuple(
        value.decode("ascii", "replace") for name, _, value in fields if name == b"parent"
    )
    trailers = text.rstrip(b"\n").rpartition(b"\n\n")[2].split(b"\n")
    if len(data) > limits.COMMIT_BYTES or len(trees) != 1 or len(trailers) != 2:
        raise MalformedError("a commit that is no savepoint's")
    seq = _trailer(trailers[0], _SEQ)
    if not seq.isdigit() or len(seq) > limits.JSON_INTEGER_DIGITS or seq != str(int(seq)):
        raise MalformedError("a commit whose Savepoint-Seq is no number")
    return Commit(trees[0], parents, int(seq), spelling.digest(_trailer(trailers[1], _RECORD)))


def _trailer(line: bytes, name: bytes) -> str:
    if not line.startswith(name):
        raise MalformedError("a commit without the trailers of a savepoint")
    return line.removeprefix(name).decode("ascii", "replace")


def _count(value: Json) -> str:
    return "unknown" if value is None else str(value)
