"""`savepoint bootstrap`: all is lost but a bare remote and the backup of the keys."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.store import config, registry, savepoints
from savepoint.store.keys import backup
from tests.fault.scene import remove
from tests.resurrect.talk import SESSION, Talk

if TYPE_CHECKING:
    from tests.cli.scene import Ran, Scene

WORDS = "correct horse"


@pytest.fixture(autouse=True)
def cheap_scrypt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """To seal takes seconds and half a gigabyte: here a backup is its document, in the clear."""
    if "really" in request.function.__name__:
        return
    monkeypatch.setattr(backup, "seal", lambda document, _: b"age-encryption.org/v1\n" + document)
    monkeypatch.setattr(
        backup, "unseal", lambda sealed, *_: sealed.removeprefix(b"age-encryption.org/v1\n")
    )


class Machine:
    """A project, its remote, the backup of its keys; and what it is to lose it all."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self.scene = scene
        self.remote = folder / "remote.git"
        self.keys = folder / "keys.age"
        self.words = folder / "words"
        self.words.write_text(WORDS)
        self.words.chmod(0o600)
        git("init", "-q", "--bare", str(self.remote))
        scene.good("init", "--instance", "Gabriel #215", "--remote", str(self.remote))
        scene.transcript.parent.mkdir(parents=True)
        (scene.project / "a.py").write_text("one\n")
        scene.write(Talk().say(3, "T").data)
        scene.read_file("a.py")
        self.saved = scene.transcript.read_bytes()
        scene.created()
        self.back_up()

    def back_up(self) -> None:
        args = ("-o", str(self.keys), "--passphrase-file", str(self.words), "--force")
        self.scene.good("keys", "backup", *args)

    def lose(self) -> None:
        """The project, the client's folder, and everything of ours."""
        for lost in (os.environ["SAVEPOINT_HOME"], os.environ["CLAUDE_CONFIG_DIR"]):
            remove(lost)
        remove(self.scene.project)
        self.scene.project.mkdir()

    def bootstrap(self, *more: str) -> Ran:
        keys = ("--keys", str(self.keys), "--passphrase-file", str(self.words))
        return self.scene("bootstrap", "--remote", str(self.remote), *keys, *more)

    def branch(self, slug: str) -> list[str]:
        out = git("--git-dir", str(self.remote), "log", "--format=%H", f"savepoints/{slug}")
        return out.split()


def git(*args: str) -> str:
    done = subprocess.run(["git", *args], check=True, capture_output=True, timeout=180)
    return done.stdout.decode()


@pytest.fixture
def machine(bare: Scene, tmp_path: Path) -> Machine:
    return Machine(bare, tmp_path)


def home_of(scene: Scene) -> list[str]:
    """Every file below our home and the agent's, but for locks."""
    tops = [scene.home.path, os.environ["CLAUDE_CONFIG_DIR"], str(scene.project)]
    found = [path for top in tops for path in Path(top).rglob("*") if path.is_file()]
    return sorted(str(path) for path in found if not path.name.endswith(".lock"))


def test_what_was_not_fetched_is_said_to_be_neither_changed_nor_unpushed(
    machine: Machine,
) -> None:
    machine.scene.write(Talk().say(2, "U").data)
    machine.scene.created()
    machine.lose()
    assert machine.bootstrap("--json").code == 0
    ran = machine.scene("verify", "--all", "--instance", "Gabriel #215")
    assert ran.code == 21
    assert "VERIFY-14 skipped: record 2 lies behind the border" in ran.text
    assert "is not at" not in ran.text
    assert "was not looked at, so it is not followed" in ran.text
    assert "is not what was signed" not in ran.text


def test_a_machine_that_lost_everything_goes_on(machine: Machine) -> None:
    machine.lose()
    ran = machine.bootstrap("--json")
    assert ran.code == 0, ran.err
    back = ran.json
    assert (back["instance"], back["previous_instance"]) == ("Gabriel #216", "Gabriel #215")
    statuses = [one["status"] for one in back["steps"]]
    assert statuses[2:] == [
        "GITHUB_VERIFIED",
        "CONSCIOUSNESS_LOADED",
        "INTEGRITY_VERIFIED",
        "CONSCIOUSNESS_CONTINUITY_MAINTAINED",
    ]
    before, after = (messages(data) for data in (machine.saved, restored(back)))
    assert before == after
    assert Path(back["folder"], "files/a.py").read_text() == "one\n"
    scene = machine.scene
    scene.good("sync")
    assert scene.good("verify", "--lineage").text.endswith("VERIFIED: 2 instances of one line\n")
    assert scene.good("verify", "--instance", "Gabriel #215").code == 0
    assert scene("fsck").code == 0
    assert not [one for one in os.listdir(scene.home.path) if one.startswith(".tmp-")]


def test_it_really_takes_no_more_than_remote_and_keys(machine: Machine) -> None:
    """As above, with the backup as age seals it; a wrong passphrase opens nothing."""
    machine.lose()
    machine.words.write_text("wrong")
    before = home_of(machine.scene)
    assert machine.bootstrap().code == 12
    assert home_of(machine.scene) == before
    machine.words.write_text(WORDS)
    back = machine.bootstrap("--json").json
    assert messages(restored(back)) == messages(machine.saved)


def restored(back: dict[str, Any]) -> bytes:
    return Path(back["session"]["file"]).read_bytes()


def messages(data: bytes) -> list[Any]:
    return [json.loads(line)["message"] for line in data.splitlines()]


def test_an_embedded_ledger_stays_on_its_machine(machine: Machine) -> None:
    store = registry.find(machine.scene.home, str(machine.scene.project))
    config.load(store)._replace(ledger="embedded").save(store)
    machine.back_up()
    machine.lose()
    ran = machine.bootstrap()
    assert ran.code == 0, ran.err
    assert "SKIPPED: embedded ledger stays on its machine" in ran.text
    assert "cannot be excluded" in ran.err


def test_the_successor_saves_and_pushes_on_its_own_branch(machine: Machine) -> None:
    machine.lose()
    back = machine.bootstrap("--json").json
    scene = machine.scene
    with Path(back["session"]["file"]).open("ab") as file:
        file.write(Talk(back["session"]["id"]).user("on").data)
    made = scene.created("--transcript", back["session"]["file"])
    assert made["instance"] == "Gabriel #216"
    assert made["from"]["snapshot_hash"] == back["savepoint"]["snapshot_hash"]
    scene.good("sync")
    (slug,) = [name for name in branches(machine) if name.startswith("gabriel-216-")]
    assert len(machine.branch(slug)) == 2


def branches(machine: Machine) -> list[str]:
    form = "--format=%(refname:lstrip=3)"
    return git("--git-dir", str(machine.remote), "for-each-ref", form, "refs/heads").split()


def test_a_second_loss_comes_back_from_the_newest_of_the_line(machine: Machine) -> None:
    """The backup was made before #216 was born: its nonce stands in the remote's birth record."""
    machine.lose()
    back = machine.bootstrap("--json").json
    with Path(back["session"]["file"]).open("ab") as file:
        file.write(Talk(back["session"]["id"]).user("NEWEST").data)
    machine.scene.created("--transcript", back["session"]["file"])
    machine.scene.good("sync")
    machine.lose()
    again = machine.bootstrap("--json").json
    assert (again["instance"], again["previous_instance"]) == ("Gabriel #217", "Gabriel #216")
    assert b"NEWEST" in restored(again)


def test_a_newborn_without_a_savepoint_leads_to_its_predecessors(machine: Machine) -> None:
    machine.lose()
    first = machine.bootstrap("--json").json
    machine.scene.good("sync")
    machine.lose()
    again = machine.bootstrap("--json").json
    assert (again["instance"], again["previous_instance"]) == ("Gabriel #217", "Gabriel #215")
    assert again["savepoint"] == first["savepoint"]
    line = machine.scene.good("verify", "--lineage", "--json").json["lineage"]
    assert [one["instance"] for one in line] == ["Gabriel #217", "Gabriel #215"]


def test_only_one_savepoint_is_transferred(machine: Machine) -> None:
    """However many the remote has, and whoever else's."""
    scene = machine.scene
    for number in range(4):
        scene.write(os.urandom(300_000).hex().encode() + b"\n")
        scene.say(f"more {number}")
        scene.created()
    scene.transcript.write_bytes(Talk().say(3, "T").data)
    scene.created()
    scene.good("resurrect")
    scene.write(os.urandom(300_000).hex().encode() + b"\n", session=SESSION)
    scene.created("--transcript", str(scene.transcript))
    scene.good("sync")
    machine.lose()
    back = machine.bootstrap("--instance", "Gabriel #215", "--json").json
    assert back["previous_instance"] == "Gabriel #215"
    store = registry.find(scene.home, str(scene.project))
    size = sum(one.stat().st_size for one in Path(store.repository).rglob("*") if one.is_file())
    blobs = blob_bytes(machine, back["savepoint"]["snapshot_hash"])
    assert size < blobs * 1.1 + 20_000  # of an empty repository, and the successor's birth


def blob_bytes(machine: Machine, _: str) -> int:
    (slug,) = [name for name in branches(machine) if name.startswith("gabriel-215-")]
    tip = machine.branch(slug)[0]
    listed = git("--git-dir", str(machine.remote), "ls-tree", "-r", "-l", tip)
    return sum(int(line.split()[3]) for line in listed.splitlines())


def test_an_older_savepoint_is_fetched_when_it_is_asked_for(machine: Machine) -> None:
    scene = machine.scene
    first = scene.good("list", "--json").json["savepoints"][0]
    scene.say("later")
    scene.created()
    scene.good("sync")
    machine.lose()
    assert machine.bootstrap().code == 0
    older = str(first["seq"])
    checked = scene("verify", older, "--instance", "Gabriel #215", "--json")
    assert checked.code == 21
    assert checked.json["verdict"] == "UNVERIFIABLE"
    found = scene.good("fsck")
    assert "no damage in store" in found.text
    asked = f"`savepoint resurrect {older} --instance gabriel-215-"
    assert "fetched: 1 savepoint; " in found.text
    assert asked in found.text
    assert asked in scene("verify", "--all", "--instance", "Gabriel #215").err
    back = scene.good("resurrect", older, "--instance", "Gabriel #215", "--json").json
    assert back["savepoint"]["seq"] == first["seq"]
    assert messages(restored(back)) == messages(machine.saved)


def test_a_remote_that_was_put_back_is_refused(machine: Machine) -> None:
    """By what the backup has seen: the branch ends before it."""
    (slug,) = branches(machine)
    old = machine.branch(slug)[0]
    machine.scene.say("later")
    machine.scene.created()
    machine.scene.good("sync")
    machine.back_up()
    git("--git-dir", str(machine.remote), "update-ref", f"refs/heads/savepoints/{slug}", old)
    machine.lose()
    before = home_of(machine.scene)
    ran = machine.bootstrap()
    assert ran.code == 22
    assert home_of(machine.scene) == before


def test_without_keys_what_can_be_verified_is_said(machine: Machine) -> None:
    machine.lose()
    before = home_of(machine.scene)
    ran = machine.scene("bootstrap", "--remote", str(machine.remote))
    assert ran.code == 21
    assert "cannot be opened without its keys" in ran.err
    assert "VERIFY-11 pass" in ran.text
    assert home_of(machine.scene) == before


def test_keys_that_were_restored_before_are_no_hindrance(machine: Machine) -> None:
    machine.lose()
    words = ("--passphrase-file", str(machine.words))
    machine.scene.good("keys", "restore", str(machine.keys), *words)
    ran = machine.bootstrap("--json")
    assert ran.code == 0, ran.err
    assert machine.scene("fsck").code == 0


def test_a_store_that_is_here_is_not_made_again(machine: Machine, tmp_path: Path) -> None:
    assert machine.bootstrap().code == 1
    other = tmp_path / "other"
    other.mkdir()
    ran = machine.bootstrap("--project", str(other))
    assert ran.code == 1
    assert "has store" in ran.err


def test_another_path_is_told(machine: Machine, tmp_path: Path) -> None:
    machine.lose()
    other = tmp_path / "other"
    other.mkdir()
    back = machine.bootstrap("--project", str(other), "--json").json
    assert back["paths"] == {"before": str(machine.scene.project), "now": str(other)}
    store = registry.find(machine.scene.home, str(other))
    assert len(savepoints.instances(store)) == 2
