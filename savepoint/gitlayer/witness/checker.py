"""Single commits against the records that they are of: what stands in the open, what is encrypted.

A blob that several savepoints share is opened once.
"""

from __future__ import annotations

import hashlib
from functools import partial
from typing import TYPE_CHECKING

from savepoint.core import limits, record, verify_git, verify_stored
from savepoint.core.errors import SavepointError, TamperedError
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import Finding, passed, unchecked
from savepoint.gitlayer import tree
from savepoint.gitlayer.blobs import Blobs
from savepoint.gitlayer.commits import by_hand, plan
from savepoint.gitlayer.repository import NoAnswerError
from savepoint.gitlayer.witness.held import Held, held
from savepoint.store import index, savepoints
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.record import Record
    from savepoint.core.segments import Segment
    from savepoint.gitlayer.blobs import Files
    from savepoint.gitlayer.commits.message import Commit
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.keys.agekeys import Identity
    from savepoint.store.layout import InstancePaths


def failed(rule: str, failure: SavepointError) -> Finding:
    """What an error of git or of the disk says of a rule."""
    return verify_git.failed(rule, failure, unanswered=isinstance(failure, NoAnswerError))


class Checker:
    """Checks single commits; what they share is looked at once."""

    def __init__(self, repo: Repository, paths: InstancePaths, identities: list[Identity]) -> None:
        self.records = {one.hash: one for one in savepoints.records(paths).all}  # by hash
        self.repo = repo
        self._paths = paths
        self._identities = identities
        self._index = _CutIndex(index.read(paths))
        self._blobs = Blobs(repo)
        self._seen: dict[tuple[str, str], SavepointError | None] = {}  # (path, blob) → its fault
        self._last: tuple[str, bytes] = ("", b"")  # blob and content of the pack opened last

    def expect(self, trees: list[Files | None]) -> None:
        """The commits with these files are looked at next."""
        names = dict.fromkeys(blob for files in trees if files for blob in files.values())
        try:
            self._blobs.expect(list(names))
        except SavepointError:
            return  # each is asked for by itself, and that says what is wrong

    def savepoint(
        self,
        commit: str,
        one: Record,
        said: Commit | None = None,
        files: Files | None = None,
    ) -> list[Finding]:
        """VERIFY-9, 11 and 12 of `commit` as the commit of record `one`. said, files: what it says
        and holds, where that is known.
        """
        try:
            if said is not None and files is not None:
                found = Held(self.repo, self._identities, commit, said, files, self._blobs)
            else:
                found = held(self.repo, commit, self._identities)._replace(blobs=self._blobs)
        except SavepointError as failure:
            return [failed("VERIFY-9", failure), *_unseen(commit, "VERIFY-11", "VERIFY-12")]
        named = verify_git.committed(one, found.said.seq, found.said.record, f"commit {commit}")
        if named.result != "pass":
            return [named, *_unseen(commit, "VERIFY-11", "VERIFY-12")]
        return [named, self._open(found, one), self._encrypted(found, one)]

    def _open(self, found: Held, one: Record) -> Finding:
        """VERIFY-11."""
        try:
            readable = {**self._index.at(one), **self._readable(found, one)}
            for path, whole in readable.items():
                self._same(found, path, whole)
            foreign = sorted(
                path
                for path in set(found.files) - set(readable)
                if not self._may_be_encrypted(found, one, path)
            )
        except SavepointError as failure:
            return failed("VERIFY-11", failure)
        where = f"commit {found.commit}"
        detail = f"{where}: index up to record {one.seq}, README"
        return verify_git.unexpected("VERIFY-11", foreign, where) or passed("VERIFY-11", detail)

    def _readable(self, found: Held, one: Record) -> dict[str, Whole]:
        """What is not encrypted and no index. The README's commands are run by people."""
        if one.kind in tree.KEPT_BY:
            return {}
        earlier = Whole.of(by_hand.EARLIER_README)
        is_earlier = found.files.get(tree.README) == earlier.blob
        expected = {tree.README: earlier if is_earlier else Whole.of(by_hand.README)}
        bootstrap = read_bounded(self._paths.bootstrap, limits.SMALL_DOCUMENT_BYTES)
        if bootstrap is not None:
            expected[tree.BOOTSTRAP] = Whole.of(bootstrap)
        return expected

    def _may_be_encrypted(self, found: Held, one: Record, path: str) -> bool:
        if one.kind in tree.KEPT_BY:
            return found.files[path] == self._before(found).get(path)
        if one.kind != "save":
            return False
        return path in (tree.RECOVER, tree.snapshot(one.snapshot_file)) or bool(tree.pack_at(path))

    def _before(self, found: Held) -> Files:
        """A RETIRE and an accept record have the tree of the commit before them, and the record."""
        parents = found.said.parents[:1]
        return tree.list_files(self.repo, parents[0]) if parents else {}

    def _encrypted(self, found: Held, one: Record) -> Finding:
        """VERIFY-12."""
        where = f"commit {found.commit}"
        if one.kind != "save":
            return passed("VERIFY-12", f"{where}: nothing encrypted of its own")
        if not self._identities:
            detail = f"record {one.seq}: there is no age identity to open its commit: encrypted"
            hint = "links and signatures hold; `savepoint keys restore` brings the identity back"
            return unchecked("VERIFY-12", f"{detail} content is skipped", hint=hint)
        try:
            names, fault = self._content(found, one)
        except SavepointError as failure:
            return failed("VERIFY-12", failure)
        extra = sorted(set(tree.packs_in(found.files)) - set(names))
        fault = fault or verify_git.unexpected("VERIFY-12", extra, where)
        detail = f"{where}: snapshot and {len(names)} packs open to the bytes that were signed"
        return fault or passed("VERIFY-12", detail)

    def _content(self, found: Held, one: Record) -> tuple[list[str], Finding | None]:
        """The packs of the savepoint, all of which opened, and what is wrong otherwise."""
        path = tree.snapshot(one.snapshot_file)
        document, finding = verify_stored.snapshot_document(
            one, found.snapshot(one), found.where(path)
        )
        if document is None:  # it is not followed; a newer version's is no damage
            return [], finding._replace(rule="VERIFY-12")
        content = plan.content_with(document, lambda part: self._segment(found, part))
        for name in content.packs:
            self._once(found, tree.pack(name), partial(self._pack, found, name))
        recover = found.opened(tree.RECOVER, limits.SPILLED_LIST_BYTES)
        expected = by_hand.recover_tsv(content.files)
        return content.packs, verify_git.recovery(recover, expected, found.where(tree.RECOVER))

    def _segment(self, found: Held, part: Segment) -> bytes:
        return verify_stored.open_segment(
            part, self._pack(found, part.pack), found.where(part.pack)
        )

    def _pack(self, found: Held, name: str) -> bytes:
        blob = found.files.get(tree.pack(name), "")
        if self._last[0] != blob or not blob:
            self._last = ("", b"")  # never two packs in memory
            self._last = (blob, found.pack(name))
        return self._last[1]

    def _same(self, found: Held, path: str, whole: Whole) -> None:
        """The file at `path` has these bytes. Its id only tells whether to read them again."""

        def compare() -> None:
            data = found.read(path, len(whole.data))
            if fault := verify_git.in_the_open(data, whole.data, found.where(path)):
                raise TamperedError(fault.detail)

        if path in found.files and found.files[path] != whole.blob:
            raise TamperedError(f"{found.where(path)} is not what it must be")
        self._once(found, path, compare)

    def _once(self, found: Held, path: str, look: Callable[[], object]) -> None:
        key = (path, found.files.get(path, ""))
        if key not in self._seen:
            self._seen[key] = None
            try:
                look()
            except SavepointError as failure:
                self._seen[key] = failure
        before = self._seen[key]
        if before is not None:
            raise before


class Whole(NamedTuple):
    """All bytes of a file, and what git calls them."""

    data: bytes
    blob: str

    @classmethod
    def of(cls, data: bytes) -> Whole:
        """Of any bytes."""
        return cls(data, tree.blob_id(data))


class _CutIndex:
    """The local index, cut as commits hold it."""

    def __init__(self, data: bytes) -> None:
        self._lines = [line + b"\n" for line in data.split(b"\n")[:-1]]
        self._numbers = {
            hashlib.sha256(line[:-1]).hexdigest(): number
            for number, line in enumerate(self._lines, 1)
        }
        self._closed: list[tuple[str, Whole]] = []
        for start in range(0, len(self._lines), limits.INDEX_CHUNK_RECORDS):
            lines = self._lines[start : start + limits.INDEX_CHUNK_RECORDS]
            if len(lines) == limits.INDEX_CHUNK_RECORDS:
                self._closed.append((_chunk_path(lines[0][:-1]), Whole.of(b"".join(lines))))

    def at(self, one: Record) -> dict[str, Whole]:
        """Path → chunk, of a commit of this record. Raises TamperedError: there is no such line."""
        if one.hash not in self._numbers:
            raise TamperedError(f"the index here has no whole line of record {one.seq}")
        number = self._numbers[one.hash]
        count = number // limits.INDEX_CHUNK_RECORDS
        open_chunk = b"".join(self._lines[count * limits.INDEX_CHUNK_RECORDS : number])
        return {**dict(self._closed[:count]), tree.OPEN_CHUNK: Whole.of(open_chunk)}


def _chunk_path(line: bytes) -> str:
    """Where the closed chunk stands that begins with this line; nowhere if that is no record."""
    try:
        return tree.closed_chunk(record.parse(line).seq)
    except SavepointError:
        return tree.closed_chunk(0)


def _unseen(commit: str, *rules: str) -> list[Finding]:
    detail = f"commit {commit} is not the one that it must be, so it is not followed"
    return [unchecked(rule, detail) for rule in rules]
