"""What an entry is to be about: the newest savepoint that git has; earlier ones it covers."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.core import accounts, bootstrap_document, entry, limits, spelling
from savepoint.core.entry import Claim, Metadata
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import Instance
from savepoint.gitlayer import cursor, history
from savepoint.store import ending, index
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths

_NOTHING = bytes(32)  # of an instance that is retired before it had a savepoint
_NO_COMMIT = "0" * 40


class Target(NamedTuple):
    """A record that is to be anchored, and what its entry says of it."""

    kind: int  # core/entry.py
    record: Record
    snapshot_hash: bytes  # 32; SUCCESSOR: of BOOTSTRAP_VERIFICATION.json
    commit: str
    since: int  # Unix seconds, of the oldest record that it covers
    pred: str | None = None  # of a SUCCESSOR: the predecessor's account, base58

    def claim(self, prev: str) -> Claim:
        """The authority's word, as what follows the entry of hash `prev`."""
        one = self.record
        return Claim(
            kind=self.kind,
            client_time=one.timestamp,
            instance_hash=hashlib.sha256(one.instance.encode("utf-8")).digest(),
            snapshot_hash=self.snapshot_hash,
            commit=self.commit,
            metadata=Metadata(prev, one.hash, one.seq, self.pred).to_bytes(),
        )


def newest(
    paths: InstancePaths, repo: Repository, above: int, program: bytes | None = None
) -> Target | None:
    """The newest of what git has above record `above` (0: nothing is anchored yet); None where
    nothing is to be anchored. program: its id, 32 bytes; without it a SUCCESSOR has no `pred`.

    Raises CommitError, MalformedError (the document of a successor), DiskError.
    """
    at = cursor.read(repo, paths.slug)
    if at is None or at.seq <= above:
        return None
    if above == 0 and os.path.lexists(paths.bootstrap):
        return _successor(paths, repo, program)
    left = [one for one in ending.above(paths, above - 1) if one.seq <= at.seq]
    wanted = [one for one in left if one.seq > above and one.kind in ("save", "retire")]
    if not wanted or any((one.seq, one.kind) == (above, "retire") for one in left):
        return None
    known = {at.record: at.commit} | (
        {} if wanted[-1].hash == at.record else history.by_record(repo, at.commit)
    )
    committed = [one for one in wanted if one.hash in known]
    if not committed:
        return None
    # What stands behind a `retire` all the same must not keep it from the ledger.
    last = next((one for one in committed if one.kind == "retire"), committed[-1])
    if last.kind == "retire":
        return _retire(paths, repo, last, wanted[0].timestamp)
    return Target(
        entry.SAVEPOINT,
        last,
        bytes.fromhex(last.snapshot_hash),
        known[last.hash],
        wanted[0].timestamp,
    )


def _successor(paths: InstancePaths, repo: Repository, program: bytes | None) -> Target | None:
    """The first entry of a successor's account: where it comes from. None until git has the
    savepoint that it comes from.
    """
    data = read_bounded(paths.bootstrap, limits.SMALL_DOCUMENT_BYTES) or b""
    document, born = bootstrap_document.parse(data), index.birth(paths)
    before, origin = document.predecessor, document.savepoint
    commit = origin.commit
    if commit is None:
        slug = Instance.parse(before.instance).slug(before.key)
        tip = cursor.read(repo, slug)
        commit = history.by_record(repo, tip.commit).get(origin.record) if tip else None
    if commit is None or born is None:
        return None
    pred = None
    if program is not None:
        hashed = hashlib.sha256(before.instance.encode("utf-8")).digest()
        pred = spelling.base58(accounts.address(hashed, before.key, program)[0])
    hash_ = bytes.fromhex(document.hash)
    return Target(entry.SUCCESSOR, born, hash_, commit, born.timestamp, pred)


def _retire(paths: InstancePaths, repo: Repository, last: Record, since: int) -> Target:
    """A RETIRE names the last savepoint before it, as far as git has one."""
    at = cursor.read(repo, paths.slug)
    commits = history.by_record(repo, at.commit) if at else {}
    earlier = [one for one in ending.above(paths, 0) if one.seq < last.seq and one.kind == "save"]
    if not earlier:
        return Target(entry.RETIRE, last, _NOTHING, _NO_COMMIT, since)
    save = earlier[-1]
    found = next((commits[one.hash] for one in reversed(earlier) if one.hash in commits), "")
    snapshot_hash = bytes.fromhex(save.snapshot_hash)
    return Target(entry.RETIRE, last, snapshot_hash, found or _NO_COMMIT, since)
