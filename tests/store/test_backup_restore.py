"""A backup of keys brings a store back: on an empty machine, beside what is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import keys
from savepoint.core.errors import (
    KeyFileError,
    SavepointError,
)
from savepoint.core.spelling import Instance
from savepoint.store import birth, config, index, trusted
from savepoint.store.keys import backup, keyring, safekeeping
from savepoint.store.layout import Home
from tests.store.scene import NOW, Scene, files_below
from tests.verify import builder

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


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
    trusted.save(paths, ours)
    theirs = seen._replace(ledgers={"a": high, "b": low, "c": low})
    (member,) = scene.kept.instances
    kept = scene.kept._replace(instances=(member._replace(head=theirs),))
    safekeeping.restore(Home(scene.store.home), kept)
    merged: dict[str, Json] = {"a": high, "b": high, "c": low}
    assert trusted.load(paths) == theirs._replace(remote_tip="f" * 40, ledgers=merged)
    newest = seen._replace(seq=99, record="02" * 32)
    trusted.save(paths, newest)
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
