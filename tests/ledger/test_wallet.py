"""Key files that sign: safe or refused, never replaced, never shown."""

from __future__ import annotations

import json
import os
import pickle
import traceback
from typing import TYPE_CHECKING

import pytest
from solders.keypair import Keypair

from anchor_service import wallet
from anchor_service.wallet import Wallet
from savepoint.core import keys
from savepoint.core.errors import KeyFileError
from savepoint.core.spelling import base58

if TYPE_CHECKING:
    from pathlib import Path

MESSAGE = b"\1message"


@pytest.fixture
def keypair(tmp_path: Path) -> Path:
    """As solana-keygen writes it: without a newline."""
    path = tmp_path / "id.json"
    path.write_text(json.dumps(list(bytes(Keypair()))), encoding="utf-8")
    path.chmod(0o600)
    return path


def test_a_solana_keypair_signs_as_solana_does(keypair: Path) -> None:
    theirs = Keypair.from_json(keypair.read_text(encoding="utf-8"))
    ours = wallet.load(str(keypair))
    assert ours.public == bytes(theirs.pubkey())
    assert ours.sign(MESSAGE) == bytes(theirs.sign_message(MESSAGE))
    assert keys.verifies_raw(ours.public, MESSAGE, ours.sign(MESSAGE))


def test_a_new_one_is_private_and_readable_by_solana(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "payer.json"
    made = wallet.create(str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert bytes(Keypair.from_json(path.read_text(encoding="utf-8")).pubkey()) == made.public
    assert wallet.load(str(path)).public == made.public
    before = path.read_bytes()
    with pytest.raises(KeyFileError, match="exists already"):
        wallet.create(str(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602, 0o644])
def test_what_others_may_read_or_write_is_refused(keypair: Path, mode: int) -> None:
    keypair.chmod(mode)
    with pytest.raises(KeyFileError, match="mode"):
        wallet.load(str(keypair))


def test_a_link_is_refused(keypair: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.json"
    link.symlink_to(keypair)
    with pytest.raises(KeyFileError, match="link"):
        wallet.load(str(link))


def test_a_fifo_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo", 0o600)
    with pytest.raises(KeyFileError, match="regular"):
        wallet.load(str(tmp_path / "fifo"))


def test_another_users_file_is_refused(keypair: Path, root: None) -> None:
    os.chown(keypair, 12345, 12345)
    with pytest.raises(KeyFileError, match="another user"):
        wallet.load(str(keypair))


def test_a_missing_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeyFileError, match="missing"):
        wallet.load(str(tmp_path / "id.json"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        json.dumps([7] * 63),
        json.dumps([7] * 65),
        json.dumps([7] * 63 + [256]),
        json.dumps([7] * 63 + [-1]),
        json.dumps([7] * 63 + [True]),
        json.dumps([7] * 63 + [1.5]),
        json.dumps([7] * 64),  # halves that do not belong together
        json.dumps([7] * 64) + "x",
        "[" * 5000,
    ],
)
def test_what_is_no_keypair_is_refused_and_not_repeated(keypair: Path, text: str) -> None:
    keypair.write_text(text, encoding="utf-8")
    with pytest.raises(KeyFileError) as refused:
        wallet.load(str(keypair))
    told = "".join(traceback.format_exception(refused.value))
    assert "7, 7" not in told


def test_nothing_shows_the_secret() -> None:
    seed = os.urandom(32)
    one = Wallet(seed)
    shown = f"{one} {one!r} {[one]}"
    assert base58(one.public) in shown
    assert not hasattr(one, "__dict__")
    for secret in (seed.hex(), base58(seed), repr(seed), str(list(seed))):
        assert secret not in shown
    with pytest.raises(TypeError):
        pickle.dumps(one)
