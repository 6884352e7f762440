"""A savepoint comes back from a clone with the commands of its README, and nothing of ours."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.gitlayer.commits import by_hand
from savepoint.store import config
from savepoint.store.keys import agekeys, safekeeping
from tests.gitlayer.layer import SECONDS, Layer

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

pytestmark = pytest.mark.usefixtures("age", "zstd")
COMMANDS = re.findall(r"^```sh\n(.*?)^```", by_hand.README.decode(), re.DOTALL | re.MULTILINE)


def clone(layer: Layer, to: Path, commit: str = "") -> Path:
    branch = f"savepoints/{layer.paths.slug}"
    subprocess.run(
        ["git", "clone", "-q", "--branch", branch, str(layer.git_dir), str(to)], check=True
    )
    if commit:
        subprocess.run(["git", "-C", str(to), "checkout", "-q", commit], check=True)
    return to


def recover(folder: Path, identity: Path) -> subprocess.CompletedProcess[bytes]:
    """Run the README's commands, as they stand there."""
    printed = (folder / "README.md").read_bytes()
    assert printed == by_hand.README
    (script,) = COMMANDS
    env = {"PATH": os.environ["PATH"], "IDENTITY": str(identity)}
    return subprocess.run(
        ["sh", "-c", script], cwd=folder, env=env, capture_output=True, check=False, timeout=SECONDS
    )


def test_a_savepoint_comes_back_by_hand(tmp_path: Path) -> None:
    layer = Layer.new(tmp_path)
    transcript = os.urandom(1_200_000).hex().encode() + b"\nlast line\n"
    odd = "a \t'\"\\ #é.py"
    loaded = {"empty": b"", odd: b"print(1)\n", "same": b"print(1)\n"}
    old = layer.saved(b"old\n")
    layer.saved(transcript, loaded=loaded)
    folder = clone(layer, tmp_path / "copy")
    done = recover(folder, Path(layer.paths.store.age_identity))
    assert (done.returncode, done.stderr) == (0, b"")
    recovered = folder / "recovered"
    assert sorted(path.name for path in recovered.iterdir()) == [
        *("1", "2", "3", "4", "RECOVER.tsv", "snapshot.json")
    ]
    assert (recovered / "1").read_bytes() == transcript
    rows = [line.split("\t") for line in (recovered / "RECOVER.tsv").read_text().splitlines()]
    assert {len(row) for row in rows} == {7}
    names = {row[5]: row[6] for row in rows}
    assert names["3"] == '"a \\t\'\\"\\\\ #é.py"'
    assert [(recovered / n).read_bytes() for n in "234"] == [b"", b"print(1)\n", b"print(1)\n"]
    snapshot = layer.built.snapshot(layer.built.records()[-1]).read_bytes()
    assert (recovered / "snapshot.json").read_bytes() == snapshot

    before = clone(layer, tmp_path / "old", old.cursor.commit)
    assert recover(before, Path(layer.paths.store.age_identity)).returncode == 0
    assert (before / "recovered/1").read_bytes() == b"old\n"


def test_several_packs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PACK_BYTES", 100_000)
    layer = Layer.new(tmp_path)
    transcript = b"".join(os.urandom(600_000).hex().encode() + b"\n" for _ in range(3))
    layer.saved(transcript)
    assert len(layer.built.packs()) == 3
    folder = clone(layer, tmp_path / "copy")
    assert recover(folder, Path(layer.paths.store.age_identity)).returncode == 0
    assert (folder / "recovered/1").read_bytes() == transcript


def test_a_savepoint_without_files(tmp_path: Path) -> None:
    layer = Layer.new(tmp_path)
    nothing: dict[str, Json] = {
        "conversation_history": {
            "agent": "claude-code",
            "client_version": None,
            "session_id": "x",
            "scope": "main",
            "message_count": 0,
            "records": 0,
            "sessions": {},
            "compactions": 0,
            "torn_tail_bytes": 0,
            "prefix_check": "full",
            "transcript": None,
            "companions": [],
        }
    }
    layer.saved(b"x", document=nothing)
    folder = clone(layer, tmp_path / "copy")
    done = recover(folder, Path(layer.paths.store.age_identity))
    assert (done.returncode, done.stderr) == (0, b"")
    assert sorted(os.listdir(folder / "recovered")) == ["RECOVER.tsv", "snapshot.json"]


@pytest.mark.parametrize("spoil", ["swap", "snapshot"])
def test_the_commands_notice_what_does_not_belong_there(tmp_path: Path, spoil: str) -> None:
    layer = Layer.new(tmp_path)
    layer.saved(b"one\n")
    layer.saved(b"two\n")
    folder = clone(layer, tmp_path / "copy")
    older = clone(layer, tmp_path / "older", layer.history()[0])
    what = "objects/*/*.age" if spoil == "swap" else "logs/precompact-saves/*"
    (theirs,), (ours,) = older.glob(what), folder.glob(what)
    shutil.copy(theirs, ours)
    if spoil == "snapshot":
        (folder / "logs/precompact-savepoint.jsonl").write_bytes(layer.built.lines[0] + b"\n")
    assert recover(folder, Path(layer.paths.store.age_identity)).returncode != 0


def test_another_recipient_opens_it_too(tmp_path: Path) -> None:
    """An owner's ssh key, added to recipients.txt as `age -R` takes it."""
    layer = Layer.new(tmp_path)
    key = tmp_path / "id"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(key)], check=True)
    recipients = Path(layer.paths.store.recipients)
    public = key.with_suffix(".pub").read_text()
    recipients.write_text(f"# the store's own\n{recipients.read_text()}\n# Ada's\n{public}")
    assert len(agekeys.recipients(layer.paths.store)) == 2
    layer.saved(b"one\n")
    for name, identity in (("a", key), ("b", Path(layer.paths.store.age_identity))):
        folder = clone(layer, tmp_path / name)
        assert recover(folder, identity).returncode == 0
        assert (folder / "recovered/1").read_bytes() == b"one\n"


def test_a_strangers_key_opens_nothing(tmp_path: Path) -> None:
    layer = Layer.new(tmp_path)
    layer.saved(b"one\n")
    (tmp_path / "stranger").mkdir()
    stranger = Layer.new(tmp_path / "stranger")
    done = recover(clone(layer, tmp_path / "copy"), Path(stranger.paths.store.age_identity))
    assert done.returncode != 0


def test_the_readme_says_how_the_identity_comes_out_of_a_backup(tmp_path: Path) -> None:
    """With the remote and a backup of the keys alone nobody knew where it was."""
    layer = Layer.new(tmp_path)
    kept = safekeeping.take(layer.paths.store, config.load(layer.paths.store), 0).backup
    said = by_hand.README.decode()
    (command,) = re.findall(r"age -d keys\.age \| (.*)\)$", said, re.MULTILINE)
    assert command == "jq -r .identity > age-identity.txt"
    identity = json.loads(kept.to_bytes())["identity"]
    assert identity == Path(layer.paths.store.age_identity).read_text()
