"""`savepoint keys`: show, add-recipient; and that no secret ever leaves any of them."""

from __future__ import annotations

import base64
import os
import re
import subprocess
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyrage  # type: ignore[import-untyped]  # it ships no types
import pytest

from savepoint.core import limits, spelling
from savepoint.store import config
from savepoint.store.keys import agekeys, keyring, safekeeping
from tests.cli.scene import COMMAND, MOMENT, WORD, Scene, program
from tests.gitlayer.test_by_hand import recover
from tests.store import scrypt_age

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.store.layout import Store


# show


def test_show(cli: Scene) -> None:
    store = cli.paths.store
    shown = cli.good("keys", "show", "--json").json
    (one,) = shown["instances"]
    assert {name: one[name] for name in ("instance", "number", "slug", "current")} == {
        "instance": "Gabriel #215",
        "number": 215,
        "slug": cli.paths.slug,
        "current": True,
    }
    key = spelling.key_bytes(one["key"])
    assert one["key_prefix"] == key[:4].hex() == cli.paths.slug[-8:]
    assert one["file"] == {"path": cli.paths.authority, "safe": True, "problem": None}
    assert [one["path"] for one in shown["roots"]] == [store.root_seed]
    (recipient,) = shown["recipients"]
    assert f"# public key: {recipient}\n" in Path(store.age_identity).read_text()
    assert (shown["backed_up"], shown["backup_made"]) == (False, None)
    ran = cli.good("keys", "show")
    for told in (one["key"], recipient, store.root_seed, "Gabriel #215 (key"):
        assert told in ran.text
    assert "KEYS NOT BACKED UP" in ran.err


def _loosen(path: str) -> None:
    os.chmod(path, 0o644)


def _empty(path: str) -> None:
    Path(path).write_bytes(b"")


@pytest.mark.parametrize("spoil", [os.unlink, _loosen, _empty])
def test_show_says_which_file_is_not_safe(cli: Scene, spoil: Callable[[str], None]) -> None:
    store = cli.paths.store
    for path in (cli.paths.authority, store.root_seed, store.age_identity, store.recipients):
        spoil(path)
    shown = cli.good("keys", "show", "--json").json
    files = [shown["instances"][0]["file"], *shown["roots"], shown["identity"]]
    for file in (*files, shown["recipients_file"]):
        assert not file["safe"]
        assert file["problem"]
    assert shown["recipients"] == []
    assert "root.seed" in cli.good("keys", "show").text


def test_show_misses_the_stores_own_key_among_the_recipients(cli: Scene) -> None:
    other = pyrage.x25519.Identity.generate().to_public()
    Path(cli.paths.store.recipients).write_text(f"{other}\n")
    problem = cli.good("keys", "show", "--json").json["recipients_file"]["problem"]
    assert "does not name the key" in problem


# add-recipient


def ssh_key(folder: Path, kind: str = "ed25519") -> Path:
    """A key pair as people have them; the path of its private half."""
    path = folder / f"id_{kind}"
    command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-C", "ada@example.org", "-f", str(path)]
    subprocess.run(command, check=True)
    return path


def test_what_is_committed_afterwards_opens_with_each_key(cli: Scene, tmp_path: Path) -> None:
    store = cli.paths.store
    mine = pyrage.x25519.Identity.generate()
    key = ssh_key(tmp_path)
    ran = cli.good("keys", "add-recipient", str(mine.to_public()))
    assert "2 keys in all" in ran.text
    assert "older commits are not encrypted again" in ran.err
    public = key.with_suffix(".pub").read_text()
    ran = cli.good("keys", "add-recipient", public, "--json")
    assert ran.json["added"]
    assert ran.json["recipients"][1:] == [str(mine.to_public()), public.strip()]
    theirs = pyrage.ssh.Identity.from_buffer(key.read_bytes())
    sealed = pyrage.encrypt(b"x", agekeys.recipients(store))
    for identity in (mine, theirs, *agekeys.identities(store)):
        assert pyrage.decrypt(sealed, [identity]) == b"x"
    assert Path(store.recipients).stat().st_mode & 0o777 == 0o600


@pytest.mark.usefixtures("age", "zstd")
def test_a_later_savepoint_opens_whole_with_a_key_that_came_in_between(
    cli: Scene, tmp_path: Path
) -> None:
    """Its first packs were in git before: encrypted to the old keys, they would not open."""
    key = ssh_key(tmp_path)
    cli.say(*(os.urandom(600_000).hex() for _ in range(2)))  # so long that savepoints share it
    cli.created()
    cli.good("keys", "add-recipient", key.with_suffix(".pub").read_text())
    git = ["git", f"--git-dir={cli.paths.store.repository}"]
    branch = f"savepoints/{cli.paths.slug}"
    for name in ("first", "second", "third"):
        cli.say(name)
        cli.created()
        clone = tmp_path / name
        command = ["git", "clone", "-q", "--branch", branch, cli.paths.store.repository, str(clone)]
        subprocess.run(command, check=True)
        done = recover(clone, key)
        assert (done.returncode, done.stderr) == (0, b"")
        assert (clone / "recovered/1").read_bytes() == cli.transcript.read_bytes()
    listed = [*git, "rev-list", "--objects", f"{branch}~2..{branch}"]
    new = subprocess.run(listed, check=True, capture_output=True, text=True).stdout
    packs = new.count(".pack.age")
    assert packs == 2, "a pack is encrypted again once, not each time"
    subprocess.run(["git", "-C", str(clone), "checkout", "-q", f"{branch}~3"], check=True)
    subprocess.run(["git", "-C", str(clone), "clean", "-fdxq"], check=True)
    assert recover(clone, key).returncode != 0, "older commits stay as they are"


def test_the_same_key_twice_is_once(cli: Scene, tmp_path: Path) -> None:
    public = ssh_key(tmp_path).with_suffix(".pub").read_text()
    cli.good("keys", "add-recipient", public)
    before = Path(cli.paths.store.recipients).read_bytes()
    own = before.decode().splitlines()[0]
    for same in (public, " ".join(public.split()[:2]), own, own.upper()):
        ran = cli.good("keys", "add-recipient", same)
        assert "already" in ran.text
        assert ran.err == ""
    assert Path(cli.paths.store.recipients).read_bytes() == before


def test_what_an_owner_wrote_into_the_list_stays(cli: Scene) -> None:
    path = Path(cli.paths.store.recipients)
    path.write_text(f"# mine\n{path.read_text()}\n# no line end")
    before = path.read_text()
    other = str(pyrage.x25519.Identity.generate().to_public())
    cli.good("keys", "add-recipient", other)
    assert path.read_text() == f"{before}\n{other}\n"


_AGE = "age1h3v5z5jcgxt5eldm504aegtzd8c2qldgke39g7vj6n79nstfqsjq4yg7pg"


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("banana", "no key"),
        ("ssh-ed25519", "not whole"),
        ("ssh-ed25519 AAAA", "not whole"),
        ("ssh-dss AAAA", "no key"),
        ("ssh-rsa AAAA", "RUSTSEC-2023-0071"),
        ("github:ada", "no key"),
        (_AGE[:-1], "not whole"),
        (_AGE[:-1] + "q", "not whole"),
        (f"{_AGE} {_AGE}", "no key"),
        (f"{_AGE}\n{_AGE}", "line end"),
        ("ssh-ed25519 AAAA\x1b[2J", "control character"),
        ("age1yubikey1qwerty", "plugin"),
        ("age1pq1qwerty", "plugin"),
        ("AGE-SECRET-KEY-1HUNTER2", "secret"),
        ("-----BEGIN OPENSSH PRIVATE KEY-----HUNTER2", "secret"),
    ],
)
def test_keys_that_are_refused(cli: Scene, key: str, why: str) -> None:
    before = Path(cli.paths.store.recipients).read_bytes()
    ran = cli("keys", "add-recipient", "--", key)
    assert ran.code == 2
    assert why in ran.err
    assert "age1…" in ran.err
    assert "HUNTER2" not in ran.err
    assert Path(cli.paths.store.recipients).read_bytes() == before


@pytest.mark.parametrize("kind", ["rsa", "ecdsa"])
def test_other_ssh_keys_are_refused(cli: Scene, tmp_path: Path, kind: str) -> None:
    public = ssh_key(tmp_path, kind).with_suffix(".pub").read_text()
    assert cli("keys", "add-recipient", public).code == 2


def test_one_key_too_many(cli: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "RECIPIENTS", 1)
    other = str(pyrage.x25519.Identity.generate().to_public())
    ran = cli("keys", "add-recipient", other)
    assert ran.code == 2
    assert "is full" in ran.err


def test_keys_added_at_once_are_all_there(cli: Scene) -> None:
    new = [str(pyrage.x25519.Identity.generate().to_public()) for _ in range(4)]
    running = [
        threading.Thread(
            target=program, args=("keys", "add-recipient", one), kwargs={"cwd": cli.project}
        )
        for one in new
    ]
    for one in running:
        one.start()
    for one in running:
        one.join()
    assert set(new) < set(agekeys.recipient_lines(cli.paths.store))


@pytest.mark.usefixtures("quick")
def test_a_backup_that_does_not_know_the_new_key_is_said(
    cli: Scene, word: str, target: Path
) -> None:
    cli.good("keys", "backup", "-o", str(target), "--passphrase-file", word)
    other = str(pyrage.x25519.Identity.generate().to_public())
    assert "the backup does not know it" in cli.good("keys", "add-recipient", other).err
    assert cli.good("status", "--json").json[
        "keys_backed_up"
    ]  # what it is for, it still brings back


# secrets


def spellings(secret: bytes) -> set[bytes]:
    """Every way in which these bytes might be printed."""
    numbers = [str(one) for one in secret]
    encoded = base64.b64encode(secret)
    return {
        secret,
        secret.hex().encode(),
        secret.hex().upper().encode(),
        spelling.base58(secret).encode(),
        encoded.rstrip(b"="),
        base64.urlsafe_b64encode(secret).rstrip(b"="),
        ",".join(numbers).encode(),
        ", ".join(numbers).encode(),
        repr(secret)[2:-1].encode(),
    }


def bech32(text: str) -> bytes:
    """The bytes of a secret in age's spelling."""
    letters = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
    number = 0
    for letter in text.lower().removeprefix("age-secret-key-1")[:52]:
        number = number << 5 | letters.index(letter)
    return (number >> 4).to_bytes(32, "big")


def markers(store: Store, slug: str) -> set[bytes]:
    """All spellings of the store's secrets and of the passphrase."""
    (identity,) = map(str, agekeys.identities(store))
    secrets = [keyring.root_seed(store), keyring.authority(store.instance(slug)), bech32(identity)]
    assert (
        str(pyrage.x25519.Identity.from_str(identity).to_public())
        in Path(store.recipients).read_text()
    )
    found = set[bytes]().union(*map(spellings, secrets))
    return found | {identity.encode(), identity.lower().encode(), WORD.encode()}


def test_markers_are_found_in_what_holds_them(cli: Scene, word: str) -> None:
    store, slug = cli.paths.store, cli.paths.slug
    known = markers(store, slug)
    for path in (store.root_seed, cli.paths.authority, store.age_identity, word):
        assert any(one in Path(path).read_bytes() for one in known), path
    taken = safekeeping.take(store, config.load(store), 0).backup.to_bytes()
    assert sum(one in taken for one in known) >= 2


def _watch(running: subprocess.Popen[bytes], seen: set[bytes]) -> None:
    """Arguments and environment of a process and its children, until it ends."""
    while running.poll() is None:
        for process in Path("/proc").glob("[0-9]*"):
            try:
                parent = re.search(r"^PPid:\t(\d+)", (process / "status").read_text(), re.MULTILINE)
                if {process.name, parent[1] if parent else ""} & {str(running.pid)}:
                    seen.add((process / "cmdline").read_bytes())
                    seen.add((process / "environ").read_bytes())
            except OSError:
                continue
        time.sleep(0.01)


def test_no_secret_in_output_errors_logs_arguments_or_git(
    cli: Scene, word: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, slug = cli.paths.store, cli.paths.slug
    known, seen = markers(store, slug), set[bytes]()
    told: list[bytes] = []

    def run(*arguments: str) -> int:
        running = subprocess.Popen(
            [*COMMAND, "--debug", "keys", *arguments],
            cwd=cli.project,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        watching = threading.Thread(target=_watch, args=(running, seen))
        watching.start()
        told.extend(running.communicate(timeout=MOMENT))
        watching.join()
        return running.returncode

    cli.created()
    home, quick = Path(cli.home.path), target.with_name("quick")
    taken = safekeeping.take(store, config.load(store), 0).backup
    quick.write_bytes(scrypt_age.seal(taken.to_bytes(), WORD))
    unlock = ("--passphrase-file", word)
    assert run("backup", "-o", str(target), *unlock) == 0
    assert run("backup", "-o", str(target), *unlock) == 1
    assert run("show", "--json") == run("show") == 0
    assert run("add-recipient", _AGE) == 0
    assert run("restore", str(quick), *unlock) == 0
    copies = {path: path.read_bytes() for path in Path(store.keys).iterdir()}
    for path in copies:
        path.write_bytes(copies[path].replace(b"1", b"2").replace(b"A", b"B")[::-1])
    assert run("show", "--json") == 0
    assert run("backup", "-o", f"{target}.2", *unlock) == 12
    assert run("restore", str(quick), *unlock, "--json") == 12
    for path, data in copies.items():
        path.write_bytes(data)
    monkeypatch.setenv("SAVEPOINT_HOME", str(tmp_path / "other"))
    assert run("restore", str(quick), *unlock, "--json") == 0
    watched = any(b"--passphrase-file" in one for one in seen)
    assert watched or not Path("/proc/self/cmdline").exists()
    places = [target.read_bytes(), *seen, *told]
    places += [
        path.read_bytes()
        for path in home.rglob("*")
        if path.is_file() and not path.is_relative_to(store.keys)
    ]
    git = ["git", f"--git-dir={store.repository}"]
    listed = [*git, "cat-file", "--batch", "--batch-all-objects"]
    places.append(subprocess.run(listed, check=True, capture_output=True).stdout)
    assert len(places[-1]) > 1000
    assert [one for one in known for place in places if one in place] == []
