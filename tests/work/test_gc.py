"""`gc`, as a person runs it: what nothing needs any more goes, and only that."""

from __future__ import annotations

import os
import resource
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.capture.capture import capture
from savepoint.core import limits
from savepoint.core.errors import BusyError
from savepoint.store import savepoints
from savepoint.store.fsck import garbage
from savepoint.store.locks import Lock
from savepoint.store.session import pending
from tests.work.scene import around, created

if TYPE_CHECKING:
    from tests.work.scene import Working

pytestmark = pytest.mark.usefixtures("no_worker", "no_wait")


def _orphan_pack(work: Working, age: float) -> Path:
    path = Path(work.store.pack("ab" * 32))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * 5000)
    _age(path, age)
    return path


def _age(path: Path, seconds: float) -> None:
    moment = time.time() - seconds
    os.utime(path, (moment, moment), follow_symlinks=False)


_OLD = limits.GC_AGE_SECONDS + 60


def _all_files(work: Working) -> set[Path]:
    return {path for path in Path(work.store.path).rglob("*") if path.is_file()}


def _make_all_old(work: Working) -> None:
    for path in Path(work.store.path).rglob("*"):
        if "repo.git" not in path.parts:
            _age(path, _OLD)


def test_gc_says_first_and_removes_with_yes(work: Working) -> None:
    created(work)
    pack = _orphan_pack(work, _OLD)
    snapshot = Path(work.paths.snapshots, "snapshot_2026-01-01T00-00-00Z.json")
    snapshot.write_bytes(b"{}")
    temporary = Path(work.store.objects, ".tmp-0123456789abcdef")
    temporary.write_bytes(b"y" * 300)
    folder = Path(work.store.scratch, ".tmp-fedcba9876543210")
    folder.mkdir()
    (folder / "index").write_bytes(b"z" * 50)
    _make_all_old(work)
    kept = _all_files(work) - {pack, snapshot, temporary, folder / "index"}
    ran = work.scene.good("gc")
    assert "2 temporary files, 1 pack, 1 snapshot can go, 5.4 kB" in ran.text
    assert pack.exists()
    told = work.scene.good("gc", "--yes", "--json").json
    assert (told["removed"], told["bytes"]) == (True, 5352)
    locks = {Path(work.store.lock), Path(work.store.saving)}
    assert _all_files(work) - locks == kept - locks
    assert not folder.exists()
    assert work.scene.good("gc").text.startswith("nothing can go")
    assert work.scene("verify", "--all").code in {0, 3}


def test_gc_takes_a_repository_that_a_repair_has_replaced(
    work: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each repair of a damaged git folder left a second one for ever."""
    created(work)
    damaged = Path(work.store.repository + ".damaged-0123456789abcdef")
    shutil.copytree(work.store.repository, damaged)
    assert "damaged" not in work.scene.good("gc").text, "it was set aside just now"
    monkeypatch.setattr(limits, "GC_AGE_SECONDS", -1)
    assert "1 damaged git folder can go" in work.scene.good("gc").text
    assert damaged.is_dir()
    (found,) = work.scene.good("gc", "--yes", "--json").json["orphans"]
    assert (found["what"], found["path"]) == ("damaged git folder", str(damaged))
    assert not damaged.exists()
    assert work.scene("verify", "--all").code in {0, 3}


def test_gc_takes_git_packs_that_killed_commits_left(work: Working) -> None:
    """anomalyco/opencode#14811. One is whole, and was not yet led to when its run was killed."""
    created(work)
    packs = Path(work.store.repository, "objects/pack")
    before = set(packs.iterdir())
    stray = b"blob\ndata 5\nhello\nblob\ndata 5\nworld\ndone\n"
    repo = around().repository(work.store)
    repo.run("fast-import", "--quiet", "--done", stdin=stray)
    left = set(packs.iterdir()) - before
    (pack,) = (one.name for one in left if one.suffix == ".pack")
    assert work.scene.good("gc", "--json").json["git"] == [], "it may be in the making"
    for path in packs.iterdir():
        _age(path, _OLD)
    assert "1 git leftover can go" in work.scene.good("gc").text
    assert work.scene.good("gc", "--yes", "--json").json["git"] == [pack]
    assert set(packs.iterdir()) == before
    assert work.scene("verify", "--all").code in {0, 3}


def test_gc_leaves_git_packs_from_which_a_ref_may_be_put_back(work: Working) -> None:
    created(work)
    packs = Path(work.store.repository, "objects/pack")
    ref = Path(work.store.repository, "refs/heads/savepoints", work.paths.slug)
    for path in packs.iterdir():
        _age(path, _OLD)
    ref.unlink()
    before = set(packs.iterdir())
    assert work.scene.good("gc", "--yes", "--json").json["git"] == []
    assert set(packs.iterdir()) == before
    work.scene.good("fsck", "--repair")
    assert work.scene("verify", "--all").code in {0, 3}


def test_what_is_young_stays(work: Working) -> None:
    created(work)
    pack = _orphan_pack(work, limits.GC_AGE_SECONDS - 60)
    assert work.scene.good("gc", "--yes", "--json").json["orphans"] == []
    assert pack.exists()


def test_what_a_draft_names_stays(work: Working) -> None:
    """Its key is missing: the savepoint waits for a signature, and its packs are named by nothing
    else.
    """
    key = Path(work.paths.authority)
    secret = key.read_bytes()
    key.unlink()
    assert work.scene("create").code == 12
    assert pending.every_draft(work.store)
    _make_all_old(work)
    before = _all_files(work)
    assert work.scene.good("gc", "--yes", "--json").json["orphans"] == []
    assert before <= _all_files(work)
    key.write_bytes(secret)
    key.chmod(0o600)
    created(work)
    assert work.scene("verify", "--all").code in {0, 3}


def test_what_an_index_that_was_set_aside_names_stays(work: Working) -> None:
    seq = created(work)
    line = savepoints.find(work.paths, str(seq)).line
    Path(work.paths.forks).mkdir()
    Path(work.paths.forks, "precompact-savepoint.0123456789abcdef.jsonl").write_bytes(line + b"\n")
    index = Path(work.paths.index_file)
    index.write_bytes(index.read_bytes().removesuffix(line + b"\n"))
    _make_all_old(work)
    assert work.scene.good("gc", "--yes", "--json").json["orphans"] == []


def test_where_a_snapshot_cannot_be_read_no_pack_goes(work: Working) -> None:
    seq = created(work)
    pack = _orphan_pack(work, _OLD)
    one = savepoints.find(work.paths, str(seq))
    Path(work.paths.path, one.snapshot_file).unlink()
    _make_all_old(work)
    ran = work.scene.good("gc", "--yes")
    assert pack.exists()
    assert "packs and snapshots stay" in ran.err


def test_gc_waits_for_a_save_and_gives_up(work: Working, monkeypatch: pytest.MonkeyPatch) -> None:
    created(work)
    pack = _orphan_pack(work, _OLD)
    monkeypatch.setattr(limits, "LOCK_WAIT_SECONDS", 0.2)
    soon = time.monotonic()
    with Lock(work.store.saving, soon, shared=True), Lock(work.store.saving, soon, shared=True):
        assert work.scene("gc", "--yes").code == 11
    assert pack.exists()


def test_a_save_of_a_session_that_had_none_is_waited_for_too(
    work: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only sessions whose lock file was there when gc began were."""
    monkeypatch.setattr(limits, "LOCK_WAIT_SECONDS", 0.2)
    seen = []

    def capturing(*given: Any) -> Any:  # noqa: ANN401  # passed on
        with pytest.raises(BusyError):
            garbage.remove(work.store, time.time())
        seen.append(given)
        return capture(*given)

    monkeypatch.setattr("savepoint.save.capture", capturing)
    created(work)
    assert len(seen) == 1


def test_a_save_waits_for_gc(work: Working, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCK_WAIT_SECONDS", 0.2)
    work.scene.say("more")
    with Lock(work.store.saving, time.monotonic()):
        assert work.scene("create").code == 11
    work.scene.good("create")


def test_gc_after_many_sessions_needs_few_descriptors(work: Working) -> None:
    """One was opened for each session that there ever was: macOS gives 256."""
    created(work)
    pack = _orphan_pack(work, _OLD)
    for number in range(200):
        Path(work.store.session_lock(f"11111111-2222-4333-8444-{number:012}")).touch()
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/dev/fd")))
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 100, before[1]))
    try:
        work.scene.good("gc", "--yes")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert not pack.exists()


def test_leftovers_of_git_go_too(work: Working) -> None:
    created(work)
    left = Path(work.store.repository, "objects/pack/tmp_pack_AbCdEf")
    left.write_bytes(b"x" * 100)
    _age(left, _OLD)
    told = work.scene.good("gc", "--yes", "--json").json
    assert told["git"] == ["objects/pack/tmp_pack_AbCdEf"]
    assert not left.exists()
