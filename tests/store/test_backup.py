"""The backup of keys: what it holds, that nothing else opens it, whether there is one."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import limits
from savepoint.core.errors import (
    KeyFileError,
    MalformedError,
    TamperedError,
    UnsupportedFormatError,
    UsageError,
)
from savepoint.core.spelling import Instance
from savepoint.store import birth, config
from savepoint.store.keys import backup, keyring, safekeeping
from tests.conformance import verifier
from tests.store import scrypt_age
from tests.store.scene import NOW, Scene

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.store.layout import Store

WORD = "correct horse"


# the document


def test_document_is_what_the_format_says(scene: Scene) -> None:
    data = scene.kept.to_bytes()
    assert backup.parse(data) == scene.kept
    value = verifier.canonical(data.removesuffix(b"\n"), limits.SMALL_DOCUMENT_BYTES, "v")
    assert verifier.fits("backup", value)
    assert (value["store"], value["remote"]) == (scene.store.id, "/srv/remote.git")
    assert [value["ledger"], value["genesis"], value["program"]] == [None, None, None]
    (member,) = value["instances"]
    assert member["head"]["seq"] == 2
    assert value["roots"] == [
        {"file": "root.seed", "seed": Path(scene.store.root_seed).read_bytes().hex()}
    ]
    assert value["identity"] == Path(scene.store.age_identity).read_text()


def test_nothing_that_formats_it_tells_a_secret(scene: Scene) -> None:
    for text in (repr(scene.kept), str(scene.kept), f"{scene.kept!s:>100}"):
        assert scene.kept.roots["root.seed"].hex() not in text
        assert "AGE-SECRET" not in text
        assert repr(scene.kept.roots["root.seed"]) not in text


_DAMAGE: dict[str, tuple[str, object]] = {
    "version 0": ("v", 0),
    "version true": ("v", True),
    "another type": ("type", "SAVEPOINT_KEY"),
    "no such day": ("created", "2026-11-31T00:00:00Z"),
    "a store elsewhere": ("store", "../../../../tmp"),
    "capitals": ("store", "AB" * 16),
    "a remote that is a number": ("remote", 7),
    "an instance that is not there": ("instance", "gabriel-215-00000000"),
    "no instance": ("instances", []),
    "no root": ("roots", []),
    "no root of today": ("roots.0.file", "root.1.seed"),
    "no identity": ("identity", None),
    "a member more": ("more", 1),
    "another root": ("roots.0.seed", "00" * 32),
    "a root elsewhere": ("roots.0.file", "../root.seed"),
    "another name": ("instances.0.instance", "Gabriel #216"),
    "another nonce": ("instances.0.nonce", "00" * 16),
    "half a head": ("instances.0.head", {"v": 1}),
    "a root twice": ("roots.+", 0),
    "an instance twice": ("instances.+", 0),
}


@pytest.mark.parametrize("damage", _DAMAGE)
def test_a_document_that_is_no_backup_is_refused_without_a_word_of_it(
    scene: Scene, damage: str
) -> None:
    value = json.loads(scene.kept.to_bytes())
    path, new = _DAMAGE[damage]
    *way, last = path.split(".")
    target: Any = value
    for step in way:
        target = target[int(step) if step.isdigit() else step]
    if last == "+":
        target.append(target[0])
    else:
        target[last] = new
    data = json.dumps(value, separators=(",", ":")).encode() + b"\n"
    assert data != scene.kept.to_bytes()
    with pytest.raises(MalformedError) as raised:
        backup.parse(data)
    assert raised.value.message == "what it holds is no backup of keys"
    assert raised.value.exit_code == 20


@pytest.mark.parametrize("data", [b"", b"null", b"\xff", b"[" * 100, b'{"v":1} '])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedError):
        backup.parse(data)


def test_a_document_without_its_lf_is_refused(scene: Scene) -> None:
    with pytest.raises(MalformedError):
        backup.parse(scene.kept.to_bytes().removesuffix(b"\n"))


def test_a_newer_version_is_not_called_damaged(scene: Scene) -> None:
    data = scene.kept.to_bytes().replace(b'{"v":1', b'{"v":2', 1)
    with pytest.raises(UnsupportedFormatError):
        backup.parse(data)


# its encryption


def test_stock_scrypt_messages_open(scene: Scene) -> None:
    document = scene.kept.to_bytes() * 200  # several chunks
    assert backup.unseal(scrypt_age.seal(document, WORD), WORD, "f") == document


def test_wrong_passphrase(scene: Scene) -> None:
    sealed = scrypt_age.seal(scene.kept.to_bytes(), WORD)
    for word in ("", "correct horsf", WORD + " "):
        with pytest.raises(KeyFileError, match="the passphrase does not open") as raised:
            backup.unseal(sealed, word, "f")
        assert word not in raised.value.hint or not word


def test_what_is_cut_or_changed_gives_nothing() -> None:
    """A changed salt cannot be told from another passphrase; everything else can."""
    sealed = scrypt_age.seal(b"secret" * 20, WORD)
    salt = range(sealed.index(b"scrypt ") + 7, sealed.index(b"---"))
    for at in range(0, len(sealed), 3):
        with pytest.raises(TamperedError):
            backup.unseal(sealed[:at], WORD, "f")
        changed = sealed[:at] + bytes([sealed[at] ^ 1]) + sealed[at + 1 :]
        with pytest.raises((KeyFileError, TamperedError)) as raised:
            backup.unseal(changed, WORD, "f")
        assert isinstance(raised.value, TamperedError) or at in salt
    with pytest.raises(TamperedError):
        backup.unseal(sealed + b"x", WORD, "f")


def test_a_file_that_asks_for_hours_of_work_is_refused_at_once() -> None:
    sealed = scrypt_age.seal(b"x", WORD).replace(b" 1\n", b" 40\n", 1)
    with pytest.raises(TamperedError, match="more work"):
        backup.unseal(sealed, WORD, "f")


def test_reading_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.age"
    path.write_bytes(b"x")
    (tmp_path / "link").symlink_to(path)
    assert backup.read(str(path)) == backup.read(str(tmp_path / "link")) == b"x"
    os.truncate(path, limits.SMALL_DOCUMENT_BYTES * 2)
    with pytest.raises(TamperedError, match="larger"):
        backup.read(str(path))
    for path in (tmp_path, tmp_path / "missing"):
        with pytest.raises(UsageError):
            backup.read(str(path))


# taking one


def test_every_instance_and_every_root_is_in_it(scene: Scene) -> None:
    """A retired root stays as root.<n>.seed: what it signed can be signed for again."""
    store = scene.store
    os.rename(store.root_seed, Path(store.keys, "root.1.seed"))
    keyring.create_root(store)
    paths, _ = birth.give_birth(store, Instance("Gabriel", 216), NOW)
    chosen = config.load(store)._replace(instance=paths.slug)
    assert safekeeping.backed_up(store) is None
    taken = safekeeping.take(store, chosen, NOW)
    assert sorted(taken.backup.roots) == ["root.1.seed", "root.seed"]
    assert [one.instance for one in taken.backup.instances] == ["Gabriel #215", "Gabriel #216"]
    assert safekeeping.restore(scene.empty, backup.parse(taken.backup.to_bytes())).store.id
    for one in (scene.built.paths, paths):
        seed = keyring.authority(scene.empty.store(store.id).instance(one.slug))
        assert seed == keyring.authority(one)


def test_an_instance_that_could_not_sign_again_is_left_out_and_named(scene: Scene) -> None:
    store = scene.store
    one, _ = birth.give_birth(store, Instance("Gabriel", 216), NOW)
    Path(one.index_file).write_bytes(b"rubbish\n")
    Path(store.keys, "gabriel-217-00112233.json").write_text("[]")
    taken = safekeeping.take(store, config.load(store), NOW)
    assert taken.left_out == tuple(sorted([one.slug, "gabriel-217-00112233"]))
    assert [one.instance for one in taken.backup.instances] == ["Gabriel #215"]


def _other_root(store: Store) -> None:
    Path(store.root_seed).write_bytes(bytes(32))


def _no_root(store: Store) -> None:
    os.unlink(store.root_seed)


def _open_identity(store: Store) -> None:
    os.chmod(store.age_identity, 0o640)


def _no_recipients(store: Store) -> None:
    Path(store.recipients).write_text("# nobody\n")


def _long_recipients(store: Store) -> None:
    with Path(store.recipients).open("a") as file:
        file.write("#" * limits.KEY_LIST_BYTES)


def _no_birth(store: Store) -> None:
    (one,) = Path(store.path, "instances").rglob("precompact-savepoint.jsonl")
    one.unlink()


@pytest.mark.parametrize(
    "spoil",
    [_other_root, _no_root, _open_identity, _no_recipients, _long_recipients, _no_birth],
)
def test_a_backup_that_would_bring_nothing_back_is_not_made(
    scene: Scene, spoil: Callable[[Store], None]
) -> None:
    spoil(scene.store)
    with pytest.raises(KeyFileError):
        safekeeping.take(scene.store, config.load(scene.store), NOW)


# whether there is one


def test_backed_up_until_a_key_changes(scene: Scene) -> None:
    store = scene.store
    assert safekeeping.backed_up(store) == NOW
    birth.give_birth(store, Instance("Gabriel", 216), NOW)  # valid for all successors
    assert safekeeping.backed_up(store) == NOW
    os.chmod(store.root_seed, 0o644)  # cannot be read: others say so
    assert safekeeping.backed_up(store) == NOW
    os.chmod(store.root_seed, 0o600)
    os.rename(store.root_seed, Path(store.keys, "root.1.seed"))
    keyring.create_root(store)
    assert safekeeping.backed_up(store) is None


@pytest.mark.parametrize("text", ["", "{", "null", '{"v":2,"made":"","keys":""}'])
def test_a_damaged_note_is_none(scene: Scene, text: str) -> None:
    Path(scene.store.backup_note).write_text(text)
    assert safekeeping.backed_up(scene.store) is None
