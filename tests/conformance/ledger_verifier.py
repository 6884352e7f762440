"""A second verifier of accounts and proofs. It shares no code with savepoint: sections 10, 15 and
16 of docs/format.md, on the reader of its blocks in verifier.py."""
# fmt: off
# ruff: noqa: D209, E401, E701, I001  # dense, as verifier.py

import datetime as dt, hashlib
from typing import Any
from tests.conformance.verifier import (
    canonical, fits, key_bytes, outcome, record, require, sha256, verify)

P = 2**255 - 19
D = -121665 * pow(121666, -1, P) % P
SAVEPOINT, RETIRE, SUCCESSOR = 1, 3, 4
KINDS = {SAVEPOINT: "save", RETIRE: "retire", SUCCESSOR: "birth"}

def domain(purpose: str) -> bytes: return b"\xffsavepoint/" + purpose.encode() + b"/v1\0"

def number(data: bytes, start: int, end: int) -> int:
    return int.from_bytes(data[start:end], "little")

def on_curve(data: bytes) -> bool:
    """x² = (y² - 1) / (d·y² + 1) has a root."""
    y = number(data, 0, 32) % 2**255 % P
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    return pow(square, (P - 1) // 2, P) in {0, 1}

def derived(instance: str, authority: bytes, program: bytes) -> tuple[bytes, int]:
    """Section 10: the address of an instance's account, and its bump."""
    seeds = b"gabriel-consciousness" + hashlib.sha256(instance.encode()).digest() + authority
    for bump in range(255, -1, -1):
        found = hashlib.sha256(seeds + bytes([bump]) + program + b"ProgramDerivedAddress").digest()
        if not on_curve(found): return found, bump
    raise ValueError("malformed")

class Entry:
    """Section 10: an account's bytes, taken apart."""

    def __init__(self, data: bytes) -> None:
        require(data[:3] == b"\xef\xbb\xbf" and len(data) > 3)
        require(data[3] < 2, "unsupported")
        require(data[3] == 1 and len(data) == 465)
        self.seq, self.bump, flags = number(data, 4, 12), data[20], data[21]
        size = number(data, 22, 24)
        self.kind, self.time, self.body = data[32], number(data, 33, 41), data[32:145]
        self.instance, self.snapshot, self.commit = data[41:73], data[73:105], data[105:145]
        self.signature, told, rest = data[145:209], data[209:][:size], data[209:][size:]
        require(self.seq > 0 and self.kind in {1, 2, 3, 4} and size <= 256 and not any(rest))
        require(flags == (self.kind == RETIRE) and not self.commit.strip(b"0123456789abcdef"))
        self.metadata = canonical(told, 256, "v")
        require(fits("metadata", self.metadata))
        require(("pred" in self.metadata) == (self.kind == SUCCESSOR))
        require((self.seq == 1) == (self.metadata["prev"] == "0" * 64))
        self.told, self.sent = told, data[32:209] + data[22:24] + told
        self.hash = sha256(domain("entry") + data[4:12] + self.body + told)

    def message(self, place: bytes) -> bytes:
        """place: genesis hash, program and account."""
        numbered = self.seq.to_bytes(8, "little")
        return domain("anchor") + place + numbered + self.body + hashlib.sha256(self.told).digest()

def account(data: bytes, instance: str, authority: bytes, genesis: bytes, program: bytes,
            named: bytes) -> Entry:
    """Section 15: the rules that need no ledger."""
    entry = Entry(data)
    address, bump = derived(instance, authority, program)
    require((address, bump) == (named, entry.bump), "tampered")
    require(entry.instance == hashlib.sha256(instance.encode()).digest(), "tampered")
    verify(authority, entry.message(genesis + program + named), entry.signature)
    return entry

def signed(line: str, birth: dict[str, Any]) -> dict[str, Any]:
    """A record that the key of the birth record has signed."""
    one = record(line.encode())
    require((one["signer"], one["instance"]) == (birth["signer"], birth["instance"]), "tampered")
    message = domain("record") + line.encode()[:-144] + b"}"
    verify(key_bytes(one["signer"]), message, bytes.fromhex(one["signature"]))
    return one

def linked(lines: list[str], records: list[dict[str, Any]]) -> bool:
    """Each record names the hash of the one before, or a loss between them is accepted."""
    gaps = {(one["first"], one["last"]) for one in records if one.get("reason") == "gap"}
    return all(later["prev"] == sha256(line.encode()) or (one["seq"] + 1, later["seq"] - 1) in gaps
               for line, one, later in zip(lines, records, records[1:], strict=False))

def git_line(commits: list[str], named: str, wanted: dict[str, str]) -> bool:
    """From the commit that the entry names, each a parent of the one before. wanted: of the first
    and of the last of them, the record."""
    expected, told = [named], list[str]()
    for text in commits:
        data = text.encode()
        name = hashlib.sha1(b"commit %d\0" % len(data) + data, usedforsecurity=False).hexdigest()
        if name not in expected: return False
        expected = [line[7:] for line in text.split("\n\n")[0].split("\n") if line[:7] == "parent "]
        told.append(text.rstrip("\n").split("\n")[-1].removeprefix("Savepoint-Record: "))
    return told[0] == wanted["first"] and wanted["last"] in told

def compact(data: bytes, at: int) -> tuple[int, int]:
    """Solana's short_vec: a count, and where it ends."""
    count, shift = 0, 0
    while True:
        count, shift, at = count | (data[at] & 127) << shift, shift + 7, at + 1
        if data[at - 1] < 128: return count, at

def transaction(raw: bytes, authority: bytes, program: bytes, named: bytes, entry: Entry) -> None:
    """Section 16: a legacy transaction that puts the entry there, signed by all that must."""
    count, at = compact(raw, 0)
    signatures, message = [raw[at + 64 * n:][:64] for n in range(count)], raw[at + 64 * count:]
    require(message[0] == count, "tampered")
    keys, at = compact(message, 3)
    known, at = [message[at + 32 * n:][:32] for n in range(keys)], at + 32 * keys + 32
    require(authority in known[:count], "tampered")
    for key, signature in zip(known, signatures, strict=False): verify(key, message, signature)
    instructions, at = compact(message, at)
    found = False
    for _ in range(instructions):
        runs = known[message[at]]
        size, at = compact(message, at + 1)
        used = [known[one] for one in message[at:at + size]]
        size, at = compact(message, at + size)
        told, at = message[at:at + size], at + size
        found = found or (runs == program and named in used and told.endswith(entry.sent))
    require(found and at == len(message), "tampered")

def proof(data: bytes) -> str:
    """Section 16: the outcome."""
    found = outcome(spelled, data)
    if found != "ok": return found
    value = spelled(data)
    held = outcome(shown, value)
    if held != "ok": return "unsupported" if held == "unsupported" else "tampered"
    return "ok" if value["commits"] else "unchecked"

def spelled(data: bytes) -> dict[str, Any]:
    """The file as it must be spelled, and the records in it."""
    require(data.endswith(b"}\n"))
    value: dict[str, Any] = canonical(data[:-1], 2**26, "v")
    require(fits("proof", value) and value["records"])
    for line in (value["birth"], *value["records"]): record(line.encode())
    return value

def shown(value: dict[str, Any]) -> None:
    """What must hold in it."""
    birth = record(value["birth"].encode())
    lines, records = value["records"], [signed(one, birth) for one in value["records"]]
    signed(value["birth"], birth)
    require(birth["kind"] == "birth" and records[0]["kind"] == "save", "tampered")
    authority = key_bytes(birth["signer"])
    genesis, program, named = (key_bytes(value[one]) for one in ("genesis", "program", "account"))
    entry = account(bytes.fromhex(value["account_data"]), birth["instance"], authority, genesis,
                    program, named)
    last, saves = records[-1], [one for one in records if one["kind"] == "save"]
    rec = {"rec": sha256(lines[-1].encode()), "seq": last["seq"]}
    require(entry.metadata == entry.metadata | rec and KINDS.get(entry.kind) == last["kind"])
    when = dt.datetime.fromisoformat(last["timestamp"]).timestamp()
    require(linked(lines, records) and when == entry.time)
    require("sha256:" + entry.snapshot.hex() == saves[-1]["snapshot_hash"])
    if value["commits"]:
        of = lines[records.index(saves[-1])]
        wanted = {"first": sha256(of.encode()), "last": sha256(lines[0].encode())}
        require(git_line(value["commits"], entry.commit.decode(), wanted))
    if value["transaction"]:
        raw = bytes.fromhex(value["transaction"]["raw"])
        try: transaction(raw, authority, program, named, entry)
        except IndexError: raise ValueError("tampered") from None
