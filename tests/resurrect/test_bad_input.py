"""What is tampered with, rolled back, of a later version, or forged is refused by name: exit code,
step, and not one byte changed at the target or in the store.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import record
from savepoint.resurrect.apply import Apply
from savepoint.store import config, registry, savepoints
from savepoint.store.keys import keyring
from tests.cli.scene import COMMAND, without_privileges
from tests.fault.scene import remove
from tests.resurrect import forge
from tests.resurrect.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.store.layout import InstancePaths
    from tests.cli.scene import Ran, Scene


@pytest.fixture
def saved(cli: Scene) -> Scene:
    """Two savepoints of a session with a loaded file."""
    (cli.project / "a.py").write_text("one\n")
    cli.transcript.unlink()
    cli.write(Talk().say(1, "T").data)
    cli.read_file("a.py")
    cli.created()
    cli.say("more")
    cli.created()
    return cli


EVIL = os.path.join(tempfile.gettempdir(), "evil")  # where a name leads that is followed


def paths_of(scene: Scene) -> InstancePaths:
    store = registry.find(scene.home, str(scene.project))
    return savepoints.instance_named(store, "Gabriel #215")


def snapshot_of(paths: InstancePaths) -> Path:
    return Path(paths.path, savepoints.records(paths).saves[-1].snapshot_file)


def everything(scene: Scene) -> dict[str, str]:
    """Path → SHA-256 of all that a resurrection could touch, but locks and git's own."""
    tops = [scene.home.path, os.environ["CLAUDE_CONFIG_DIR"], str(scene.project)]
    files = [path for top in tops for path in Path(top).rglob("*") if path.is_file()]
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not path.name.endswith(".lock") and "repo.git" not in path.parts
    }


def refused(scene: Scene, *arguments: str) -> Ran:
    """Resurrect: it must be refused, and nothing be changed or left anywhere."""
    before = everything(scene)
    ran = scene("resurrect", *arguments)
    assert ran.code != 0
    assert everything(scene) == before
    assert [path for path in Path(scene.home.path).rglob("*.tmp-*") if path.is_dir()] == []
    return ran


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


def loaded(name: str) -> Callable[[InstancePaths], None]:
    def make(paths: InstancePaths) -> None:
        entry = forge.loaded_of(forge.store_bytes(paths, b"evil\n"))
        forge.savepoint(paths, lambda document: document["loaded_files"].update({name: entry}))

    return make


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


# the target


def test_a_link_in_the_project_leads_nowhere(saved: Scene, tmp_path: Path) -> None:
    """hackmyagent#318: the path was tested, the copy followed the link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    loaded("src/a.py")(paths_of(saved))
    (saved.project / "src").symlink_to(outside)
    for force in ((), ("--force",)):
        ran = saved("resurrect", "--apply", *force, "--instance", "Gabriel #215")
        assert ran.code != 0
        assert list(outside.iterdir()) == []


def test_a_link_in_the_place_of_a_file_is_not_followed(saved: Scene, tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.write_text("mine")
    (saved.project / "a.py").unlink()
    (saved.project / "a.py").symlink_to(outside)
    assert saved("resurrect", "--only", "files", "--apply").code == 1
    assert saved("resurrect", "--only", "files", "--apply", "--force").code != 0
    assert outside.read_text() == "mine"


def test_a_link_in_the_agents_folder_is_not_followed(saved: Scene, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    saved.transcript.parent.rename(outside)
    saved.transcript.parent.symlink_to(outside)
    before = sorted(os.listdir(outside))
    ran = saved("resurrect")
    assert (ran.code, "is a link" in ran.err) == (1, True)
    assert sorted(os.listdir(outside)) == before


def test_links_that_appear_meanwhile_lead_nowhere(saved: Scene, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    loaded("src/a.py")(paths_of(saved))
    back = saved.good("resurrect", "--only", "files", "--json").json
    source, place = saved.project / "src", saved.project / "other"
    ended = threading.Event()

    def toggle() -> None:
        while not ended.is_set():
            for step in (
                lambda: source.rename(place),
                lambda: source.symlink_to(outside),
                source.unlink,
                lambda: place.rename(source),
            ):
                with suppress(OSError):  # the other one was faster
                    step()
            shutil.rmtree(place, ignore_errors=True)

    toggler = threading.Thread(target=toggle)
    toggler.start()
    try:
        for _ in range(300):
            over = Apply(back["folder"], "files", str(saved.project), force=True)
            try:
                over.run()
            except Exception as failure:  # noqa: BLE001  # whatever it meets, it must not follow
                assert type(failure).__name__ == "DiskError"  # noqa: PT017
    finally:
        ended.set()
        toggler.join()
    assert list(outside.iterdir()) == []


def test_a_folder_that_exists_is_not_written_into(saved: Scene, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    assert refused(saved, "-o", str(there)).code == 1
    assert refused(saved, "-o", str(tmp_path / "no/where")).code == 2
    assert refused(saved, "-o", str(Path(saved.home.path, "stores/x"))).code == 2


def test_arguments_that_do_not_go_together(saved: Scene) -> None:
    assert refused(saved, "--force").code == 2
    assert refused(saved, "--apply", "--only", "state").code == 2
    assert refused(saved, "1", "--session", "x").code == 2
    assert refused(saved, "--only", "nothing").code == 2
    assert refused(saved, "99").code == 1


def test_no_key_no_successor_but_parts(saved: Scene) -> None:
    paths = paths_of(saved)
    Path(paths.authority).unlink()
    assert refused(saved).code == 12
    assert saved.good("resurrect", "--only", "files", "--json").json["instance"] is None


def _documents(scene: Scene) -> list[Any]:
    return [one.name for one in Path(scene.home.path).rglob("BOOTSTRAP_VERIFICATION.json")]


def test_a_read_only_target_is_40_and_nothing_is_born(saved: Scene, tmp_path: Path) -> None:
    saved.transcript.parent.chmod(0o500)
    try:
        ran = without_privileges("resurrect", cwd=saved.project)
    finally:
        saved.transcript.parent.chmod(0o700)
    assert ran.returncode == 40, ran.stderr
    assert _documents(saved) == []


def test_no_space_is_40_and_nothing_is_born(saved: Scene) -> None:
    """A file may not grow beyond a limit: the kernel's answer is that of a full disk."""
    saved.write(b"".join(Talk().user("x" * 5000).data for _ in range(40)))
    saved.created()
    code = "import resource,os,sys; resource.setrlimit(resource.RLIMIT_FSIZE,(100000,100000)); "
    code += "os.execv(sys.argv[1], sys.argv[1:])"
    before = everything(saved)
    ran = subprocess.run(
        [sys.executable, "-c", code, *COMMAND, "resurrect"],
        cwd=saved.project,
        capture_output=True,
        check=False,
        timeout=180,
    )
    assert ran.returncode == 40, ran.stderr
    assert everything(saved) == before
