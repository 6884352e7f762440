"""A second verifier of BOOTSTRAP_VERIFICATION.json and of trusted heads. It shares no code with
savepoint: sections 9 and 10 of docs/format.md, on the reader of its blocks in verifier.py."""
# fmt: off
# ruff: noqa: ANN401, D209, E701, I001  # dense, as verifier.py

from typing import Any
from tests.conformance.verifier import (
    canonical, fits, key_bytes, link, outcome, record, require, verify)

LIMIT = 2**22

def name_of(holder: Any) -> tuple[str, int]:
    name, _, number = holder["instance"].rpartition(" #")
    return name, int(number)

def bootstrap(data: bytes, birth: bytes) -> None:
    """The document, and modulo zero with the birth record of the instance that it lies with."""
    require(data.endswith(b"}\n") and len(data) <= LIMIT)
    value = canonical(data[:-1], LIMIT, "v")
    require(fits("bootstrap", value))
    before, after, between = value["predecessor"], value["successor"], value["between"]
    signed = b"\xffsavepoint/bootstrap/v1\0" + data.rpartition(b',"signature":"')[0] + b"}"
    verify(key_bytes(before["key"]), signed, bytes.fromhex(value["signature"]))
    (name, first), (same, last) = name_of(before), name_of(after)
    numbers = {name_of(one)[1] for one in between}
    born = record(birth)
    told = (born["kind"], born["instance"], born["signer"], born["nonce"])
    require(before["key"] != after["key"] and name == same and first < last
            and all(name_of(one)[0] == name for one in between)
            and numbers == set(range(first + 1, last))
            and told == ("birth", after["instance"], after["key"], after["nonce"]), "tampered")

def trusted(data: bytes) -> Any:
    """A head that may be believed."""
    require(data.endswith(b"}\n") and len(data) <= LIMIT)
    value = canonical(data[:-1], LIMIT, "v")
    require(fits("trusted", value))
    return value

def verdict(data: bytes, index: bytes) -> str:
    """The table of section 9, of an index whose lines hold."""
    head, chain, gaps, faults = trusted(data), list[Any](), list[Any](), {"ok"}
    for line in index.split(b"\n")[:-1]: faults.add(outcome(link, line, chain, gaps, faults))
    require(faults == {"ok"})
    records = {one["seq"]: (one, digest) for one, digest in chain}
    at = records.get(head["seq"])
    if max(records) < head["seq"] or (at and at[1] != head["record"]): return "ROLLED_BACK"
    accepted = [[one["first"], one["last"]] for one, _ in chain if one.get("reason") == "gap"]
    found = {"VERIFIED"}
    for first, last in gaps:
        seen = (last, records[last + 1][0]["prev"]) == (head["seq"], head["record"])
        known = seen or {"first": first, "last": last} in head["gaps"]
        if [first, last] not in accepted: found.add("ROLLED_BACK" if known else "TAMPERED")
    return next(one for one in ("TAMPERED", "ROLLED_BACK", "VERIFIED") if one in found)
