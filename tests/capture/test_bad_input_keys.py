"""A key that is missing or unsafe: all but the signature is saved, and said; no key is made."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.fault.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project and a store with a savepoint."""
    scene = Scene.make(tmp_path / "scene")
    scene.say(3)
    assert scene.fire().is_quiet
    return scene


def _gone(key: Path) -> None:
    key.unlink()


def _empty(key: Path) -> None:
    key.write_bytes(b"")


def _short(key: Path) -> None:
    key.write_text(json.dumps(json.loads(key.read_text())[:63]))


def _long(key: Path) -> None:
    key.write_text(json.dumps([*json.loads(key.read_text()), 0]))


def _mismatched(key: Path) -> None:
    pair = json.loads(key.read_text())
    pair[0] ^= 1  # the public half is still that of the instance
    key.write_text(json.dumps(pair))


def _no_bytes(key: Path) -> None:
    key.write_text(json.dumps([300] * 64))


def _of_another(key: Path) -> None:
    other = Scene.make(key.parents[3] / "other")
    key.write_bytes(Path(other.paths.authority).read_bytes())


def _rubbish(key: Path) -> None:
    key.write_bytes(b"\xff\0{")


def _readable_by_others(key: Path) -> None:
    key.chmod(0o644)


def _folder(key: Path) -> None:
    key.unlink()
    key.mkdir()


def _fifo(key: Path) -> None:
    key.unlink()
    os.mkfifo(key, 0o600)


def _link(key: Path) -> None:
    key.rename(key.with_name("elsewhere"))
    key.symlink_to("elsewhere")


SPOILED = [_gone, _empty, _short, _long, _mismatched, _no_bytes, _of_another, _rubbish]
SPOILED += [_readable_by_others, _folder, _fifo, _link]


@pytest.mark.parametrize("spoil", SPOILED)
def test_the_draft_waits_and_is_signed_when_the_key_is_back(
    scene: Scene, spoil: Callable[[Path], None], tmp_path: Path
) -> None:
    key = Path(scene.paths.authority)
    good = tmp_path / "good"
    good.write_bytes(key.read_bytes())
    spoil(key)
    spoiled = _fingerprint(key)
    waiting = scene.say(3)
    assert scene.fire().is_quiet
    (line,) = scene.log()
    assert str(key) in line["reason"]
    assert len([name for name in scene.pending() if name.endswith(".draft")]) == 1
    assert len(scene.saves()) == 1
    refused = scene.create()
    assert refused.code == 12
    assert str(key) in refused.err
    assert "hint" in refused.err
    assert _fingerprint(key) == spoiled, "no key is made in silence, nor repaired"
    _put_back(key, good)
    newest = scene.say(1)
    assert scene.fire().is_quiet
    assert scene.pending() == []
    contents = [scene.conversation(one) for one in scene.saves()]
    assert waiting in contents, "what was read while there was no key"
    assert contents[-1] == newest
    assert scene.damage() == []
    assert scene.stored_twice() == []


def _fingerprint(key: Path) -> tuple[int, bytes] | None:
    if not key.exists():
        return None
    seen = key.lstat()
    return seen.st_mode, key.read_bytes() if key.is_file() else b""


def _put_back(key: Path, good: Path) -> None:
    if key.is_dir():
        key.rmdir()
    else:
        key.unlink(missing_ok=True)
    key.touch(mode=0o600)
    key.write_bytes(good.read_bytes())


def test_no_secret_is_in_what_is_said_of_a_key(scene: Scene) -> None:
    key = Path(scene.paths.authority)
    secret = key.read_text().strip()
    key.write_text(secret[:-1])  # cut short: a parser's message may quote what it read
    scene.say(1)
    told = f"{scene.fire()} {scene.log()} {scene.create()}"
    assert "keypair file" in told
    numbers = secret.strip("[]").split(",")
    assert ",".join(numbers[:4]) not in told
    assert ", ".join(numbers[:4]) not in told
