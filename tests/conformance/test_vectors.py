"""The program agrees with every vector of docs/format.md."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import (
    bootstrap_document,
    entry,
    keys,
    packs,
    proof,
    record,
    segments,
    snapshot,
    spelling,
    strict_json,
    verify_chain,
    verify_index,
    verify_proof,
    verify_stored,
)
from savepoint.core.errors import MalformedError, TamperedError, UnsupportedFormatError
from savepoint.core.segments import Segment
from savepoint.core.verdicts import Lack, Verdict, worst
from savepoint.store import trusted
from savepoint.store.fsck import upkeep
from savepoint.store.layout import Home
from tests.conformance.vectors import FOLDER, Vector, load, members, opened
from tests.vectors import make

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from savepoint.store.trusted import TrustedHead


def names(index: bytes) -> verify_index.Names:
    """As of the folder that the birth record names."""
    try:
        birth = record.parse(index.partition(b"\n")[0])
    except (MalformedError, UnsupportedFormatError):
        return verify_index.Names("", "index", "trusted")
    slug = spelling.Instance.parse(birth.instance).slug(birth.signer)
    return verify_index.Names(slug, "index", "trusted")


def each(name: str) -> pytest.MarkDecorator:
    """One test a vector."""
    return pytest.mark.parametrize("vector", load(name), ids=lambda one: one.name)


def outcome(check: Callable[[], object]) -> str:
    try:
        check()
    except UnsupportedFormatError:
        return "unsupported"
    except TamperedError:
        return "tampered"
    except MalformedError:
        return "malformed"
    return "ok"


def _hold(held: object) -> None:
    if not held:
        raise TamperedError("a check of the vectors did not hold")


def test_files_are_what_the_script_makes() -> None:
    made = make.files()
    assert {path.name for path in FOLDER.glob("*.json")} == set(made)
    for name, data in made.items():
        assert (FOLDER / name).read_bytes() == data, f"{name}: run python -m tests.vectors.make"


def test_every_outcome_has_vectors() -> None:
    for name in ("record.json", "index.json", "snapshot.json", "proof.json", "bootstrap.json"):
        assert {"ok", "tampered", "unsupported"} <= {one.expect for one in load(name)}
        names = [one.name for one in load(name)]
        assert len(names) == len(set(names))


@each("record.json")
def test_record(vector: Vector) -> None:
    assert outcome(lambda: _hold(record.parse(vector.data).signature_holds())) == vector.expect
    if vector.expect == "ok":
        assert record.parse(vector.data).hash == vector.more["hash"]


@each("index.json")
def test_index(vector: Vector) -> None:
    """By what `verify` says, beside a head that has seen nothing."""
    nothing = trusted.first(0, "0" * 64, recreated=False)
    read = verify_index.Index(vector.data, nothing, names(vector.data))
    found, whole = read.findings(), read.chain
    verdict = worst(one.verdict for one in found)
    if vector.expect == "tampered":
        assert verdict in {Verdict.TAMPERED, Verdict.ROLLED_BACK}  # a fork is told as one
        assert not read.is_unbroken
    elif vector.expect == "unsupported":
        assert verdict == Verdict.UNVERIFIABLE
        assert all(one.unsupported for one in found if one.result != "pass")
    else:
        assert vector.expect == ("gap" if whole.gaps else "ok")
        lost = bool(read.unaccepted_gaps())
        assert verdict == (Verdict.TAMPERED if lost else Verdict.VERIFIED)
        assert len(whole.records) == vector.more["records"]
        assert len(whole.torn) == vector.more["torn"]
        assert [list(gap) for gap in whole.gaps] == vector.more.get("gaps", [])


@each("snapshot.json")
def test_snapshot(vector: Vector) -> None:
    assert outcome(lambda: _check_snapshot(vector)) == vector.expect
    if vector.expect == "ok":
        assert snapshot.parse(vector.data).hash == vector.more["hash"]


def _check_snapshot(vector: Vector) -> None:
    found, held = snapshot.parse(vector.data), opened(vector)
    for path in snapshot.SPILLABLE:
        snapshot.unspill(found.document, path, lambda one: held[one.sha256])
    for file in snapshot.files(found.document, lambda one: held[one.sha256]):
        _hold(verify_stored.stored_file(file, "here") is None)
    if "record" in vector.more:
        one = record.parse(vector.more["record"].encode())
        _hold(verify_stored.snapshot_file(one, vector.data, "here").result == "pass")
        _hold(verify_stored.snapshot_document(one, vector.data, "here")[0] is not None)


@each("json.json")
def test_json(vector: Vector) -> None:
    parsed = outcome(lambda: strict_json.parse(vector.data))
    canonical = outcome(lambda: strict_json.parse_canonical(vector.data))
    found = "respelled" if (parsed, canonical) == ("ok", "malformed") else canonical
    assert found == vector.expect


@each("pack.json")
def test_pack(vector: Vector) -> None:
    one = Segment.from_json(vector.more["segment"])
    assert hashlib.sha256(vector.data).hexdigest() == one.pack

    def open_it() -> None:
        packs.check_header(vector.data)
        verify_stored.open_segment(one, vector.data, "here")

    assert outcome(open_it) == vector.expect


@pytest.mark.parametrize("one", members("segment.json"), ids=lambda one: one["name"])
def test_segment(one: dict[str, Any]) -> None:
    data = b"".join(bytes.fromhex(piece) * count for piece, count in one["runs"])
    found: list[dict[str, Any]] = []
    start = 0
    while (end := segments.cut(data, start, final=True)) is not None:
        digest = hashlib.sha256(data[start:end]).hexdigest()
        found.append({"bytes": end - start, "sha256": digest})
        start = end
    assert found == one["segments"]
    assert segments.root(len(data), [piece["sha256"] for piece in found]) == one["root"]


def _value(parse: Callable[[str], object], text: str) -> object:
    try:
        return parse(text)
    except MalformedError:
        return None


@pytest.mark.parametrize(
    "one", members("spelling.json", "times"), ids=lambda one: ascii(one["text"])
)
def test_time(one: dict[str, Any]) -> None:
    assert _value(spelling.time_seconds, one["text"]) == one["value"]
    if one["value"] is not None:
        assert spelling.time_text(one["value"]) == one["text"]


@pytest.mark.parametrize(
    "one", members("spelling.json", "instances"), ids=lambda one: ascii(one["text"])
)
def test_instance(one: dict[str, Any]) -> None:
    found = _value(spelling.Instance.parse, one["text"])
    assert (list(found) if isinstance(found, tuple) else found) == one["value"]
    if isinstance(found, spelling.Instance):
        assert str(found) == one["text"]


@pytest.mark.parametrize(
    "one", members("spelling.json", "keys"), ids=lambda one: ascii(one["text"])
)
def test_key(one: dict[str, Any]) -> None:
    found = _value(spelling.key_bytes, one["text"])
    assert (found.hex() if isinstance(found, bytes) else found) == one["value"]
    if isinstance(found, bytes):
        assert spelling.base58(found) == one["text"]


@pytest.mark.parametrize("one", members("spelling.json", "slugs"), ids=lambda one: one["slug"])
def test_slug(one: dict[str, Any]) -> None:
    instance = spelling.Instance.parse(one["instance"])
    assert instance.slug(bytes.fromhex(one["key"])) == one["slug"]


@pytest.mark.parametrize("one", members("key.json", "derived"), ids=lambda one: one["authority"])
def test_derivation(one: dict[str, Any]) -> None:
    root_seed, nonce = bytes.fromhex(one["root_seed"]), bytes.fromhex(one["nonce"])
    seed = keys.derive_seed(root_seed, nonce, one["instance"])
    assert seed.hex() == one["seed"]
    assert spelling.base58(keys.public_key(seed)) == one["authority"]


@pytest.mark.parametrize("one", members("key.json", "domains"), ids=lambda one: one["purpose"])
def test_domain(one: dict[str, Any]) -> None:
    assert keys.domain(one["purpose"]).hex() == one["domain"]
    key, signature = spelling.key_bytes(one["key"]), bytes.fromhex(one["signature"])
    assert keys.verifies(key, one["purpose"], one["text"].encode(), signature)
    others = {"record", "entry", "anchor", "bootstrap"} - {one["purpose"]}
    assert not any(keys.verifies(key, other, one["text"].encode(), signature) for other in others)


@pytest.mark.parametrize("one", members("ed25519.json"), ids=lambda one: one["name"])
def test_ed25519(one: dict[str, Any]) -> None:
    key, message, signature = (bytes.fromhex(one[n]) for n in ("key", "message", "signature"))
    assert keys.verifies_raw(key, message, signature) == (one["expect"] == "ok")


@pytest.mark.parametrize("one", members("ledger.json"), ids=lambda one: one["name"])
def test_ledger(one: dict[str, Any]) -> None:
    data = bytes.fromhex(one["account_data"])
    place = entry.Place(*(spelling.key_bytes(one[n]) for n in ("genesis", "program", "account")))
    authority = spelling.key_bytes(one["authority"])
    who = verify_chain.Who(one["instance"], authority, place.program, place.account)

    def check() -> None:
        found = entry.parse(data)
        entry.parse_metadata(found.claim.metadata, found.claim.kind)
        read, spelled = verify_chain.spelling_of(data, who)
        if read is None and "bump" not in spelled.detail:
            raise MalformedError(spelled.detail)
        _hold(verify_chain.derived(who).result == "pass")
        _hold(read and verify_chain.signature(read, who, place.genesis).result == "pass")

    assert outcome(check) == one["expect"]
    if one["expect"] == "ok":
        found = entry.parse(data)
        assert found.to_bytes() == data
        assert found.hash == one["entry_hash"]
        message = keys.domain("anchor") + found.claim.message(found.seq, place)
        assert message.hex() == one["anchor_message"]
        assert found.signature.hex() == one["signature"]
        assert (found.claim.metadata, found.bump) == (one["metadata"].encode(), one["bump"])
        assert found.metadata.to_bytes() == found.claim.metadata


@each("proof.json")
def test_proof(vector: Vector) -> None:
    if (found := outcome(lambda: proof.parse(vector.data))) == "ok":
        given = proof.parse(vector.data)
        assert given.to_bytes() == vector.data
        verdict = worst(one.verdict for one in verify_proof.offline(given).findings)
        words = {Verdict.VERIFIED: "ok", Verdict.UNVERIFIABLE: "unchecked"}
        found = words.get(verdict, str(verdict).lower())
    assert found == vector.expect


@each("bootstrap.json")
def test_bootstrap(vector: Vector) -> None:
    def check() -> None:
        found = bootstrap_document.parse(vector.data)
        birth = record.parse(vector.more["birth"].encode())
        _hold(not bootstrap_document.fault(found, birth))

    assert outcome(check) == vector.expect


def _load(home: Path, data: bytes) -> TrustedHead:
    """As every command reads it: what is malformed counts as missing."""
    paths = Home(str(home)).store("00" * 8).instance("gabriel-215-01234567")
    trusted.make_folder(paths)
    with open(paths.trusted, "wb") as file:
        file.write(data)
    found = trusted.load(paths)
    if found is None:
        raise MalformedError("it counts as missing")
    return found


@each("trusted.json")
def test_trusted(vector: Vector, home: Path) -> None:
    assert outcome(lambda: _load(home, vector.data)) == vector.expect
    found = upkeep.trusted_head(Home(str(home)).store("00" * 8).instance("gabriel-215-01234567"))
    if isinstance(found, Lack):
        assert (vector.expect, found.unsupported) == ("unsupported", True)
    else:
        assert (found is not None) == (vector.expect == "ok")


@pytest.mark.parametrize("one", members("trusted.json", "verdicts"), ids=lambda one: one["name"])
def test_what_a_trusted_head_says(one: dict[str, Any], home: Path) -> None:
    data = one["index"].encode()
    read = verify_index.Index(data, _load(home, one["head"].encode()), names(data))
    assert worst(found.verdict for found in read.findings()) == one["verdict"]
