"""age keys of a store: whom the savepoints in git are encrypted to, and what opens them again.

The identity stays where the root seed is; only recipients are needed to save. pyrage is imported
when there is something to encrypt or to open: it costs the hook 2 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from savepoint.core import limits, spelling
from savepoint.core.errors import KeyFileError, UsageError
from savepoint.store import durable
from savepoint.store.keys import keyring

if TYPE_CHECKING:
    from savepoint.store.layout import Store

Recipient: TypeAlias = Any  # pyrage has no types: x25519.Recipient | ssh.Recipient
Identity: TypeAlias = Any  # x25519.Identity

_SECRET = "AGE-SECRET-KEY-1"  # noqa: S105  # how the line of a secret starts
_TAKEN = "name one age key (age1…) or one OpenSSH key, in quotes: 'ssh-ed25519 AAAA…'"
_LEAKED = (
    "a secret was given, and argument lists are no secret: make a new key, name its public part"
)
_REFUSED = (
    ("age-secret-key-", _LEAKED),
    ("-----begin", _LEAKED),
    ("ssh-rsa", "an RSA key is refused: what opens it leaks by its timing (RUSTSEC-2023-0071)"),
)


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
    return _parsed(store, _lines(store.recipients))


def recipient_lines(store: Store) -> list[str]:
    """The keys of recipients.txt as they stand there, if all can be encrypted to; else a line could
    be anything, also a secret. Raises KeyFileError.
    """
    lines = _lines(store.recipients)
    _parsed(store, lines)
    return [line for _, line in lines]


def check(store: Store) -> None:
    """Both files are whole, and the store's own key is among the recipients: without it, its own
    backup would open nothing new. Raises KeyFileError.
    """
    known = identities(store)
    if not {str(one.to_public()) for one in known} & set(recipient_lines(store)):
        raise KeyFileError(f"{store.recipients} does not name the key of {store.age_identity}")


def text(path: str) -> str:
    """All of age-identity.txt or recipients.txt, with its comments. Raises KeyFileError."""
    try:
        return _read(path).decode()
    except UnicodeDecodeError:
        raise KeyFileError(f"{path} is no text") from None


def add_recipient(store: Store, key: str) -> bool:
    """Encrypt to this key as well from now on; False if that is so already. The caller holds the
    store lock.

    Raises UsageError (no key that is taken, or one too many), KeyFileError, DiskError.
    """
    import pyrage

    line, data = _recipient_line(key), _read(store.recipients)
    known = _lines(store.recipients)
    if _same_key(line) in {_same_key(one) for _, one in known}:
        return False
    after = b"\n".join([*filter(None, [data.removesuffix(b"\n")]), line.encode(), b""])
    if len(known) >= limits.RECIPIENTS or len(after) > limits.KEY_LIST_BYTES:
        raise UsageError(
            f"{store.recipients} is full", hint=f"it takes {limits.RECIPIENTS} keys, take one out"
        )
    every = [*_parsed(store, known), _recipient(store.recipients, len(known) + 1, line)]
    try:
        pyrage.encrypt(b"", every)  # a key that parses and fails would fail every later commit
    except pyrage.EncryptError as failure:
        raise UsageError(f"age does not encrypt to this key: {failure}", hint=_TAKEN) from None
    durable.replace(store.recipients, after)
    return True


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


def _recipient_line(given: str) -> str:
    """The line of a key that is taken, in one spelling. What was given is never repeated: it may be
    a secret. Raises UsageError.
    """
    words = given.split()
    kind = words[0].lower() if words else ""
    for start, reason in _REFUSED:
        if kind.startswith(start):
            raise UsageError(reason, hint=_TAKEN)
    if not given.strip().isprintable():  # a line end would make two keys of one
        raise UsageError("the key has a line end or a control character in it", hint=_TAKEN)
    if kind.startswith("age1") and "1" in kind[len("age1") :]:
        raise UsageError("a key of a plugin is refused: a save runs no plugin", hint=_TAKEN)
    if kind == "ssh-ed25519":
        line = " ".join([kind, *words[1:]])
    elif kind.startswith("age1") and len(words) == 1:
        line = kind
    else:
        raise UsageError("this is no key that savepoints can be encrypted to", hint=_TAKEN)
    try:
        found = _recipient("", 1, line)
    except KeyFileError:
        raise UsageError("this key is not whole, or mistyped", hint=_TAKEN) from None
    return str(found) if kind != "ssh-ed25519" else line


def _same_key(line: str) -> tuple[str, ...]:
    """What makes a line the same key: all but the comment."""
    return tuple(line.split()[:2])


def _parsed(store: Store, lines: list[tuple[int, str]]) -> list[Recipient]:
    if not 1 <= len(lines) <= limits.RECIPIENTS:
        raise KeyFileError(
            f"{store.recipients} has {len(lines)} keys, not 1 to {limits.RECIPIENTS}"
        )
    return [_recipient(store.recipients, number, line) for number, line in lines]


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
    data = keyring.read_private(path, limits.KEY_LIST_BYTES + 1)
    if len(data) > limits.KEY_LIST_BYTES:
        raise KeyFileError(f"{path} is larger than {limits.KEY_LIST_BYTES} bytes")
    return data


def _keys(data: bytes) -> list[tuple[int, str]]:
    """Line numbers and lines, without comments and blank ones."""
    lines = [(number, one.strip()) for number, one in enumerate(data.decode().split("\n"), 1)]
    return [(number, one) for number, one in lines if one and not one.startswith("#")]
