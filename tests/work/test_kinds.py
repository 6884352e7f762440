"""Each kind of job: what is owed, that doing it pays it, and what is not owed."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits, snapshot
from savepoint.core.errors import (
    CommitError,
    DeadlineError,
    DiskError,
    NoStoreError,
    PushRefusedError,
    RolledBackError,
)
from savepoint.gitlayer import packing
from savepoint.store import config, savepoints
from savepoint.store.locks import Lock
from savepoint.store.session import sessions
from savepoint.work.kinds.audit import Audit
from savepoint.work.kinds.commit import Commit
from savepoint.work.kinds.pending import Pending
from savepoint.work.kinds.push import Push
from savepoint.work.kinds.repack import Repack
from tests.cli.scene import SESSION
from tests.work.scene import around, failures, owed, work_once

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.store.layout import Store
    from tests.gitlayer.remotes import Pushing
    from tests.work.scene import Working


def _push() -> Push:
    return Push(lambda _done, _total: None)


def _soon() -> float:
    return time.monotonic() + 120


# commit


def test_records_that_git_lacks_are_owed_and_committed(it: Pushing) -> None:
    it.saved(1)
    first, second = it.layer.save(b"two\n"), it.layer.save(b"three\n")
    (job,) = Commit().owed(it.layer.paths.store, around())
    assert (job.kind, job.key, job.seq) == ("commit", it.slug, second.record.seq)
    assert job.since == first.record.timestamp
    Commit().do(it.layer.paths.store, job, around(), _soon())
    assert Commit().owed(it.layer.paths.store, around()) == []
    assert len(it.layer.history()) == 3


def test_a_birth_alone_owes_no_commit(it: Pushing) -> None:
    assert owed(it.layer.paths.store) == []


def test_a_long_backlog_is_committed_in_several_runs(
    it: Pushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "COMMITS_AT_ONCE", 2)
    for number in range(5):
        it.layer.save(b"%d\n" % number)
    work_once(it.layer.paths.store, [Commit()])
    assert len(it.layer.history()) == 5


def test_a_broken_ref_is_owed_until_somebody_repairs_it(it: Pushing) -> None:
    it.saved(1)
    it.layer.ref_file.write_text("not a commit\n")
    store = it.layer.paths.store
    jobs = owed(store)
    assert {job.kind for job in jobs} == {"commit", "push"}
    done = work_once(store)
    assert all(isinstance(one.failure, CommitError) for one in done)
    assert failures(store, *jobs) == ["broken_ref", "broken_ref"]


# push


def test_what_is_committed_is_owed_and_pushed(it: Pushing) -> None:
    one, two = it.saved(2)
    (job,) = _push().owed(it.layer.paths.store, around())
    assert (job.kind, job.key, job.seq, job.since) == ("push", it.slug, two.seq, one.timestamp)
    _push().do(it.layer.paths.store, job, around(), _soon())
    it.check_pushed()
    assert _push().owed(it.layer.paths.store, around()) == []
    (three,) = it.saved(1)
    (job,) = _push().owed(it.layer.paths.store, around())
    assert (job.seq, job.since) == (three.seq, three.timestamp)


def test_without_a_remote_nothing_is_owed(it: Pushing) -> None:
    store = it.layer.paths.store
    config.load(store)._replace(remote=None).save(store)
    it.saved(1)
    assert owed(store) == []


def test_progress_is_told_in_bytes(it: Pushing) -> None:
    it.layer.saved(os.urandom(60_000).hex().encode())
    told: list[tuple[int, int]] = []
    work_once(it.layer.paths.store, [Push(lambda done, total: told.append((done, total)))])
    ((done, total),) = told
    assert done == 0
    assert 60_000 < total < 130_000


def test_a_remote_that_refuses_is_remembered_with_its_word(it: Pushing) -> None:
    it.bare.hook("pre-receive", "exit 1")
    it.saved(1)
    store = it.layer.paths.store
    jobs = owed(store)
    (done,) = work_once(store)
    assert isinstance(done.failure, PushRefusedError)
    assert failures(store, *jobs) == ["push_refused"]


# pending


def _leave_note(work: Working, reason: str = "started") -> Path:
    note = {
        "v": 1,
        "session_id": SESSION,
        "transcript": str(work.scene.transcript),
        "project": str(work.scene.project),
        "cwd": str(work.scene.project),
        "trigger": "auto",
        "since": 1_700_000_000,
        "reason": reason,
    }
    path = Path(work.store.pending_note(SESSION))
    path.write_text(json.dumps(note))
    return path


def test_a_fire_that_was_killed_becomes_a_savepoint(work: Working) -> None:
    note = _leave_note(work)
    (job,) = Pending().owed(work.store, around())
    assert (job.kind, job.key, job.since) == ("save", SESSION, 1_700_000_000)
    Pending().do(work.store, job, around(), _soon())
    assert not note.exists()
    (one,) = savepoints.records(work.paths).saves
    assert (one.body["session_id"], one.body["trigger"]) == (SESSION, "auto")


def test_a_fire_that_is_being_served_is_not_owed(work: Working) -> None:
    _leave_note(work)
    with Lock(work.store.session_lock(SESSION), _soon()):
        assert Pending().owed(work.store, around()) == []


# audit


@pytest.fixture
def long(work: Working, monkeypatch: pytest.MonkeyPatch) -> Working:
    """A transcript of several segments, of which saves check the last ones only."""
    monkeypatch.setattr(limits, "SEGMENT_SOFT_BYTES", 1000)
    monkeypatch.setattr(limits, "FULL_CHECK_BYTES", 2000)
    work.scene.say(*(f"message {number} " + "x" * 300 for number in range(40)))
    work.scene.created()
    return work


def _check(store: Store) -> str:
    last = sessions.load(store, SESSION)
    assert last is not None
    return last.prefix_check


def test_what_was_read_whole_is_not_audited(long: Working) -> None:
    assert Audit().owed(long.store, around()) == []
    assert _check(long.store) == sessions.FULL


def test_a_transcript_that_stands_is_marked_and_not_saved_again(long: Working) -> None:
    long.scene.say("more")
    made = long.scene.created()
    (job,) = Audit().owed(long.store, around())
    assert (job.kind, job.key, job.seq) == ("audit", SESSION, made["seq"])
    Audit().do(long.store, job, around(), _soon())
    assert _check(long.store) == sessions.AUDITED
    assert Audit().owed(long.store, around()) == []
    assert savepoints.records(long.paths).saves[-1].seq == made["seq"]


def _edit_beginning(work: Working) -> bytes:
    """A change that keeps size, inode and the end."""
    seen = work.scene.transcript.stat()
    data = bytearray(work.scene.transcript.read_bytes())
    at = data.index(b"message 0")
    data[at : at + 9] = b"MESSAGE 0"
    with work.scene.transcript.open("r+b") as file:
        file.write(data)
    os.utime(work.scene.transcript, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    return bytes(data)


def test_a_change_that_the_tail_does_not_show_is_corrected(long: Working) -> None:
    data = _edit_beginning(long)
    long.scene.say("more")
    made = long.scene.created()
    (job,) = Audit().owed(long.store, around())
    Audit().do(long.store, job, around(), _soon())
    correcting = savepoints.records(long.paths).saves[-1]
    assert (correcting.seq, correcting.body["trigger"]) == (made["seq"] + 1, "audit")
    document = savepoints.open_snapshot(long.paths, correcting).document
    assert snapshot.member_at(document, ("conversation_history", "prefix_check")) == "full"
    transcript = savepoints.files(long.store, document)[0]
    saved = b"".join(savepoints.content(long.store, transcript))
    assert saved == data + long.scene.transcript.read_bytes()[len(data) :]
    assert Audit().owed(long.store, around()) == []
    assert not Path(long.store.pending_note(SESSION)).exists()


def test_an_audit_that_is_killed_before_it_corrects_is_finished_by_the_next(
    long: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    _edit_beginning(long)
    long.scene.say("more")
    made = long.scene.created()
    (job,) = Audit().owed(long.store, around())
    with monkeypatch.context() as patch:
        patch.setattr("savepoint.save.finish", _killed)
        with pytest.raises(KeyboardInterrupt):
            Audit().do(long.store, job, around(), _soon())
    assert next(one.kind for one in owed(long.store)) == "save"
    work_once(long.store)
    assert savepoints.records(long.paths).saves[-1].seq == made["seq"] + 1
    assert [one for one in owed(long.store) if one.kind in ("save", "audit")] == []


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_transcript_that_is_gone_tells_nothing(long: Working) -> None:
    long.scene.say("more")
    long.scene.created()
    (job,) = Audit().owed(long.store, around())
    long.scene.transcript.unlink()
    Audit().do(long.store, job, around(), _soon())
    assert Audit().owed(long.store, around()) == []


@pytest.mark.parametrize("what", ["link", "unreadable", "failing"])
def test_a_transcript_that_cannot_be_read_is_not_as_saved(
    long: Working, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was noted as audited, for good."""
    long.scene.say("more")
    long.scene.created()
    (job,) = Audit().owed(long.store, around())
    with monkeypatch.context() as patch:
        if what == "link":
            long.scene.transcript.rename(long.scene.transcript.with_suffix(".away"))
            long.scene.transcript.symlink_to(long.scene.transcript.with_suffix(".away"))
        else:
            number = errno.EACCES if what == "unreadable" else errno.EIO
            patch.setattr("savepoint.work.kinds.audit.open_regular", _refusing(number))
        with pytest.raises(DiskError):
            Audit().do(long.store, job, around(), _soon())
    assert _check(long.store) == sessions.TAIL


def _refusing(number: int) -> Callable[[str], int]:
    def refusing(path: str) -> int:
        raise OSError(number, os.strerror(number), path)

    return refusing


def test_an_audit_of_a_store_that_belongs_to_no_folder_is_refused(long: Working) -> None:
    """An IndexError ended the worker, and what it had left to do."""
    _edit_beginning(long)
    long.scene.say("more")
    long.scene.created()
    (job,) = Audit().owed(long.store, around())
    config.load(long.store)._replace(projects=()).save(long.store)
    with pytest.raises(NoStoreError):
        Audit().do(long.store, job, around(), _soon())
    assert _check(long.store) == sessions.TAIL


def test_an_audit_has_a_deadline(long: Working) -> None:
    long.scene.say("more")
    long.scene.created()
    (job,) = Audit().owed(long.store, around())
    with pytest.raises(DeadlineError):
        Audit().do(long.store, job, around(), time.monotonic())


# repack


def test_many_packs_become_few_and_nothing_is_lost(
    it: Pushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REPACK_GIT_PACKS", 12)
    store = it.layer.paths.store
    it.saved(11)
    assert Repack().owed(store, around()) == []
    it.saved(1)
    unreachable = it.layer.git("hash-object", "-w", "/dev/null").decode().strip()
    before = set(it.layer.lines("cat-file", "--batch-all-objects", "--batch-check"))
    work_once(store, [Repack()])
    assert len(packing.packs(around().repository(store))) == 1
    after = set(it.layer.lines("cat-file", "--batch-all-objects", "--batch-check"))
    assert before == after
    assert any(line.startswith(unreachable) for line in after)
    assert it.layer.fsck() in {"", f"dangling blob {unreachable}\n"}
    assert Repack().owed(store, around()) == []
    it.saved(1)
    it.push()
    it.check_pushed()


def test_leftovers_of_dead_processes_go_with_it(
    it: Pushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "REPACK_GIT_PACKS", 2)
    it.saved(2)
    stale = it.layer.git_dir / "objects/pack/tmp_pack_AbCdEf"
    stale.write_bytes(b"x" * 1000)
    os.utime(stale, (0, 0))
    work_once(it.layer.paths.store, [Repack()])
    assert not stale.exists()


def test_a_remote_that_went_back_stops_pushes_and_nothing_else(it: Pushing) -> None:
    it.saved(3)
    it.push()
    it.bare.put(it.slug, it.layer.history()[0])
    it.layer.save(b"more\n")
    done = {one.job.kind: one.failure for one in work_once(it.layer.paths.store)}
    assert done["commit"] is None
    assert isinstance(done["push"], RolledBackError)


def test_commits_and_pushes_beside_a_repack_lose_nothing(it: Pushing, zstd: str) -> None:
    """No lock keeps them apart: git's own order must hold (new pack first, old ones after)."""
    it.saved(1)
    stop = it.bare.path / "stop"
    context = multiprocessing.get_context("fork")
    repacking = context.Process(target=_repack_until, args=(it, stop))
    repacking.start()
    try:
        for number in range(25):
            it.layer.saved(os.urandom(20_000).hex().encode() + b"\n")
            if number % 5 == 0:
                it.push()
    finally:
        stop.touch()
        repacking.join(20)
    assert repacking.exitcode == 0
    it.push()
    it.check_pushed()
    assert it.layer.fsck() == ""
    assert len(it.layer.history()) == 26
    for commit, one in zip(it.layer.history(), it.layer.built.records()[1:], strict=True):
        it.layer.check_whole(commit, one)


def _repack_until(it: Pushing, stop: Path) -> None:
    while not stop.exists():
        packing.join(around().repository(it.layer.paths.store)._replace(deadline=_soon()))
