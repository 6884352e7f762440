"""The backup of a store's keys: one document with all that cannot be made again, and its encryption
with a passphrase (docs/format.md, section 14).

It is an age message, so stock `age -d` opens it. scrypt takes seconds and half a gigabyte: that is
what a thief pays for each guess.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import keys, limits, schema, spelling, trusted_head
from savepoint.core.errors import (
    KeyFileError,
    MalformedError,
    TamperedError,
    UnsupportedFormatError,
    UsageError,
)
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import Instance
from savepoint.core.strict_json import Json, dump, parse_file
from savepoint.store.files import read_bounded
from savepoint.store.keys.keyring import ROOT_FILE

if TYPE_CHECKING:
    from savepoint.core.trusted_head import TrustedHead

TYPE = "SAVEPOINT_KEYS"
_STARTS = b"age-encryption.org/"


class Member(NamedTuple):
    """An instance of the store: public, but for its key to be derived again."""

    instance: str  # `NAME #N`
    nonce: bytes  # 16, of its birth
    key: bytes  # 32, its authority
    head: TrustedHead | None  # what this machine had seen of it

    @property
    def slug(self) -> str:
        """The name of its files."""
        return Instance.parse(self.instance).slug(self.key)


class Backup(NamedTuple):
    """What a backup holds."""

    created: int  # Unix seconds
    store: str  # id
    remote: str | None
    ledger: str | None  # these three: where entries are anchored
    genesis: str | None
    program: str | None
    instance: str  # slug of the current one
    instances: tuple[Member, ...]
    roots: dict[str, bytes]  # name of the file → root seed, 32 bytes
    identity: str  # of age-identity.txt
    recipients: str  # of recipients.txt

    def __repr__(self) -> str:
        """Without its secrets: nothing that formats a value must tell them."""
        return f"<backup of the keys of store {self.store}>"

    def seed_of(self, member: Member) -> bytes:
        """The seed of an instance's key, from the root that gives it. Raises MalformedError."""
        found = derive(self.roots, member)
        if found is None:
            raise MalformedError(f"no root gives the key of {member.slug}")
        return found

    def to_bytes(self) -> bytes:
        """The document, in the clear."""
        value: dict[str, Json] = {
            "v": 1,
            "type": TYPE,
            "created": spelling.time_text(self.created),
            "store": self.store,
            "remote": self.remote,
            "ledger": self.ledger,
            "genesis": self.genesis,
            "program": self.program,
            "instance": self.instance,
            "instances": [_member_json(one) for one in self.instances],
            "roots": [{"file": name, "seed": seed.hex()} for name, seed in self.roots.items()],
            "identity": self.identity,
            "recipients": self.recipients,
        }
        return dump(value) + b"\n"


def derive(roots: dict[str, bytes], member: Member) -> bytes | None:
    """The seed of an instance's key, if one of the roots gives it."""
    seeds = (keys.derive_seed(root, member.nonce, member.instance) for root in roots.values())
    return next((seed for seed in seeds if keys.public_key(seed) == member.key), None)


def parse(data: bytes) -> Backup:
    """The inverse of `to_bytes`, each key derived once to see that it can be.

    Raises MalformedError, never with a word of the document, and UnsupportedFormatError.
    """
    try:
        value = parse_file(data)
        version = value.get("v")
        if type(version) is int and version > 1:
            raise UnsupportedFormatError(f"the backup is of version {version}")
        _SHAPE(value, "backup")
        return _checked(value)
    except MalformedError:
        raise MalformedError("what it holds is no backup of keys", hint=_ANOTHER) from None


def seal(document: bytes, passphrase: str) -> bytes:
    """`document` as an age message that the passphrase opens. Takes seconds."""
    from pyrage import passphrase as scrypt  # type: ignore[import-untyped]  # it ships no types

    sealed: bytes = scrypt.encrypt(document, passphrase)
    return sealed


def unseal(sealed: bytes, passphrase: str, where: str) -> bytes:
    """What `seal` was given. Nothing of a message that is changed or cut is given out.

    Raises KeyFileError (wrong passphrase), TamperedError.
    """
    from pyrage import DecryptError
    from pyrage import passphrase as scrypt

    if not sealed.startswith(_STARTS):
        raise TamperedError(f"{where} is no backup of keys, or lacks its beginning", hint=_ANOTHER)
    try:
        document: bytes = scrypt.decrypt(sealed, passphrase)
    except DecryptError as failure:
        reason = str(failure).partition("\n")[0]
        if reason == "Decryption failed":  # a changed salt looks the same
            raise KeyFileError(f"the passphrase does not open {where}", hint=_WRONG) from None
        if reason.startswith("Excessive work"):
            reason = "it asks for more work than any backup does"
        raise TamperedError(f"{where} is cut or changed: {reason}", hint=_ANOTHER) from None
    return document


def read(path: str) -> bytes:
    """The bytes of a backup file, for `unseal`. Raises UsageError (there is none), TamperedError
    (no backup is so long), DiskError.
    """
    if not os.path.isfile(path):
        what = f"{path} is no regular file" if os.path.exists(path) else f"there is no file {path}"
        raise UsageError(what, hint=_MADE)
    try:
        data = read_bounded(os.path.realpath(path), _FILE_BYTES) or b""
    except MalformedError as failure:
        raise TamperedError(failure.message, hint=_ANOTHER) from None
    if data.startswith(b"{"):  # a proof or an export, given by mistake: no backup was changed
        raise UsageError(f"{path} is a JSON document, and no backup of keys", hint=_MADE)
    return data


def _member_json(one: Member) -> Json:
    return {
        "instance": one.instance,
        "nonce": one.nonce.hex(),
        "key": spelling.base58(one.key),
        "head": one.head.to_json() if one.head else None,
    }


def _checked(value: dict[str, Json]) -> Backup:
    """What no shape says: that the parts belong together."""
    roots, instances = value["roots"], value["instances"]
    parts = {name: part for name, part in value.items() if name not in ("v", "type")} | {
        "created": spelling.time_seconds(str(value["created"])),
        "roots": {one["file"]: bytes.fromhex(one["seed"]) for one in roots},  # type: ignore[union-attr,call-overload,index,arg-type]  # _SHAPE
        "instances": tuple(_member(one) for one in instances),  # type: ignore[union-attr,arg-type]  # _SHAPE
    }
    found = Backup(**parts)  # type: ignore[arg-type]  # _SHAPE
    slugs = [one.slug for one in found.instances if found.seed_of(one)]
    if found.instance not in slugs or len(set(slugs)) != len(slugs):
        raise MalformedError("the current instance is not among the instances, or one is twice")
    if "root.seed" not in found.roots or len(found.roots) != len(roots):  # type: ignore[arg-type]  # _SHAPE
        raise MalformedError("there is no root, or one is twice")
    return found


def _member(value: dict[str, Json]) -> Member:
    instance, nonce, key, head = value.values()
    known = trusted_head.from_json(head) if head is not None else None
    return Member(str(instance), bytes.fromhex(str(nonce)), spelling.key_bytes(str(key)), known)


def _root_file(text: str) -> None:
    if not ROOT_FILE.fullmatch(text):
        raise MalformedError("not the name of a root")


_SHAPE = schema.members(
    {
        "v": schema.one_of(1),
        "type": schema.one_of(TYPE),
        "created": schema.spelled(spelling.time_seconds),
        "store": schema.hexadecimal(16),
        "remote": schema.nullable(schema.text),
        "ledger": schema.nullable(schema.text),
        "genesis": schema.nullable(schema.text),
        "program": schema.nullable(schema.text),
        "instance": schema.text,
        "instances": schema.array(
            schema.members(
                {
                    "instance": schema.spelled(Instance.parse),
                    "nonce": schema.hexadecimal(keys.NONCE_BYTES),
                    "key": schema.spelled(spelling.key_bytes),
                    "head": schema.nullable(schema.anything),  # from_json has its shape
                }
            )
        ),
        "roots": schema.array(
            schema.members(
                {"file": schema.spelled(_root_file), "seed": schema.hexadecimal(keys.SEED_BYTES)}
            )
        ),
        "identity": schema.text,
        "recipients": schema.text,
    }
)

_FILE_BYTES = limits.SMALL_DOCUMENT_BYTES + limits.ENCRYPTION_BYTES
_MADE = "name the one that `keys backup` made"
_ANOTHER = "use another copy of the backup; nothing was changed here"
_WRONG = "type it as it was when the backup was made; a changed file can look like this as well"
