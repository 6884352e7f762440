"""The second verifier agrees with every vector, and docs/format.md with the program's limits."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import limits, record, snapshot
from savepoint.store import border, trusted
from savepoint.store.layout import Home
from tests.conformance import documents_verifier, ledger_verifier, verifier
from tests.conformance.vectors import Vector, load, members, opened

if TYPE_CHECKING:
    from types import ModuleType


def each(name: str) -> pytest.MarkDecorator:
    """One test a vector."""
    return pytest.mark.parametrize("vector", load(name), ids=lambda one: one.name)


def _verify(key: bytes, message: bytes, signature: bytes) -> str:
    return verifier.outcome(verifier.verify, key, message, signature)


@each("record.json")
def test_record(vector: Vector) -> None:
    found = verifier.outcome(verifier.record, vector.data)
    if found == "ok":
        one = verifier.record(vector.data)
        message = b"\xffsavepoint/record/v1\0" + vector.data[:-144] + b"}"
        signature = bytes.fromhex(one["signature"])
        found = _verify(verifier.key_bytes(one["signer"]), message, signature)
    assert found == vector.expect


@each("index.json")
def test_index(vector: Vector) -> None:
    found = verifier.index(vector.data)
    assert found["expect"] == vector.expect
    if vector.expect in {"ok", "gap"}:
        told = {name: vector.more.get(name, []) for name in ("records", "torn", "gaps")}
        assert found == {"expect": vector.expect, **told}


@each("snapshot.json")
def test_snapshot(vector: Vector) -> None:
    line = vector.more.get("record", "").encode()
    found = verifier.outcome(verifier.snapshot, vector.data, opened(vector), line)
    assert found == vector.expect


@each("json.json")
def test_json(vector: Vector) -> None:
    found = verifier.outcome(verifier.canonical, vector.data, 2**22)
    assert (found == "ok") == (vector.expect == "ok")


@pytest.mark.parametrize("one", members("ed25519.json"), ids=lambda one: one["name"])
def test_ed25519(one: dict[str, Any]) -> None:
    key, message, signature = (bytes.fromhex(one[n]) for n in ("key", "message", "signature"))
    assert (_verify(key, message, signature) == "ok") == (one["expect"] == "ok")


@pytest.mark.parametrize(
    ("group", "kind"), [("times", "time"), ("instances", "instance"), ("keys", "key")]
)
def test_spelling(group: str, kind: str) -> None:
    for one in members("spelling.json", group):
        fitting = verifier.outcome(lambda: verifier.require(verifier.fits(kind, one["text"])))  # noqa: B023  # called at once
        assert (fitting == "ok") == (one["value"] is not None), one["text"]


@pytest.mark.parametrize("one", members("ledger.json"), ids=lambda one: one["name"])
def test_ledger(one: dict[str, Any]) -> None:
    authority, *place = (
        verifier.key_bytes(one[name]) for name in ("authority", "genesis", "program", "account")
    )
    data = bytes.fromhex(one["account_data"])
    given = (data, one["instance"], authority, *place)
    assert verifier.outcome(ledger_verifier.account, *given) == one["expect"]
    if one["expect"] == "ok":
        found = ledger_verifier.account(*given)
        assert found.hash == one["entry_hash"]
        assert found.message(b"".join(place)).hex() == one["anchor_message"]


@each("proof.json")
def test_proof(vector: Vector) -> None:
    assert ledger_verifier.proof(vector.data) == vector.expect


@each("bootstrap.json")
def test_bootstrap(vector: Vector) -> None:
    given = (vector.data, vector.more["birth"].encode())
    assert verifier.outcome(documents_verifier.bootstrap, *given) == vector.expect


@each("trusted.json")
def test_trusted(vector: Vector) -> None:
    assert verifier.outcome(documents_verifier.trusted, vector.data) == vector.expect


@pytest.mark.parametrize("one", members("trusted.json", "verdicts"), ids=lambda one: one["name"])
def test_what_a_trusted_head_says(one: dict[str, Any]) -> None:
    found = documents_verifier.verdict(one["head"].encode(), one["index"].encode())
    assert found == one["verdict"]


@pytest.mark.parametrize(
    ("module", "most"), [(verifier, 150), (ledger_verifier, 200), (documents_verifier, 80)]
)
def test_verifier_is_small_and_shares_no_code(module: ModuleType, most: int) -> None:
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    assert len(source.splitlines()) <= most
    imported = {
        (node.module or "") if isinstance(node, ast.ImportFrom) else alias.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    roots = {name.split(".")[0] for name in imported - {"tests.conformance.verifier"}}
    assert roots <= sys.stdlib_module_names | {"cryptography"}


def _most(kind: str) -> int:
    return int(verifier.KINDS[kind].split("…")[1])


def test_document_has_the_limits_of_the_program() -> None:
    assert _most("count") == limits.JSON_INTEGER_MOST
    assert _most("size") == limits.SEGMENT_HARD_BYTES
    assert _most("length") == limits.FRAME_BYTES
    assert verifier.KINDS["offset"].startswith(f"{limits.PACK_HEADER_BYTES}…")
    assert f"{{1,{limits.INSTANCE_NAME_CHARS}}}" in verifier.KINDS["instance"]
    assert f"{{1,{limits.SESSION_KEY_CHARS}}}" in verifier.KINDS["session"]
    for what, limit in (
        ("nesting of JSON", f"{limits.JSON_DEPTH}"),
        ("record", f"{limits.RECORD_BYTES} bytes"),
        ("snapshot", f"{limits.SNAPSHOT_BYTES // limits.MIB} MiB ({limits.SNAPSHOT_BYTES} bytes)"),
        ("spilled list", f"{limits.SPILLED_LIST_BYTES // limits.MIB} MiB"),
        ("frame", f"{limits.FRAME_BYTES // limits.MIB} MiB"),
        ("pack", f"takes no frame once it has {limits.PACK_BYTES // limits.MIB} MiB"),
        ("slug", f"{limits.SLUG_CHARS} characters"),
        ("metadata of an entry", f"{limits.METADATA_BYTES} bytes"),
        ("transaction", f"{limits.TRANSACTION_BYTES} bytes"),
        ("proof", f"{limits.PROOF_BYTES // limits.MIB} MiB ({limits.PROOF_BYTES} bytes)"),
    ):
        assert f"| {what} | {limit}" in verifier.FORMAT


def test_document_has_the_kinds_of_record_of_the_program() -> None:
    described = {
        (dict(shape)["kind"], dict(shape)["event"])
        for shape in verifier.SHAPES.values()
        if "event" in dict(shape)
    }
    assert described == set(record.EVENTS.items())


def test_document_has_the_lists_that_the_program_may_spill() -> None:
    marked = {name for shape in verifier.SHAPES.values() for name, kind in shape if kind[-1] == "~"}
    assert marked == {path[-1] for path in snapshot.SPILLABLE}


def test_document_describes_the_trusted_head(home: Path) -> None:
    paths = Home(str(home)).store("00" * 8).instance("gabriel-215-01234567")
    trusted.make_folder(paths)
    head = trusted.first(7, "ab" * 32, recreated=False)
    trusted.save(paths, head)
    data = Path(paths.trusted).read_bytes()
    assert data.endswith(b"}\n")
    assert verifier.fits("trusted", verifier.canonical(data[:-1], 2**22))
    assert verifier.fits("trusted", json.loads(data) | {"gaps": [{"first": 3, "last": 4}]})
    assert not verifier.fits("trusted", json.loads(data) | {"gaps": [{"last": 4, "first": 3}]})


def test_document_describes_the_border(home: Path) -> None:
    data = border.to_bytes(7)
    paths = Home(str(home)).store("00" * 8).instance("gabriel-215-01234567")
    Path(paths.path).mkdir(parents=True)
    for spelled, first in ((data, 7), (data[:-1], 0)):
        Path(paths.border).write_bytes(spelled)
        assert border.load(paths) == first
    assert data.endswith(b"}\n")
    assert verifier.fits("border", verifier.canonical(data[:-1], 2**22))
