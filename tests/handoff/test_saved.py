"""Threads come back out of a savepoint: on a new machine, where the log is damaged, or gone."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.capture import threads as capturing
from savepoint.core.errors import HandoffError, MalformedError, RolledBackError, TamperedError
from savepoint.core.handoff_log import Author
from savepoint.store import savepoints, trusted
from savepoint.store.layout import THREADS
from succession.handoff import log, running, saved
from tests.cli.conftest import bare, cli, project
from tests.cli.scene import SESSION, record
from tests.resurrect.test_bootstrap import Machine, cheap_scrypt, machine

if TYPE_CHECKING:
    from tests.cli.scene import Scene
    from tests.handoff.threads import Threads

__all__ = ["bare", "cheap_scrypt", "cli", "machine", "project"]


def memory(threads: Threads) -> bytes:
    """As a savepoint has it."""
    from savepoint.capture import memory as capture

    data = capture.read(threads.store.path, float("inf"), THREADS).data
    assert data is not None
    return data


def owing(scene: Scene) -> Path:
    """A thread that owes something, a savepoint that has it, and one more line behind that."""
    scene.good("handoff", "thread", "Locks", "--session", SESSION)
    scene.good("handoff", "item", "add", "release the lock")
    scene.say("more")
    scene.created()
    scene.good("handoff", "item", "add", "tell the owner")
    return Path(log.path_of(scene.paths.store))


def as_hinted(scene: Scene, err: str) -> str:
    """Runs the two commands of a hint; what the second says."""
    hint = next(line for line in err.splitlines() if "hint:" in line)
    first, second = (one.split()[1:] for one in hint.split("`")[1::2])
    assert first[0] == "resurrect"
    assert second[:2] == ["handoff", "import"]
    scene.good(*first)
    return scene.good(*second).text


def test_a_machine_that_lost_everything_knows_what_threads_owe(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = machine.scene
    owing(scene)
    scene.good("handoff", "item", "close", "ITEM-2", "--evidence", "told")
    scene.good("resurrect")
    scene.good("handoff", "item", "add", "by the successor's key", "--thread", "1")
    scene.say("on and on")
    scene.created()
    machine.back_up()
    machine.lose()
    other = tmp_path / "other"
    other.mkdir()
    back = machine.bootstrap("--project", str(other), "--json").json
    assert [one["item"] for one in back["open_items"]] == ["ITEM-1", "ITEM-3"]
    told = scene.good("handoff", "status", "-C", str(other)).text
    assert "ITEM-3 by the successor's key" in told
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", back["session"]["id"])
    added = scene.good("handoff", "item", "add", "here", "-C", str(other), "--json").json
    assert added == {"item": "ITEM-4"}


def test_a_handoff_is_accepted_on_another_machine(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = machine.scene
    scene.good("handoff", "thread", "Locks", "--session", SESSION)
    scene.good("handoff", "offer", "open", "write the docs")
    ended = {"content": [{"type": "text", "text": "done."}]}
    scene.write(record(scene.project, SESSION, ended, kind="assistant"))
    running.keep(scene.paths.store, SESSION, b'{"background_tasks":[],"session_crons":[]}')
    asked = scene.good("handoff", "gather", "--json").json["unresolved"]
    if asked:
        scene.good("handoff", "item", "map", "OFFER-1", *(one["id"] for one in asked))
    scene.good("handoff", "create")
    scene.created()
    machine.back_up()
    machine.lose()
    back = machine.bootstrap("--json").json
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", back["session"]["id"])
    done = scene.good("handoff", "accept", "--json").json
    assert [one["item"] for one in done["taken"]] == ["OFFER-1"]
    assert done["may_start_new_work"]


def test_an_altered_log_comes_back_as_its_hint_says(cli: Scene) -> None:
    file = owing(cli)
    file.write_bytes(file.read_bytes().replace(b"release", b"destroy"))
    ran = cli("handoff", "status")
    assert ran.code == 20
    told = as_hinted(cli, ran.err)
    assert f"set aside: {file}.damaged-" in told
    assert "release the lock" in cli.good("handoff", "status").text
    cli.good("handoff", "item", "add", "again")
    (aside,) = file.parent.glob("log.jsonl.damaged-*")
    assert b"destroy" in aside.read_bytes()


@pytest.mark.parametrize("kind", ["file", "folder", "fifo"])
def test_a_log_that_is_gone_comes_back(cli: Scene, kind: str) -> None:
    file = owing(cli)
    if kind == "folder":
        shutil.rmtree(file.parent)
    else:
        file.unlink()
    if kind == "fifo":
        os.mkfifo(file)
    ran = cli("handoff", "item", "add", "x")
    assert ran.code in (20, 22)
    assert "`savepoint handoff import back/memory/handoff" in cli("doctor").text
    as_hinted(cli, ran.err)
    assert "release the lock" in cli.good("handoff", "status").text
    cli.say("on")
    assert cli.good("create").err == ""  # what was set aside is not missed


def test_a_file_that_never_was_a_memory_is_wrong_use(cli: Scene, tmp_path: Path) -> None:
    """A folder, or an empty file, was told TAMPERED, with a hint to repair the store."""
    empty, other = tmp_path / "empty", tmp_path / "other.json"
    empty.touch()
    other.write_text('{"type":"PRECOMPACT_SAVEPOINT"}\n')
    cli.created()
    for given in (tmp_path, empty, other):
        ran = cli("handoff", "import", str(given))
        assert ran.code == 2, ran.err
        assert "--only memory` writes one" in ran.err
        assert "fsck" not in ran.err


def test_what_was_seen_and_is_not_there_takes_force_and_is_told(cli: Scene) -> None:
    file = owing(cli)
    file.unlink()
    hint = cli("handoff", "status").err
    cli.good("resurrect", "--only", "memory", "-o", "back")
    ran = cli("handoff", "import", "back/memory/handoff")
    assert ran.code == 22
    assert "record 3 was seen here" in ran.err
    assert "--force" in hint
    ran = cli("handoff", "import", "back/memory/handoff", "--force")
    assert ran.code == 0
    assert "lost: records 3 to 3" in ran.err


def test_a_save_of_a_damaged_log_says_so(cli: Scene) -> None:
    file = owing(cli)
    good = file.read_bytes()
    for damaged in (good.replace(b"release", b"destroy"), good.replace(b"owner", b"money"), None):
        file.unlink(missing_ok=True)
        if damaged is not None:
            file.write_bytes(damaged)
        cli.say("on")
        made = cli.good("create")
        assert "something could not be saved" in made.err
        omitted = cli.good("show", "latest").text
        assert str(file) in omitted
    file.write_bytes(good + b'{"v":1,"seq"')
    cli.say("on")
    assert cli.good("create").err == ""
    assert capturing.damage(cli.paths.store) == ""
    shutil.rmtree(file.parent)
    cli.say("on")
    assert "something could not be saved" in cli.good("create").err


def test_the_savepoint_of_the_hint_has_the_log_whole(cli: Scene) -> None:
    file = owing(cli)
    whole = savepoints.find(cli.paths, "latest").seq
    file.write_bytes(file.read_bytes().replace(b"release", b"destroy"))
    cli.say("on")
    cli.created()
    assert f"`savepoint resurrect {whole} --only memory" in cli("handoff", "status").err


def test_a_log_that_holds_is_not_replaced(threads: Threads) -> None:
    thread = threads.open()
    old = memory(threads)
    threads.owe(thread)
    before = threads.file.read_bytes()
    done = saved.put_back(threads.store, old, force=True)
    assert (done.records, done.aside, done.lost) == (2, (), None)
    assert threads.file.read_bytes() == before


def test_another_history_is_refused(threads: Threads) -> None:
    threads.open()
    ours = memory(threads)
    shutil.rmtree(threads.file.parent)
    Path(threads.store.instance(THREADS).trusted).unlink()
    threads.open("y")
    with pytest.raises(HandoffError, match="another"):
        saved.put_back(threads.store, ours, force=True)
    threads.file.unlink()
    with pytest.raises(TamperedError, match="another there"):
        saved.put_back(threads.store, ours, force=True)


def test_who_signed_must_belong_to_the_store(threads: Threads) -> None:
    threads.author = Author("Stranger #1", bytes(range(32)))
    threads.open()
    data = memory(threads)
    threads.file.unlink()
    Path(threads.store.instance(THREADS).trusted).unlink()
    with pytest.raises(TamperedError, match="no instance of this store"):
        saved.put_back(threads.store, data)


def test_files_of_a_handoff_come_back_beside_a_log_that_holds(threads: Threads) -> None:
    made = threads.settled(threads.open())
    data = memory(threads)
    receipt, page = Path(made.folder, "receipt.json"), Path(made.folder, "handoff.md")
    good = receipt.read_bytes()
    receipt.write_bytes(b"{}\n")
    page.unlink()
    done = saved.put_back(threads.store, data)
    assert receipt.read_bytes() == good
    assert page.exists()
    (aside,) = done.aside
    assert Path(aside).read_bytes() == b"{}\n"


@pytest.mark.parametrize("data", [b"", b"x", b"\n", b'\n{"v":1,"files":[]}\n'])
def test_what_is_no_memory_changes_nothing(threads: Threads, data: bytes) -> None:
    with pytest.raises(MalformedError):
        saved.put_back(threads.store, data)
    assert not threads.file.exists()


def test_an_altered_memory_is_refused(threads: Threads) -> None:
    threads.owe(threads.open(), text="release")
    data = memory(threads).replace(b"release", b"destroy")
    threads.file.unlink()
    with pytest.raises(MalformedError):
        saved.put_back(threads.store, data, force=True)
    with pytest.raises(RolledBackError):
        log.read(threads.store)
    head = trusted.load(threads.store.instance(THREADS))
    assert head is not None
    assert head.seq == 2


def _rolled_back(file: Path, head: Path, kept: int) -> None:
    """Put an older log in place, of so many lines, and remove what has seen the newer one."""
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:kept]))
    head.unlink()


@pytest.mark.parametrize("goes_on", [False, True])
def test_an_older_log_whose_head_was_removed_is_told_until_a_savepoint_was_asked(
    cli: Scene, *, goes_on: bool
) -> None:
    """The next line wrote a head that counted, and the lines that were cut off were forgotten."""
    file, head = owing(cli), Path(cli.paths.store.instance(THREADS).trusted)
    _rolled_back(file, head, 2)
    if goes_on:
        cli.good("handoff", "item", "add", "again")
    ran = cli("fsck", "--json")
    assert ran.code == 21
    (told,) = [one for one in ran.json["findings"] if str(head) in one["detail"]]
    assert "handoff import" in told["hint"]
    assert str(head) in cli("doctor").text
    cli.good("resurrect", "--only", "memory", "-o", "back")
    cli.good("handoff", "import", "back/memory/handoff")
    assert cli("fsck").code == 0


def test_an_older_log_that_lacks_what_a_savepoint_has_does_not_count_again(cli: Scene) -> None:
    file, head = owing(cli), Path(cli.paths.store.instance(THREADS).trusted)
    _rolled_back(file, head, 1)
    cli.good("handoff", "item", "add", "another history")
    cli.good("resurrect", "--only", "memory", "-o", "back")
    assert "is another" in cli("handoff", "import", "back/memory/handoff").err
    assert cli("fsck").code == 21
