"""`savepoint keys backup` and `restore`: what is asked, what is refused, how all comes back."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import termios
from pathlib import Path
from typing import NamedTuple

import pytest

from savepoint.core import limits
from savepoint.store import config, trusted
from savepoint.store.keys import backup, keyring, safekeeping
from tests.cli.scene import COMMAND, MOMENT, OTHER_SESSION, WORD, Scene
from tests.gitlayer.test_by_hand import recover
from tests.store import scrypt_age


def elsewhere(monkeypatch: pytest.MonkeyPatch, folder: Path) -> Path:
    """From now on all happens on another machine."""
    home = folder / "elsewhere"
    monkeypatch.setenv("SAVEPOINT_HOME", str(home / ".savepoint"))
    monkeypatch.setenv("HOME", str(home))
    return home


# backup


@pytest.mark.usefixtures("quick")
def test_the_note_goes_with_a_backup_and_comes_back_with_a_new_root(
    cli: Scene, word: str, target: Path
) -> None:
    def noted() -> list[bool]:
        checks = {one["name"]: one["result"] for one in cli("doctor", "--json").json["checks"]}
        told = [cli.good(name).err for name in ("status", "init")]
        return [
            checks["backup"] == "warn",
            not cli.good("status", "--json").json["keys_backed_up"],
            *("KEYS NOT BACKED UP" in text for text in told),
        ]

    assert noted() == [True] * 4
    made = cli.good("keys", "backup", "-o", str(target), "--passphrase-file", word, "--json").json
    assert (made["file"], made["bytes"]) == (str(target), target.stat().st_size)
    assert (made["instances"], made["left_out"]) == ([cli.paths.slug], [])
    assert target.stat().st_mode & 0o777 == 0o600
    assert noted() == [False] * 4
    assert cli.good("keys", "show", "--json").json["backup_made"] == made["created"]
    os.rename(cli.paths.store.root_seed, Path(cli.paths.store.keys, "root.1.seed"))
    keyring.create_root(cli.paths.store)
    assert noted() == [True] * 4


@pytest.mark.usefixtures("quick")
def test_a_file_that_is_there_is_never_replaced_unasked(
    cli: Scene, word: str, target: Path
) -> None:
    """deja-vu#725."""
    command = ("keys", "backup", "-o", str(target), "--passphrase-file", word)
    target.write_bytes(b"precious")
    ran = cli(*command)
    assert (ran.code, target.read_bytes()) == (1, b"precious")
    assert "--force" in ran.err
    assert "KEYS NOT BACKED UP" in cli.good("status").err
    cli.good(*command, "--force")
    document = backup.unseal(target.read_bytes(), WORD, "")
    assert backup.parse(document).store == cli.paths.store.id
    link = target.with_name("link")
    link.symlink_to("precious")
    assert cli("keys", "backup", "-o", str(link), "--passphrase-file", word, "--force").code == 1
    assert link.is_symlink()
    nowhere = str(target.parent / "no" / "keys.age")
    assert cli("keys", "backup", "-o", nowhere, "--passphrase-file", word).code == 2


@pytest.mark.parametrize(
    ("text", "mode", "code"),
    [
        (None, 0, 2),
        (b"x\n", 0o640, 12),
        (b"x\n", 0o604, 12),
        (b"", 0o600, 12),
        (b"\n", 0o600, 12),
        (b"one\ntwo\n", 0o600, 12),
        (b"\xff\n", 0o600, 12),
        (b"x" * (limits.PASSPHRASE_BYTES + 1), 0o600, 12),
    ],
)
def test_passphrase_files_that_are_refused(
    cli: Scene, tmp_path: Path, target: Path, text: bytes | None, mode: int, code: int
) -> None:
    path = tmp_path / "word"
    if text is not None:
        path.write_bytes(text)
        path.chmod(mode)
    for command in (("backup", "-o", str(target)), ("restore", str(tmp_path / "some"))):
        (tmp_path / "some").write_bytes(b"x")
        ran = cli("keys", *command, "--passphrase-file", str(path))
        assert ran.code == code
        assert str(path) in ran.err
    assert not target.exists()


@pytest.mark.parametrize("data", [f"{WORD}\r\n", WORD])
def test_line_ends_of_a_passphrase_file_are_no_part_of_it(
    cli: Scene, word: str, target: Path, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[str] = []

    def seal(_document: bytes, passphrase: str) -> bytes:
        given.append(passphrase)
        return b""

    monkeypatch.setattr(backup, "seal", seal)
    Path(word).write_bytes(data.encode())
    cli.good("keys", "backup", "-o", str(target), "--passphrase-file", word)
    assert given == [WORD]


def test_without_a_terminal_nothing_is_asked(cli: Scene, target: Path) -> None:
    """Not from what a pipe holds either: that is no passphrase that somebody typed unseen."""
    done = subprocess.run(
        [*COMMAND, "keys", "backup", "-o", str(target)],
        cwd=cli.project,
        input=b"secret\nsecret\n",
        capture_output=True,
        start_new_session=True,  # no terminal of the test's own
        check=False,
        timeout=MOMENT,
    )
    assert (done.returncode, done.stdout) == (2, b"")
    assert b"--passphrase-file" in done.stderr
    assert b"secret" not in done.stderr
    assert not target.exists()


class Typed(NamedTuple):
    """What became of a command at a terminal."""

    code: int
    out: str
    screen: str  # what the terminal showed


def at_terminal(command: list[str], cwd: Path, *answers: str) -> Typed:
    """Run a program with a terminal of its own, and answer its questions."""
    ours, theirs = pty.openpty()

    def take_over() -> None:
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    running = subprocess.Popen(
        command,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        preexec_fn=take_over,  # noqa: PLW1509  # no thread runs
        pass_fds=[theirs],
    )
    os.close(theirs)
    screen = b""
    for answer in answers:
        while not screen.endswith(b": "):
            screen += os.read(ours, 1)
        os.write(ours, answer.encode() + b"\n")
        screen += os.read(ours, 1)
    out, _ = running.communicate(timeout=MOMENT)
    os.close(ours)
    return Typed(running.returncode, out.decode(), screen.decode())


def test_passphrases_that_differ_or_are_empty(cli: Scene, target: Path) -> None:
    command = [*COMMAND, "keys", "backup", "-o", str(target)]
    ran = at_terminal(command, cli.project, "tiptop", "tiptap")
    assert (ran.code, target.exists()) == (2, False)
    assert "differ" in ran.out
    assert "tip" not in ran.out + ran.screen
    assert at_terminal(command, cli.project, "").code == 2


@pytest.mark.usefixtures("age")
def test_typed_at_a_terminal_and_opened_by_stock_age(cli: Scene, target: Path) -> None:
    command = [*COMMAND, "keys", "backup", "-o", str(target)]
    ran = at_terminal(command, cli.project, WORD, WORD)
    assert ran.code == 0, ran.out
    assert WORD not in ran.out + ran.screen
    plain = target.with_name("plain")
    done = at_terminal(["age", "-d", "-o", str(plain), str(target)], cli.project, WORD)
    assert done.code == 0, done.out
    kept = backup.parse(plain.read_bytes())
    assert kept.roots["root.seed"] == keyring.root_seed(cli.paths.store)


def test_keys_that_would_bring_nothing_back_are_not_backed_up(
    cli: Scene, word: str, target: Path
) -> None:
    Path(cli.paths.store.root_seed).write_bytes(bytes(32))
    ran = cli("keys", "backup", "-o", str(target), "--passphrase-file", word)
    assert (ran.code, target.exists()) == (12, False)
    assert "does not give the key" in ran.err


@pytest.mark.usefixtures("quick")
def test_an_instance_that_is_not_in_the_backup_is_named(
    cli: Scene, word: str, target: Path
) -> None:
    stray = Path(cli.paths.store.keys, "gabriel-217-00112233.json")
    stray.write_bytes(b"[]")
    ran = cli.good("keys", "backup", "-o", str(target), "--passphrase-file", word, "--json")
    assert ran.json["left_out"] == ["gabriel-217-00112233"]
    assert "note: gabriel-217-00112233 is not in it" in ran.err


# restore


@pytest.mark.usefixtures("quick")
def test_restore(
    cli: Scene, word: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.created()
    store = cli.paths.store
    config.load(store)._replace(remote="https://token@example.org/x.git").save(store)
    cli.good("keys", "backup", "-o", str(target), "--passphrase-file", word)
    before = trusted.load(cli.paths)
    paths = cli.paths
    elsewhere(monkeypatch, tmp_path)
    command = ("keys", "restore", str(target), "--passphrase-file", word)
    ran = cli.good(*command)
    assert "Gabriel #215 (key" in ran.text
    assert "https://example.org/x.git" in ran.text
    assert "token" not in ran.text + ran.err
    assert f"savepoint init --adopt {store.id[:8]}" in ran.err
    there = cli.home.store(store.id).instance(paths.slug)
    assert keyring.authority(there) == keyring.authority(paths)
    assert trusted.load(there) == before
    again = cli.good(*command, "--json")
    assert again.json["written"] == []
    assert len(again.json["kept"]) == 3
    assert again.json["remote"] == "https://example.org/x.git"
    assert again.err == ""
    cli.good("init", "--adopt", store.id)
    shown = cli.good("keys", "show", "--json").json
    assert (shown["backed_up"], shown["instances"][0]["key_prefix"]) == (True, paths.slug[-8:])


def test_restore_of_what_does_not_open(
    cli: Scene, word: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = safekeeping.take(cli.paths.store, config.load(cli.paths.store), 0)
    sealed = scrypt_age.seal(taken.backup.to_bytes(), "another passphrase")
    home = elsewhere(monkeypatch, tmp_path)
    command = ("keys", "restore", str(target), "--passphrase-file", word)
    assert cli(*command).code == 2
    target.write_bytes(sealed)
    ran = cli(*command)
    assert ran.code == 12
    assert "the passphrase does not open" in ran.err
    assert "savepoint: hint: type it as it was" in ran.err
    sealed = scrypt_age.seal(taken.backup.to_bytes(), WORD)
    flipped = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for data in (sealed[:-1], flipped, b"", b"no backup", scrypt_age.seal(b"{}\n", WORD)):
        target.write_bytes(data)
        ran = cli(*command, "--json")
        assert ran.code == ran.json["error"]["code"] == 20
        assert ran.json["error"]["hint"]
    target.write_bytes(scrypt_age.seal(b'{"v":2}\n', WORD))
    assert cli(*command).code == 23
    assert not home.exists()


@pytest.mark.usefixtures("quick")
def test_restore_never_replaces_a_key(
    cli: Scene, word: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli.good("keys", "backup", "-o", str(target), "--passphrase-file", word)
    root = Path(cli.paths.store.root_seed)
    root.write_bytes(bytes(32))
    ran = cli("keys", "restore", str(target), "--passphrase-file", word)
    assert (ran.code, root.read_bytes()) == (12, bytes(32))
    assert "holds another key" in ran.err


@pytest.mark.timeout(120)
@pytest.mark.usefixtures("age", "zstd")
def test_every_transcript_comes_back_from_the_backup_and_a_clone(
    cli: Scene, word: str, target: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine is lost. What is left: the backup, a clone, the README in each commit."""
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    saved: list[bytes] = []
    for number in range(3):
        session = OTHER_SESSION if number == 1 else cli.transcript.stem
        path = cli.say(f"message {number} {os.urandom(40_000).hex()}", session=session)
        cli.created("--transcript", str(path))
        saved.append(path.read_bytes())
    store, slug = cli.paths.store, cli.paths.slug
    git = ["git", f"--git-dir={store.repository}"]
    subprocess.run([*git, "push", "-q", str(remote), "refs/heads/*:refs/heads/*"], check=True)
    config.load(store)._replace(remote=str(remote)).save(store)
    cli.good("keys", "backup", "-o", str(target), "--passphrase-file", word)

    home = elsewhere(monkeypatch, tmp_path)
    ran = cli.good("keys", "restore", str(target), "--passphrase-file", word, "--json")
    identity = Path(ran.json["path"], "age-identity.txt")
    assert identity.is_relative_to(home)
    clone = tmp_path / "clone"
    branch = f"savepoints/{slug}"
    command = ["git", "clone", "-q", "--branch", branch, ran.json["remote"], str(clone)]
    subprocess.run(command, check=True)
    listed = ["git", "-C", str(clone), "rev-list", "--reverse", "HEAD"]
    commits = subprocess.run(listed, check=True, capture_output=True, text=True).stdout.split()
    assert len(commits) == len(saved)
    for commit, transcript in zip(commits, saved, strict=True):
        subprocess.run(["git", "-C", str(clone), "checkout", "-q", commit], check=True)
        done = recover(clone, identity)
        assert (done.returncode, done.stderr) == (0, b"")
        assert (clone / "recovered/1").read_bytes() == transcript
        subprocess.run(["git", "-C", str(clone), "clean", "-fdxq"], check=True)
