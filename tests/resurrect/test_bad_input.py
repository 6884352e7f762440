"""What is tampered with, rolled back, of a later version, or forged is refused by name: exit code,
step, and not one byte changed at the target or in the store.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import record
from savepoint.store import config, registry, savepoints
from savepoint.store.keys import keyring
from tests.fault.scene import remove
from tests.resurrect import forge
from tests.resurrect.refusing import EVIL, everything, loaded, paths_of, refused, saved, snapshot_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.store.layout import InstancePaths
    from tests.cli.scene import Scene

__all__ = ["saved"]


# Asset → what makes it, exit code, and what the refusal names.


def flip(path: Path, at: int = -20) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(bytes(data))


def pack(paths: InstancePaths) -> Path:
    document = savepoints.open_snapshot(paths, savepoints.records(paths).saves[-1]).document
    (first, *_) = savepoints.files(paths.store, document)
    return Path(paths.store.pack(first.segments[-1].pack))


def change_record(paths: InstancePaths) -> None:
    index = Path(paths.index_file)
    index.write_bytes(index.read_bytes().replace(b'"trigger":"manual"', b'"trigger":"manuaL"', 1))


def cut_record(paths: InstancePaths) -> None:
    index = Path(paths.index_file)
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join([lines[0], *lines[2:]]))


def roll_back(paths: InstancePaths) -> None:
    index = Path(paths.index_file)
    index.write_bytes(b"".join(index.read_bytes().splitlines(keepends=True)[:-1]))


def another_key(paths: InstancePaths) -> None:
    """An index of the same name, wholly good, under another key."""
    seed = bytes(range(32))
    lines, prev = [], "0" * 64
    for one in savepoints.records(paths).all:
        made = record.make(
            one.kind,
            seq=one.seq,
            prev=prev,
            timestamp=one.timestamp,
            instance=one.instance,
            seed=seed,
            body=one.body,
        )
        prev = made.hash
        lines.append(made.line + b"\n")
    Path(paths.index_file).write_bytes(b"".join(lines))


def lose_commit(paths: InstancePaths) -> None:
    """The objects of git are gone, its ref is not."""
    for name in ("pack",):
        remove(Path(paths.store.repository, "objects", name))


def later_snapshot(paths: InstancePaths) -> None:
    path = snapshot_of(paths)
    path.write_bytes(path.read_bytes().replace(b'{"format":1', b'{"format":2', 1))
    resign_index(paths, path)


def resign_index(paths: InstancePaths, path: Path) -> None:
    """The last record names the file as it is now, signed by the real key."""
    *before, last = savepoints.records(paths).all
    body = {**last.body, "snapshot_hash": "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()}
    made = record.make(
        last.kind,
        seq=last.seq,
        prev=last.prev,
        timestamp=last.timestamp,
        instance=last.instance,
        seed=keyring.authority(paths),
        body=body,
    )
    Path(paths.index_file).write_bytes(b"".join(r.line + b"\n" for r in [*before, made]))
    head = Path(paths.trusted)
    head.write_bytes(head.read_bytes().replace(last.hash.encode(), made.hash.encode()))
    remove(paths.store.repository)


def later_record(paths: InstancePaths) -> None:
    index = Path(paths.index_file)
    lines = index.read_bytes().splitlines(keepends=True)
    index.write_bytes(b"".join([*lines[:-1], lines[-1].replace(b'{"v":1', b'{"v":2', 1)]))
    remove(paths.store.repository)


BROKEN: dict[str, tuple[Callable[[InstancePaths], object], int, str]] = {
    "snapshot changed": (
        lambda p: flip(snapshot_of(p)),
        20,
        "step 4, Load Consciousness: VERIFY-5",
    ),
    "snapshot missing": (lambda p: snapshot_of(p).unlink(), 20, "step 4"),
    "snapshot empty": (lambda p: snapshot_of(p).write_bytes(b""), 20, "step 4"),
    "pack changed": (lambda p: flip(pack(p)), 20, "VERIFY-7"),
    "pack missing": (lambda p: pack(p).unlink(), 20, "step 4"),
    "record changed": (change_record, 20, "step 1, Bootstrap: VERIFY-"),
    "record cut out": (cut_record, 20, "step 1, Bootstrap"),
    "index rolled back": (roll_back, 22, "step 1, Bootstrap: VERIFY-4"),
    "index of another key": (another_key, 20, "step 1, Bootstrap: VERIFY-3"),
    "commit lost": (lose_commit, 20, "step 3, Fetch from GitHub"),
    "snapshot of a later format": (later_snapshot, 23, "step 4"),
    "record of a later version": (later_record, 23, "step 1, Bootstrap: VERIFY-1"),
}


@pytest.mark.parametrize("asset", BROKEN)
def test_what_is_broken_is_refused_by_step(saved: Scene, asset: str) -> None:
    damage, code, named = BROKEN[asset]
    damage(paths_of(saved))
    selector = ("latest",) if code != 22 else ()
    ran = refused(saved, *selector)
    assert (ran.code, named in ran.err) == (code, True), ran.err
    assert json.loads(saved("resurrect", "--json").out)["error"]["code"] == code


def changed(*entries: tuple[object, str]) -> Callable[[InstancePaths], None]:
    def make(paths: InstancePaths) -> None:
        segment = forge.store_bytes(paths, b"evil\n")
        files = [forge.change_of(segment, path, mode) for path, mode in entries]
        forge.savepoint(paths, lambda d: d["git_state"]["changes"].update({"files": files}))

    return make


def companion(name: str) -> Callable[[InstancePaths], None]:
    def make(paths: InstancePaths) -> None:
        entry = forge.file_of(forge.store_bytes(paths, b"evil\n"), name)
        forge.savepoint(
            paths, lambda document: document["conversation_history"].update({"companions": [entry]})
        )

    return make


def lying(paths: InstancePaths) -> None:
    entry = forge.loaded_of(forge.store_bytes(paths, b"evil\n"))
    entry["size"] = 10**15
    forge.savepoint(paths, lambda document: document["loaded_files"].update({"big": entry}))


def bomb(paths: InstancePaths) -> None:
    segment = forge.store_bytes(paths, b"small\n")
    entry = forge.loaded_of(segment)
    forge.savepoint(paths, lambda document: document["loaded_files"].update({"bomb": entry}))
    forge.bomb(paths, segment, bytes(64 << 20))


FORGED: dict[str, tuple[Callable[[InstancePaths], None], str]] = {
    "loaded file ../": (loaded("../evil"), "step 4"),
    "loaded file a/../../evil": (loaded("a/../../evil"), "step 4"),
    "loaded file ./": (loaded("./evil"), "step 4"),
    "loaded file with an empty part": (loaded("a//evil"), "step 4"),
    "loaded file with NUL": (loaded("evil\0.txt"), "step 4"),
    "loaded file without a name": (loaded(""), "step 4"),
    "loaded file with a name too long": (loaded("x" * 300), "step 4"),
    "change ../": (changed(("../evil", "100644")), "step 4"),
    "change absolute": (changed((EVIL, "100644")), "step 4"),
    "change twice": (changed(("a", "100644"), ("a", "100644")), "one name"),
    "change both file and folder": (changed(("a", "100644"), ("a/b", "100644")), "one name"),
    "change that is a submodule": (changed(("a", "160000")), "mode 160000"),
    "change that is a device": (changed(("a", "060000")), "mode 060000"),
    "companion ../": (companion("../../../evil"), "step 4"),
    "companion absolute": (companion(EVIL), "step 4"),
    "companion with NUL": (companion("a\0b"), "step 4"),
    "size that is not its segments'": (lying, "VERIFY-8"),
    "pack that is a bomb": (bomb, "VERIFY-7"),
}


@pytest.mark.parametrize("asset", FORGED)
def test_what_no_save_makes_is_refused(saved: Scene, asset: str) -> None:
    make, named = FORGED[asset]
    make(paths_of(saved))
    ran = refused(saved)
    assert (ran.code, named in ran.err) == (20, True), ran.err
    assert not Path(EVIL).exists()


@pytest.mark.parametrize(
    "name",
    [
        ".git/config",
        "sub/.git/hooks/post-checkout",
        ".GIT/config",
        ".g\u200cit/config",
        "GIT~1/config",
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".Claude/hooks/x.sh",
        ".mcp.json",
    ],
)
def test_what_git_or_an_agent_would_run_is_left_out(saved: Scene, name: str) -> None:
    loaded(name)(paths_of(saved))
    before = {path for path in everything(saved) if str(saved.project) in path}
    ran = saved.good("resurrect", "--apply", "--json")
    assert [one["path"] for one in ran.json["left_out"]] == [name]
    assert not Path(ran.json["folder"], "files", name).exists()
    assert {path for path in everything(saved) if str(saved.project) in path} == before
    assert "is not brought back" in ran.err


def test_hostile_text_steers_no_terminal(saved: Scene) -> None:
    loaded(".mcp.json")(paths_of(saved))
    name = "\x1b]0;owned\x07\u202e.claude/settings.json"
    loaded(f"sub\x1b[2J/.git/{name}")(paths_of(saved))
    ran = saved("resurrect", "--instance", "Gabriel #215")
    assert ran.code == 0, ran.err
    shown = ran.text + ran.err
    assert not [c for c in shown if c != "\n" and not c.isprintable()]


def test_a_file_that_a_terminal_would_obey_comes_back_by_its_name(saved: Scene) -> None:
    name = "line\nbreak \x1b[31m"
    loaded(name)(paths_of(saved))
    back = saved.good("resurrect", "--json").json
    assert Path(back["folder"], "files", name).read_bytes() == b"evil\n"


def test_a_rolled_back_remote_is_refused(saved: Scene, tmp_path: Path) -> None:
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True, timeout=180)
    saved.good("config", "remote", str(remote))
    saved.good("sync")
    ref = remote / f"refs/heads/savepoints/{paths_of(saved).slug}"
    git = ["git", "--git-dir", str(remote), "rev-parse", f"{ref.relative_to(remote)}~1"]
    older = subprocess.run(git, check=True, capture_output=True, timeout=180).stdout
    ref.write_bytes(older)
    ran = refused(saved)
    assert (ran.code, "step 3, Fetch from GitHub: VERIFY-1" in ran.err) == (22, True)


def test_a_remote_that_is_gone_needs_a_word(saved: Scene, tmp_path: Path) -> None:
    saved.good("config", "remote", str(tmp_path / "nowhere.git"))
    ran = refused(saved)
    assert (ran.code, "--allow-unverified" in ran.err) == (21, True)
    back = saved.good("resurrect", "--allow-unverified", "--json").json
    assert [one["status"] for one in back["steps"]][2] == "UNVERIFIABLE"
    assert set(back["unverified"]) == {"VERIFY-14", "VERIFY-15", "VERIFY-16"}


def test_a_rolled_back_account_is_refused(saved: Scene) -> None:
    store = registry.find(saved.home, str(saved.project))
    config.load(store)._replace(ledger="embedded").save(store)
    saved.good("sync", "--wait", "--timeout", "50")
    older = Path(store.ledger_db).read_bytes()
    saved.say("later")
    saved.created()
    saved.good("sync", "--wait", "--timeout", "50")
    Path(store.ledger_db).write_bytes(older)
    ran = saved("resurrect")
    assert (ran.code, "step 2, Query Solana" in ran.err) == (22, True), ran.err


def test_a_check_that_did_not_hold_when_it_was_saved_stops_step_5(saved: Scene) -> None:
    """The document of the successor is damaged, and it saves on: that is in what it saves."""
    saved.good("resurrect")
    store = registry.find(saved.home, str(saved.project))
    born = savepoints.instance_named(store, "Gabriel #216")
    document = Path(born.bootstrap).read_bytes()
    Path(born.bootstrap).write_bytes(document.replace(b"#215", b"#214"))
    saved.created("--transcript", str(saved.transcript))
    made = savepoints.records(paths_of(saved)).saves[-1]
    assert made.seq == 4  # the session is #215's: so it is saved there
    other = saved.say("x", session="99999999-2222-4333-8444-555555555555")
    saved.created("--transcript", str(other))
    Path(born.bootstrap).write_bytes(document)
    remove(store.repository)
    ran = refused(saved)
    assert (ran.code, "step 5, Verify Integrity" in ran.err) == (21, True), ran.err
    assert "modulo_zero" in ran.err
