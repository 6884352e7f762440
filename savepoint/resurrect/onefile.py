"""The specification's one-file form of a savepoint, with everything inlined, written as a stream.

Its `integrity` covers its bytes without that last member, as in a snapshot.
The same savepoint gives the same bytes every time.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from savepoint.core import snapshot
from savepoint.core.strict_json import dump, parse_canonical
from savepoint.resurrect import inline
from savepoint.resurrect.members import as_list, as_object
from savepoint.store import savepoints

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from savepoint.core.record import Record
    from savepoint.core.snapshot import StoredFile
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import InstancePaths, Store

_HEAD = (
    "type",
    "timestamp_iso8601",
    "instance_id",
    "instance_number",
    "session_token_budget",
    "tokens_used_this_session",
    "tokens_remaining",
    "context_utilization_percent",
    "token_source",
)
_TOLD = ("guidance", "omitted", "notes")


def one_file(paths: InstancePaths, one: Record) -> Iterator[bytes]:
    """The bytes of the document, in pieces. Raises TamperedError, MalformedError, DiskError: what
    came before is then no document.
    """
    found = savepoints.open_snapshot(paths, one)
    hashed = hashlib.sha256()
    size = 0
    for piece in _Document(paths.store, found.document, one).pieces():
        hashed.update(piece)
        size += len(piece)
        yield piece
    closed = b"}\n"
    hashed.update(closed)
    integrity: dict[str, Json] = {
        "hash_sha256": hashed.hexdigest(),
        "size_bytes": size + len(closed),
        "created_at": found.document["timestamp_iso8601"],
    }
    yield b',"integrity":' + dump(integrity) + closed


class _Document:
    """All members but integrity."""

    def __init__(self, store: Store, document: dict[str, Json], one: Record) -> None:
        self._store = store
        self._document = document
        self._record = one
        self._files: dict[str, list[StoredFile]] = {}
        for file in savepoints.files(store, document):
            self._files.setdefault(file.part, []).append(file)

    def pieces(self) -> Iterator[bytes]:
        """From the opening brace on, without the closing one."""
        document = self._document
        yield b"{" + _members({name: document[name] for name in _HEAD})
        yield b',"savepoint":' + dump(parse_canonical(self._record.line))
        yield b',"conversation_history":['
        yield from self._conversation()
        yield b'],"conversation":' + dump(self._facts()) + b',"companions":['
        companions = self._files.get("companion", [])
        yield from self._with_content(({"path": one.path}, one) for one in companions)
        yield b'],"session_state":' + dump(document["session_state"]) + b',"session_current":'
        current = self._files.get("state", [])
        yield from self._with_content(({"path": one.path}, one) for one in current)
        yield (b"" if current else b"null") + b',"loaded_files":{'
        yield from self._loaded()
        yield b'},"git_state":'
        yield from self._git()
        told = {name: document[name] for name in _TOLD if name in document}
        yield b"," + _members(told) + b"," + _members(self._checkpoint())

    def _conversation(self) -> Iterator[bytes]:
        separator = b""
        for file in self._files.get("conversation", []):
            for value in inline.records(savepoints.content(self._store, file)):
                yield separator + value
                separator = b","

    def _facts(self) -> dict[str, Json]:
        """What is known of the conversation; its transcript by path, size and root."""
        history = as_object(self._document["conversation_history"])
        facts = {name: value for name, value in history.items() if name != "companions"}
        if facts["transcript"] is not None:
            facts["transcript"] = _bare(facts["transcript"])
        return facts

    def _with_content(
        self, entries: Iterable[tuple[dict[str, Json], StoredFile]]
    ) -> Iterator[bytes]:
        separator = b""
        for members, file in entries:
            yield separator + b"{" + _members(members) + b","
            yield from inline.content(self._store, file)
            yield b"}"
            separator = b","

    def _loaded(self) -> Iterator[bytes]:
        """Every file of the list: one that was not stored with the reason, and no content."""
        stored = {str(file.path): file for file in self._files.get("files", [])}
        separator = b""
        for path, entry in as_object(self._listed("loaded_files")).items():
            yield separator + dump(path) + b":{" + _members(_bare(entry)) + b","
            if path in stored:
                yield from inline.content(self._store, stored[path])
            else:
                yield b'"content":null'
            yield b"}"
            separator = b","

    def _git(self) -> Iterator[bytes]:
        state = as_object(self._document["git_state"])
        plain = {name: value for name, value in state.items() if name != "changes"}
        yield b"{" + _members(plain) + b',"changes":{"files":['
        entries = map(_bare, as_list(self._listed("git_state", "changes", "files")))
        files = self._files.get("changes", [])
        yield from self._with_content(zip(entries, files, strict=True))
        rest: dict[str, Json] = {
            "deleted": self._listed("git_state", "changes", "deleted"),
            "excluded": self._listed("git_state", "changes", "excluded"),
            "omitted": snapshot.member_at(self._document, ("git_state", "changes", "omitted")),
        }
        yield b"]," + _members(rest) + b"}}"

    def _checkpoint(self) -> dict[str, Json]:
        """Under both of the specification's names, the one also with its other first member."""
        verification = as_object(self._document["checkpoint_verification"])
        modulo_zero, *others = verification.items()
        checkpoint: Json = {"modulo_zero_verified": modulo_zero[1], **dict(others)}
        return {"checkpoint": checkpoint, "checkpoint_verification": verification}

    def _listed(self, *path: str) -> Json:
        return savepoints.listed(self._store, self._document, path)


def _members(value: dict[str, Json]) -> bytes:
    """An object without its braces."""
    return dump(value)[1:-1]


def _bare(value: Json) -> dict[str, Json]:
    return {name: member for name, member in as_object(value).items() if name != "segments"}
