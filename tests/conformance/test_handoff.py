"""Program and second verifier agree with every vector of threads and receipts, and with each other
on what the program writes.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import handoff_log, handoff_receipt
from savepoint.core.errors import HandoffError, TamperedError, UnsupportedFormatError
from succession.handoff.ledger import Ledger
from tests.conformance import handoff_verifier, verifier
from tests.conformance.test_vectors import outcome
from tests.conformance.vectors import Vector, load
from tests.handoff.threads import SECOND, Threads
from tests.vectors.handoff_vectors import STORY

if TYPE_CHECKING:
    from typing import Any


@pytest.fixture
def threads(tmp_path: Path) -> Threads:
    return Threads(tmp_path)


def each(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("vector", load(name), ids=lambda one: one.name)


def _log(data: bytes) -> dict[str, Any]:
    """As succession.handoff.log reads it, without a store."""
    chain = handoff_log.Chain(data)
    if chain.fault is not None:
        newer = isinstance(chain.fault, UnsupportedFormatError)
        return {"expect": "unsupported" if newer else "tampered"}
    ledger = Ledger()
    try:
        for one in chain.entries:
            ledger.apply(one)
    except HandoffError:
        return {"expect": "tampered"}
    return {"expect": "ok", "lines": len(chain.entries), "torn": len(chain.torn)}


@each("threads.json")
@pytest.mark.parametrize("read", [_log, handoff_verifier.log], ids=["program", "second"])
def test_log(vector: Vector, read: Any) -> None:  # noqa: ANN401  # one of the two
    told = {"expect": vector.expect}
    if vector.expect == "ok":
        told |= {name: vector.more[name] for name in ("lines", "torn")}
    assert read(vector.data) == told


def _receipt(data: bytes) -> None:
    found = handoff_receipt.parse(data)
    found.savepoint()
    if not found.signature_holds():
        raise TamperedError("its signature")


@each("receipt.json")
def test_receipt(vector: Vector) -> None:
    assert outcome(lambda: _receipt(vector.data)) == vector.expect
    assert verifier.outcome(handoff_verifier.receipt, vector.data) == vector.expect


def test_every_kind_of_line_has_a_vector_and_a_shape() -> None:
    assert {kind for kind, _, _ in STORY} == set(handoff_log.BODIES)
    described = {
        kind
        for name in handoff_verifier.KINDS.split("|")
        for kind in dict(verifier.SHAPES[name])["kind"].split("|")
    }
    assert described == set(handoff_log.BODIES)


def test_what_the_program_writes(threads: Threads) -> None:
    thread = threads.open()
    threads.owe(thread)
    threads.bind(thread, "none", place="", key="", value="", reason="x")
    made = threads.settled(thread)
    threads.accept(thread)
    found = handoff_verifier.log(threads.file.read_bytes())
    assert found == {"expect": "ok", "lines": len(threads.entries()), "torn": 0}
    assert verifier.outcome(handoff_verifier.receipt, made.receipt.data) == "ok"
    assert SECOND in threads.file.read_text(encoding="utf-8")


def test_verifier_shares_no_code() -> None:
    source = Path(handoff_verifier.__file__).read_text(encoding="utf-8")
    modules = {
        node.module or ""
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ImportFrom)
    }
    assert modules <= {"typing", "tests.conformance.verifier"}
