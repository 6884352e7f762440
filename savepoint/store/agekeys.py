"""age keys of a store: whom the savepoints in git are encrypted to, and what opens them again.

The identity stays where the root seed is; only recipients are needed to save. pyrage is imported
when there is something to encrypt or to open: it costs the hook 2 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from savepoint.core import limits, spelling
from savepoint.core.errors import KeyFileError
from savepoint.store import durable, keyring

if TYPE_CHECKING:
    from savepoint.store.layout import Store

Recipient: TypeAlias = Any  # pyrage has no types: x25519.Recipient | ssh.Recipient
Identity: TypeAlias = Any  # x25519.Identity

_SECRET = "AGE-SECRET-KEY-1"  # noqa: S105  # how the line of a secret starts


def create(store: Store, now: int) -> None:
    """The identity of a new store, and its recipients.txt with that one key. now: Unix seconds.

    Raises KeyFileError if there is one already: what was encrypted to it would be lost.
    """
    from pyrage import x25519  # type: ignore[import-untyped]  # it ships no types

    identity = x25519.Identity.generate()
    public = str(identity.to_public())
    text = f"# created: {spelling.time_text(now)}\n# public key: {public}\n{identity}\n"
    durable.make_directories(store.keys)
    if not durable.create_exclusive(store.age_identity, text.encode()):
        raise KeyFileError(f"{store.age_identity} exists already", hint="it is never replaced")
    durable.replace(store.recipients, f"{public}\n".encode())


def recipients(store: Store) -> list[Recipient]:
    """Whom savepoints are encrypted to: the keys of recipients.txt, as `age -R` reads it.

    Raises KeyFileError: missing, empty, writable or readable by others, a key that is none of age
    (`age1…`) or OpenSSH (`ssh-ed25519 …`, `ssh-rsa …`).
    """
    lines = _lines(store.recipients)
    if not 1 <= len(lines) <= limits.RECIPIENTS:
        raise KeyFileError(
            f"{store.recipients} has {len(lines)} keys, not 1 to {limits.RECIPIENTS}"
        )
    return [_recipient(store.recipients, number, line) for number, line in lines]


def identities(store: Store) -> list[Identity]:
    """What opens savepoints: the secrets of age-identity.txt. Raises KeyFileError."""
    return parse_identities(_read(store.age_identity), store.age_identity)


def parse_identities(data: bytes, where: str) -> list[Identity]:
    """The secrets of a file as age-keygen writes it. Raises KeyFileError, never with its text."""
    from pyrage import IdentityError, x25519

    try:
        found = [x25519.Identity.from_str(line) for _, line in _keys(data)]
    except (IdentityError, UnicodeDecodeError):
        raise KeyFileError(f"{where} has a line that is no age identity") from None
    if not found:
        raise KeyFileError(f"{where} has no line that starts with {_SECRET}")
    return found


def _recipient(path: str, number: int, line: str) -> Recipient:
    from pyrage import RecipientError, ssh, x25519

    kind = ssh.Recipient if line.startswith("ssh-") else x25519.Recipient
    try:
        return kind.from_str(line)
    except RecipientError as failure:
        raise KeyFileError(f"{path} line {number} is no key to encrypt to: {failure}") from None


def _lines(path: str) -> list[tuple[int, str]]:
    try:
        return _keys(_read(path))
    except UnicodeDecodeError:
        raise KeyFileError(f"{path} is no text") from None


def _read(path: str) -> bytes:
    return keyring.read_private(path, limits.KEY_LIST_BYTES)


def _keys(data: bytes) -> list[tuple[int, str]]:
    """Line numbers and lines, without comments and blank ones."""
    lines = [(number, one.strip()) for number, one in enumerate(data.decode().split("\n"), 1)]
    return [(number, one) for number, one in lines if one and not one.startswith("#")]
