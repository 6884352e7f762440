"""The backup of keys: what it holds, that nothing else opens it, that it brings a store back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from savepoint.core import keys, limits
from savepoint.core.errors import (
    KeyFileError,
    MalformedError,
    SavepointError,
    TamperedError,
    UnsupportedFormatError,
    UsageError,
)
from savepoint.core.spelling import Instance
from savepoint.store import backup, birth, config, index, keyring, safekeeping, trusted
from savepoint.store.layout import Home, Store
from tests.conformance import verifier
from tests.store import scrypt_age
from tests.verify import builder

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.strict_json import Json
    from savepoint.store.backup import Backup
    from tests.verify.builder import Built

NOW = 1_795_000_000
WORD = "correct horse"


class Scene(NamedTuple):
    """A store with a savepoint and a remote, and the backup of its keys."""

    built: Built
    kept: Backup
    empty: Home  # another machine

    @property
    def store(self) -> Store:
        return self.built.paths.store

    @property
    def files(self) -> dict[str, bytes]:
        """Keys and trusted heads, by their path in the home."""
        return files_below(Path(self.store.home), "keys", "trusted")


def files_below(home: Path, *folders: str) -> dict[str, bytes]:
    found = [path for folder in folders for path in Path(home, folder).rglob("*")]
    return {str(one.relative_to(home)): one.read_bytes() for one in found if one.is_file()}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    built = builder.new(tmp_path / "home", tmp_path / "project")
    builder.save(built, b"one\n")
    store = built.paths.store
    config.load(store)._replace(remote="/srv/remote.git").save(store)
    taken = safekeeping.take(store, config.load(store), NOW)
    assert taken.left_out == ()
    safekeeping.note_made(store, taken.backup)
    return Scene(built, taken.backup, Home(str(tmp_path / "empty")))


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
    data = json.dumps(value, separators=(",", ":")).encode()
    assert data != scene.kept.to_bytes().removesuffix(b"\n")
    with pytest.raises(MalformedError) as raised:
        backup.parse(data)
    assert raised.value.message == "what it holds is no backup of keys"
    assert raised.value.exit_code == 20


@pytest.mark.parametrize("data", [b"", b"null", b"\xff", b"[" * 100, b'{"v":1} '])
def test_what_is_no_document_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedError):
        backup.parse(data)


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


# bringing it back


def test_an_empty_home_gets_all_of_it(scene: Scene) -> None:
    done = safekeeping.restore(scene.empty, scene.kept)
    there = files_below(Path(scene.empty.path), "keys", "trusted")
    assert there == scene.files
    modes = {path.stat().st_mode & 0o777 for path in Path(scene.empty.path).rglob("*")}
    assert modes == {0o600, 0o700}
    assert config.load(done.store) == config.Config(
        scene.built.paths.slug, (), (), "/srv/remote.git", ledger=None
    )
    assert (done.kept, done.other_recipients) == ((), False)
    assert safekeeping.backed_up(done.store) == NOW
    assert keyring.authority(done.store.instance(scene.built.paths.slug)) == scene.built.seed


def test_the_same_once_more_changes_nothing(scene: Scene) -> None:
    safekeeping.restore(scene.empty, scene.kept)
    files = [path for path in Path(scene.empty.path).rglob("*") if path.is_file()]
    before = [path.stat().st_mtime_ns for path in files]
    done = safekeeping.restore(scene.empty, scene.kept)
    assert done.written == ()
    assert [path.stat().st_mtime_ns for path in files] == before


def test_whatever_a_crash_left_is_finished(scene: Scene) -> None:
    whole = safekeeping.restore(scene.empty, scene.kept).store
    home = Path(scene.empty.path)
    before = files_below(home, ".")
    for path in (one for one in before if not one.endswith("lock")):
        Path(home, path).unlink()
        safekeeping.restore(scene.empty, scene.kept)
        assert files_below(home, ".") == before, path
    assert config.load(whole).projects == ()


def test_lost_keys_come_back_beside_what_is_there(scene: Scene) -> None:
    """The usual case: the store is there, its folder of keys is not."""
    before, chosen = scene.files, Path(scene.store.config).read_bytes()
    for path in Path(scene.store.keys).iterdir():
        path.unlink()
    done = safekeeping.restore(Home(scene.store.home), scene.kept)
    assert scene.files == before
    assert Path(scene.store.config).read_bytes() == chosen
    assert scene.store.config not in done.written
    builder.save(scene.built, b"two\n")


def test_beside_the_store_of_another_project(scene: Scene, tmp_path: Path) -> None:
    other = builder.new(Path(scene.empty.path), tmp_path / "other")
    before = files_below(Path(scene.empty.path), f"stores/{other.paths.store.id}")
    safekeeping.restore(scene.empty, scene.kept)
    assert files_below(Path(scene.empty.path), f"stores/{other.paths.store.id}") == before
    assert len(os.listdir(scene.empty.stores)) == 2


@pytest.mark.parametrize("name", ["root.seed", "age-identity.txt", "authority"])
def test_other_keys_are_never_replaced(scene: Scene, name: str) -> None:
    slug = scene.built.paths.slug
    safekeeping.restore(scene.empty, scene.kept)
    folder = Path(scene.empty.store(scene.store.id).keys)
    path = folder / (f"{slug}.json" if name == "authority" else name)
    for other in folder.iterdir():
        other.unlink()
    path.write_bytes(keyring.keypair(bytes(32)))
    path.chmod(0o600)
    with pytest.raises(KeyFileError, match="holds another key") as raised:
        safekeeping.restore(scene.empty, scene.kept)
    assert raised.value.exit_code == 12
    assert os.listdir(folder) == [path.name]


def test_a_key_that_others_can_read_is_not_taken_for_restored(scene: Scene) -> None:
    done = safekeeping.restore(scene.empty, scene.kept)
    os.chmod(done.store.root_seed, 0o644)
    with pytest.raises(KeyFileError) as raised:
        safekeeping.restore(scene.empty, scene.kept)
    assert raised.value.hint == f"chmod 600 {done.store.root_seed}"


def test_other_recipients_stay(scene: Scene) -> None:
    done = safekeeping.restore(scene.empty, scene.kept)
    text = f"# mine\n{scene.kept.recipients}"
    Path(done.store.recipients).write_text(text)
    assert safekeeping.restore(scene.empty, scene.kept).other_recipients
    assert Path(done.store.recipients).read_text() == text


def test_trusted_heads_only_rise(scene: Scene) -> None:
    """A rolled back home and a newer backup: what the backup saw is what makes it visible."""
    paths = scene.built.paths
    seen = trusted.load(paths)
    assert seen is not None
    low: Json = {"seq": 1, "entry": "ab" * 32}
    high: Json = {"seq": 9, "entry": "cd" * 32}
    ours = seen._replace(
        seq=1, record="01" * 32, remote_tip="f" * 40, ledgers={"a": low, "b": high}
    )
    ours.save(paths)
    theirs = seen._replace(ledgers={"a": high, "b": low, "c": low})
    (member,) = scene.kept.instances
    kept = scene.kept._replace(instances=(member._replace(head=theirs),))
    safekeeping.restore(Home(scene.store.home), kept)
    merged: dict[str, Json] = {"a": high, "b": high, "c": low}
    assert trusted.load(paths) == theirs._replace(remote_tip="f" * 40, ledgers=merged)
    newest = seen._replace(seq=99, record="02" * 32)
    newest.save(paths)
    safekeeping.restore(Home(scene.store.home), kept)
    assert trusted.load(paths) == newest._replace(ledgers={"a": high, "b": low, "c": low})


def test_a_backup_without_heads(scene: Scene) -> None:
    (member,) = scene.kept.instances
    kept = scene.kept._replace(instances=(member._replace(head=None),))
    done = safekeeping.restore(scene.empty, backup.parse(kept.to_bytes()))
    assert trusted.load(done.store.instance(member.slug)) is None


def test_records_that_come_later_are_signed_on_with_the_key(scene: Scene) -> None:
    """The birth nonce of a successor stands in the remote; the root gives its key."""
    one, _ = birth.give_birth(scene.store, Instance("Gabriel", 216), NOW)
    done = safekeeping.restore(scene.empty, scene.kept)
    paths = done.store.instance(one.slug)
    Path(paths.snapshots).mkdir(parents=True)
    Path(paths.index_file).write_bytes(Path(one.index_file).read_bytes())
    birth.restore_authority(paths)
    seed = keyring.authority(paths)
    known = index.birth(paths)
    assert known is not None
    assert keys.public_key(seed) == known.signer


def test_errors_of_a_restore_tell_no_secret(scene: Scene) -> None:
    safekeeping.restore(scene.empty, scene.kept)
    store = scene.empty.store(scene.store.id)
    Path(store.root_seed).write_bytes(b"another secret of thirty-two byte")
    with pytest.raises(SavepointError) as raised:
        safekeeping.restore(scene.empty, scene.kept)
    told = raised.value.message + raised.value.hint
    assert "another secret" not in told
    assert scene.kept.roots["root.seed"].hex() not in told
