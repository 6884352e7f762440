"""Two histories of one key: the remote's is taken, ours is appended to it again as new records.

Two machines signed with one key, or a copy of the store went on. The snapshots stay what they are;
their records get new numbers behind all that either history has used. The index as it was is kept
in logs/forks/, and its commits stay below the commit that joins the two.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.core import limits, record
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import cursor
from savepoint.gitlayer.commits import joint
from savepoint.gitlayer.commits.joint import Parents
from savepoint.gitlayer.remote import adopt, pushed
from savepoint.gitlayer.remote.adopt import Relation
from savepoint.store import durable, index, savepoints, trusted
from savepoint.store.files import read_bounded
from savepoint.store.keys import keyring
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.core.strict_json import Json
    from savepoint.gitlayer.remote.remote import Remote
    from savepoint.gitlayer.remote.theirs import Theirs
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.keys.agekeys import Identity
    from savepoint.store.layout import InstancePaths

_AGAIN = ("save", "restore", "retire")  # kinds of records that are appended again


def take(
    remote: Remote,
    paths: InstancePaths,
    found: Theirs,
    ours: str | None,
    identities: list[Identity],
    now: int,
) -> tuple[Record, list[str]]:
    """Do it; the accept record, and savepoints of the remote that came back without their content.
    ours: the commit of our ref, if there is one. now: Unix seconds.

    No save goes on meanwhile. What is killed in between is done again by the next call.
    Raises KeyFileError, BusyError, CommitError, DiskError.
    """
    deadline = remote.repo.deadline
    with Lock(paths.store.saving, deadline), Lock(paths.store.lock, deadline):
        index.settle(paths)
        accepted, problems = unfinished(remote.repo, paths, found), list[str]()
        if accepted is None:
            accepted, problems = _rewrite(remote.repo, paths, found, identities, now)
        lines = index.read(paths).split(b"\n")[:-1]
        whole = lines[: lines.index(accepted.line) + 1]
        parents = Parents(found.commit, ours)
        commit = joint.join(remote.repo, paths, whole, accepted, parents)
        adopt.move_ref(remote.repo, paths, commit)
        adopt.raise_head(paths, trusted.load(paths), record.parse(lines[-1]))
        pushed.forget(remote.repo, paths, found.commit)
    return accepted, problems


def unfinished(repo: Repository, paths: InstancePaths, found: Theirs) -> Record | None:
    """The accept record of a call that was killed when the index was written and our ref was not
    moved: its record is no longer in the index. Raises CommitError, DiskError.
    """
    at = cursor.read(repo, paths.slug)
    known = savepoints.records(paths).all
    if at is None or any(one.hash == at.record for one in known):
        return None
    taking = [one for one in known if one.kind == "accept" and one.body["tip"] == found.last.hash]
    return taking[-1] if taking else None


def _rewrite(
    repo: Repository, paths: InstancePaths, found: Theirs, identities: list[Identity], now: int
) -> tuple[Record, list[str]]:
    """Put the joined index in the place of ours, and keep ours; the accept record in it."""
    _keep(paths, index.read(paths))
    relation = Relation.of(savepoints.records(paths).all, found.records)
    joined = Rewritten.of(paths, found, relation, now)
    joined.move_snapshots()
    problems = adopt.content(repo, paths, found, identities, relation.lacking)
    durable.replace(paths.index_file, joined.data)
    return joined.accept, problems


def _keep(paths: InstancePaths, data: bytes) -> None:
    """The index as it was, for ever. Raises DiskError."""
    durable.make_directories(paths.forks)
    name = f"precompact-savepoint.{hashlib.sha256(data).hexdigest()[:16]}.jsonl"
    durable.create_exclusive(os.path.join(paths.forks, name), data)


def _free_name(name: str, seq: int) -> str:
    """As a save takes where the name of its second is taken."""
    return f"{name.partition('Z')[0]}Z_{seq}.json"


class Rewritten(NamedTuple):
    """The index that takes the place of ours."""

    paths: InstancePaths
    theirs: bytes  # whole lines
    accepts: list[Record]  # the loss of unused numbers, if there are any; then the foreign history
    again: list[Record]
    moved: list[tuple[Record, str]]  # of ours, whose snapshot gets this name, since theirs has it

    @classmethod
    def of(cls, paths: InstancePaths, found: Theirs, relation: Relation, now: int) -> Rewritten:
        """Raises KeyFileError."""
        own = relation.own
        head = trusted.load(paths)
        used = max([found.last.seq, head.seq if head else 0, *(one.seq for one in own)])
        signer = _Signer(paths, found.last, used + 1)
        accepts = []
        if used > found.last.seq:
            lost: dict[str, Json] = {"reason": "gap", "first": found.last.seq + 1, "last": used}
            accepts.append(signer.sign("accept", now, {**lost, "tip": None}))
        aside = (own[0].seq, own[-1].seq) if own else (None, None)
        taken: dict[str, Json] = {"reason": "remote", "first": aside[0], "last": aside[1]}
        accepts.append(signer.sign("accept", now, {**taken, "tip": found.last.hash}))
        names = {one.snapshot_file: one.hash for one in found.records if one.kind == "save"}
        again: list[Record] = []
        moved: list[tuple[Record, str]] = []
        for one in own:
            if one.kind not in _AGAIN:
                continue
            body = signer.body(one)
            if one.kind == "save" and one.snapshot_file in names:
                body["snapshot_file"] = _free_name(one.snapshot_file, signer.seq)
                moved.append((one, str(body["snapshot_file"])))
            again.append(signer.sign(one.kind, one.timestamp, body, one))
        return cls(paths, found.data, accepts, again, moved)

    @property
    def accept(self) -> Record:
        """The record that takes the foreign history."""
        return self.accepts[-1]

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.theirs + b"".join(one.line + b"\n" for one in (*self.accepts, *self.again))

    def move_snapshots(self) -> None:
        """Give snapshots of ours another name where theirs has one of the same second and name; the
        old one stays until theirs is put there. Raises DiskError.
        """
        for one, name in self.moved:
            data = read_bounded(
                os.path.join(self.paths.path, one.snapshot_file), limits.SNAPSHOT_BYTES
            )
            if data is not None and hashlib.sha256(data).hexdigest() == one.snapshot_hash:
                durable.create_exclusive(os.path.join(self.paths.path, name), data)


class _Signer:
    """Signs one record after the other, and knows what became of the numbers."""

    def __init__(self, paths: InstancePaths, last: Record, seq: int) -> None:
        self._paths = paths
        self._seed = keyring.authority(paths)
        self._last = last
        self._numbers: dict[tuple[Json, ...], int] = {}  # what `from` said → the new number
        self.seq = seq

    def sign(
        self, kind: str, timestamp: int, body: dict[str, Json], old: Record | None = None
    ) -> Record:
        """The next record; `old`: the one that it stands for. Raises KeyFileError: the history ends
        with the retirement of the key.
        """
        index.check_open(self._paths, self._last)
        made = record.make(
            kind,
            seq=self.seq,
            prev=self._last.hash,
            timestamp=timestamp,
            instance=self._last.instance,
            seed=self._seed,
            body=body,
        )
        if old is not None and old.kind == "save":
            self._numbers[tuple(old.origin().values())] = made.seq
        self.seq, self._last = made.seq + 1, made
        return made

    def body(self, one: Record) -> dict[str, Json]:
        """The members of a record of ours; what it comes from has its new number."""
        body = dict(one.body)
        origin = body.get("from")
        if isinstance(origin, dict):
            seq = self._numbers.get(tuple(origin.values()))
            body["from"] = origin if seq is None else {**origin, "seq": seq}
        return body
