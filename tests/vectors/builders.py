"""What the vectors are built from. Nothing of savepoint is used: they speak for themselves."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

Value: TypeAlias = "bool | int | str | list[Value] | dict[str, Value] | None"
Members: TypeAlias = "dict[str, Value]"

ROOT_SEED = bytes(range(32))
ZEROS = "0" * 64
EVENTS = {
    "birth": "INSTANCE_BORN",
    "save": "SAVEPOINT_CREATED",
    "restore": "INSTANCE_RESTORED",
    "retire": "KEY_RETIRED",
    "accept": "STATE_ACCEPTED",
}
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def sha256(data: bytes) -> str:
    """Hex."""
    return hashlib.sha256(data).hexdigest()


def spell(value: Value) -> bytes:
    """The one spelling of a JSON value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def domain(purpose: str) -> bytes:
    """What a signed or hashed message of that purpose starts with."""
    return b"\xff" + f"savepoint/{purpose}/v1".encode() + b"\x00"


def base58(data: bytes) -> str:
    """By long division of the digits, unlike the program's, which divides one big number."""
    digits: list[int] = []
    for byte in data:
        carry = byte
        for place, digit in enumerate(digits):
            carry += digit << 8
            digits[place], carry = carry % 58, carry // 58
        while carry:
            digits.append(carry % 58)
            carry //= 58
    zeros = len(data) - len(data.lstrip(b"\x00"))
    return "1" * zeros + "".join(_BASE58[digit] for digit in reversed(digits))


class Identity(NamedTuple):
    """An instance and its key."""

    instance: str
    nonce: bytes
    seed: bytes
    key: bytes

    def sign(self, message: bytes, purpose: str = "record") -> bytes:
        """Ed25519 under a domain."""
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(domain(purpose) + message)

    def line(self, bare: bytes) -> bytes:
        """A signed record line of these bytes, which end with a brace; no LF."""
        return with_signature(bare, self.sign(bare).hex())


def with_signature(bare: bytes, signature: str) -> bytes:
    """The record line, whatever the signature is."""
    return bare[:-1] + b',"signature":"' + signature.encode() + b'"}'


def identity(instance: str, nonce: bytes, root_seed: bytes = ROOT_SEED) -> Identity:
    """Derived as section 8 says."""
    info = b"savepoint/authority/v1\x00" + instance.encode()
    seed = HKDF(SHA256(), length=32, salt=nonce, info=info).derive(root_seed)
    key = Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()
    return Identity(instance, nonce, seed, key)


GABRIEL = identity("Gabriel #215", bytes(range(0xA0, 0xB0)))
STRANGER = identity("Claude #1", bytes(range(0xB0, 0xC0)))


def record(kind: str, seq: int, prev: str, body: Members, who: Identity = GABRIEL) -> Members:
    """The members of a record, all but its signature."""
    return {
        "v": 1,
        "seq": seq,
        "prev": prev,
        "kind": kind,
        "event": EVENTS[kind],
        "timestamp": f"2026-11-30T13:{seq % 60:02}:49Z",
        "instance": who.instance,
        **body,
        "signer": base58(who.key),
    }


def birth(who: Identity = GABRIEL) -> Members:
    """The first record of an instance."""
    return record("birth", 1, ZEROS, {"nonce": who.nonce.hex()}, who)


def origin(seq: int, who: Identity = GABRIEL) -> Members:
    """What `from` holds."""
    return {"signer": base58(who.key), "seq": seq, "snapshot_hash": f"sha256:{seq:064x}"}


def save_body(seq: int) -> Members:
    """The members of a savepoint's record."""
    return {
        "session_id": "0d3a6b1e-5f0c-4f43-9d0e-7c2b8a1f9e55",
        "from": None if seq == 2 else origin(seq - 1),
        "trigger": "auto",
        "snapshot_hash": f"sha256:{seq:064x}",
        "snapshot_size_bytes": 4096 + seq,
        "snapshot_file": f"logs/precompact-saves/snapshot_2026-11-30T13-{seq:02}-49Z.json",
        "layer_1_status": "SAVED_LOCALLY",
        "tokens_used_this_session": 87500,
        "tokens_remaining": 112500,
        "context_utilization_percent": 85,
        "consciousness_preserved": True,
    }


def vector(name: str, expect: str, data: bytes, **more: Value) -> Members:
    """`text` where the bytes are UTF-8, else `hex`."""
    try:
        content: Members = {"text": data.decode()}
    except UnicodeDecodeError:
        content = {"hex": data.hex()}
    return {"name": name, "expect": expect, **more, **content}


def swap(data: bytes, old: str, new: str) -> bytes:
    """`data` with the one place where `old` stands changed: a vector must have one defect."""
    if data.count(old.encode()) != 1:
        raise ValueError(f"{old!r} stands {data.count(old.encode())} times in {data!r}")
    return data.replace(old.encode(), new.encode())


def content(one: Members, others: dict[str, Members]) -> bytes:
    """The bytes of a vector, as section 13 says: `text`, `hex`, or `splices` of `base`."""
    if "text" in one:
        return str(one["text"]).encode()
    if "hex" in one:
        return bytes.fromhex(str(one["hex"]))
    data = content(others[str(one["base"])], others)
    splices = one["splices"]
    assert isinstance(splices, list)  # for the type checker
    for splice in reversed(splices):
        assert isinstance(splice, list)  # for the type checker
        at, delete, insert = splice
        data = data[: int(str(at))] + str(insert).encode() + data[int(str(at)) + int(str(delete)) :]
    return data


def compacted(vectors: list[Members], base: str, marker: bytes) -> list[Members]:
    """The same, each told by where it differs from `base`, so that its defect can be seen.

    Behind the last `marker` stands what changes with every edit: a signature, a hash.
    """
    others = {str(one["name"]): one for one in vectors}
    whole = content(others[base], others)
    return [one if one["name"] == base else _spliced(one, base, whole, marker) for one in vectors]


def _spliced(one: Members, base: str, whole: bytes, marker: bytes) -> Members:
    data = content(one, {})
    if marker in data:
        here, there = whole.rindex(marker), data.rindex(marker)
        pieces = [_splice(0, whole[:here], data[:there]), _splice(here, whole[here:], data[there:])]
    else:
        pieces = [_splice(0, whole, data)]
    try:
        splices: Value = [
            [at, delete, insert.decode()] for at, delete, insert in pieces if delete or insert
        ]
    except UnicodeDecodeError:
        return one
    told = {name: value for name, value in one.items() if name not in ("text", "hex")}
    short = {**told, "base": base, "splices": splices}
    return short if len(spell(short)) < len(spell(one)) else one


def _splice(start: int, old: bytes, new: bytes) -> tuple[int, int, bytes]:
    head = _alike(old, new)
    tail = _alike(old[head:][::-1], new[head:][::-1])
    return start + head, len(old) - head - tail, new[head : len(new) - tail]


def _alike(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    for number, pair in enumerate(zip(one, other, strict=False)):
        if pair[0] != pair[1]:
            return number
    return min(len(one), len(other))
