"""Signed lines: JSON in its one spelling whose last member is the signature over all before it.

The bytes that were signed are the bytes that are stored, hashed and parsed. Records of an index,
lines of the log of threads, receipts and BOOTSTRAP_VERIFICATION.json are such lines.
"""

from __future__ import annotations

from savepoint.core import keys, limits, schema, spelling
from savepoint.core.errors import MalformedError, UnsupportedFormatError
from savepoint.core.strict_json import Json, dump, parse_canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_SIGNATURE = b',"signature":"'
_SIGNATURE_MEMBER_BYTES = len(_SIGNATURE) + 2 * keys.SIGNATURE_BYTES + 1  # with its last quote

TAIL: dict[str, schema.Check] = {
    "signer": schema.spelled(spelling.key_bytes),
    "signature": schema.hexadecimal(keys.SIGNATURE_BYTES),
}


def seal(members: dict[str, Json], seed: bytes, domain: str) -> bytes:
    """The line of these members, with the signature behind them. No LF."""
    bare = dump(members)
    signature = keys.sign(seed, domain, bare).hex().encode()
    return bare[:-1] + _SIGNATURE + signature + b'"}'


def holds(line: bytes, key: bytes, signature: bytes, domain: str) -> bool:
    """Is this signature, which stands at its end, the key's over the line?"""
    return keys.verifies(key, domain, unsigned(line), signature)


def unsigned(line: bytes) -> bytes:
    """The signed bytes of a line: without its last member, closing brace kept, no LF."""
    return line[: -_SIGNATURE_MEMBER_BYTES - 1] + b"}"


def read(
    line: bytes, shapes: Mapping[str, schema.Check], version: int, what: str
) -> tuple[str, dict[str, Json]]:
    """Kind and members of a line without its LF. what: it is called so in errors.

    Raises MalformedError, or UnsupportedFormatError for a version above ours. The signature is
    not checked here.
    """
    value = parse_canonical(line, limits.RECORD_BYTES)
    if not isinstance(value, dict):
        raise MalformedError(f"a {what} is not an object")
    found = value.get("v")
    if type(found) is int and found > version:
        raise UnsupportedFormatError(f"{what} of version {found}; this program knows {version}")
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in shapes:
        raise MalformedError(f"a {what} of no known kind")
    shapes[kind](value, what)
    return kind, value
