"""fsck of config, keys and permissions: damage, warnings, and that no secret is told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import keys
from savepoint.core.strict_json import dump
from tests.store.checking import check, told

if TYPE_CHECKING:
    from tests.verify.builder import Built


@pytest.mark.parametrize("data", [None, b"", b"[]", b'{"v":1}', b'{"v":1,"instance":"x"}'])
def test_damaged_config_is_damage(built: Built, data: bytes | None) -> None:
    path = Path(built.paths.store.config)
    path.unlink() if data is None else path.write_bytes(data)
    found = check(built)
    assert found.exit_code == 20
    assert "config.json" in told(found, "damage")


@pytest.mark.parametrize("data", [None, b"", b"{}", b'{"v":1,"stores":{}}', b'{"stores":7}'])
def test_lost_map_of_stores_is_a_note(built: Built, data: bytes | None) -> None:
    path = Path(built.paths.store.home, "stores.json")
    path.unlink() if data is None else path.write_bytes(data)
    found = check(built)
    assert found.exit_code == 0
    assert "rebuilt" in told(found, "note")


def test_missing_keys_are_warnings(built: Built) -> None:
    Path(built.paths.authority).unlink()
    Path(built.paths.store.root_seed).unlink()
    found = check(built)
    assert found.exit_code == 0
    assert told(found, "warning").count("is missing") == 2
    assert all(one.hint for one in found.items if one.severity == "warning")


def _pair(seed: bytes, public: bytes) -> bytes:
    return dump(list(seed + public))


OTHER = bytes(32)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b"[1,2,3]",
        b"[256]",
        b'["a"]',
    ],
)
def test_key_file_that_is_broken_is_a_warning(built: Built, data: bytes) -> None:
    Path(built.paths.authority).write_bytes(data)
    found = check(built)
    assert found.exit_code == 0
    assert f"{built.paths.slug}.json is no Solana keypair file" in told(found, "warning")


@pytest.mark.parametrize("data", [_pair(OTHER, keys.public_key(OTHER)), _pair(OTHER, OTHER)])
def test_key_file_that_is_not_the_instances_is_damage(built: Built, data: bytes) -> None:
    Path(built.paths.authority).write_bytes(data)
    found = check(built)
    assert found.exit_code == 20
    assert f"{built.paths.slug}.json does not hold the key" in told(found, "damage")


def test_key_file_whose_halves_do_not_match_is_damage(built: Built) -> None:
    public = built.records()[0].signer
    Path(built.paths.authority).write_bytes(_pair(OTHER, public))
    assert check(built).exit_code == 20


@pytest.mark.parametrize("data", [b"", bytes(31), bytes(33)])
def test_root_seed_that_is_broken_is_a_warning(built: Built, data: bytes) -> None:
    Path(built.paths.store.root_seed).write_bytes(data)
    found = check(built)
    assert found.exit_code == 0
    assert f"root.seed has {len(data)} bytes" in told(found, "warning")


@pytest.mark.parametrize("data", [bytes(32)])
def test_root_seed_that_does_not_derive_the_key_is_damage(built: Built, data: bytes) -> None:
    Path(built.paths.store.root_seed).write_bytes(data)
    found = check(built)
    assert found.exit_code == 20
    assert "root.seed does not derive the key" in told(found, "damage")


def test_no_secret_is_told(built: Built) -> None:
    secret = Path(built.paths.authority).read_bytes()
    Path(built.paths.authority).write_bytes(secret[:-3])
    Path(built.paths.store.root_seed).write_bytes(b"s" * 32)
    text = dump(check(built).to_json())
    assert b"ssss" not in text
    assert secret[1:40] not in text


@pytest.mark.parametrize(
    "name", ["root.seed", "pack", "snapshot", "index", "objects", "trusted", "stores.json", "home"]
)
def test_what_others_may_read_is_a_warning(built: Built, name: str) -> None:
    store = built.paths.store
    path = {
        "root.seed": Path(store.root_seed),
        "pack": built.packs()[0],
        "snapshot": built.snapshot(built.records()[1]),
        "index": built.index_file,
        "objects": Path(store.objects),
        "trusted": built.trusted.parent,
        "stores.json": Path(store.home, "stores.json"),
        "home": Path(store.home),
    }[name]
    path.chmod(path.stat().st_mode | 0o044)
    found = check(built)
    assert found.exit_code == 0
    assert len(found.items) == 1
    assert "others may read or change it" in told(found, "warning")
