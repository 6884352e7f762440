"""What became of a savepoint in git, as ref, remote-tracking ref and last attempt tell it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import (
    CommitError,
    DeadlineError,
    PushRefusedError,
    RemoteDivergedError,
    RemoteUnreachableError,
    RolledBackError,
)
from savepoint.store import config
from savepoint.work import layer2
from savepoint.work.jobs import Job
from savepoint.work.outbox import Outbox
from tests.work.scene import around

if TYPE_CHECKING:
    from savepoint.core.errors import SavepointError
    from savepoint.core.record import Record
    from savepoint.work.layer2 import Layer2
    from tests.gitlayer.remotes import Pushing


def _layers(it: Pushing) -> list[Layer2]:
    """Of all savepoints, oldest first."""
    saves = [one for one in it.layer.built.records() if one.kind == "save"]
    found = layer2.layer2(it.layer.paths, saves, around())
    for one in saves:
        one_by_one = layer2.status_of(it.layer.paths, one, around())
        assert one_by_one == (found[one.seq].status, found[one.seq].error)
        (alone,) = layer2.layer2(it.layer.paths, [one], around()).values()
        assert alone == found[one.seq]
    return [found[one.seq] for one in saves]


def _statuses(it: Pushing) -> list[str]:
    return [one.status for one in _layers(it)]


def _failed(it: Pushing, kind: str, failure: SavepointError) -> None:
    with Outbox(it.layer.paths.store) as box:
        box.failed(Job(kind, it.slug, None, 0), failure, 0)


def _without_remote(it: Pushing) -> None:
    store = it.layer.paths.store
    config.load(store)._replace(remote=None).save(store)


def test_three_savepoints_each_at_another_place(it: Pushing) -> None:
    it.saved(1)
    it.push()
    it.saved(1)
    it.layer.save(b"not committed\n")
    pushed, committed, saved = _layers(it)
    first, second = it.layer.history()
    assert pushed == (layer2.PUSHED, first, "")
    assert committed == (layer2.QUEUED_FOR_PUSH, second, "")
    assert saved == (layer2.QUEUED_FOR_COMMIT, None, "")


def test_without_a_remote_what_is_committed_is_done(it: Pushing) -> None:
    _without_remote(it)
    it.saved(2)
    it.layer.save(b"not committed\n")
    assert _statuses(it) == [layer2.COMMITTED, layer2.COMMITTED, layer2.QUEUED_FOR_COMMIT]


@pytest.mark.parametrize(
    ("failure", "word"),
    [
        (PushRefusedError("x"), layer2.PUSH_REFUSED),
        (RemoteDivergedError("x"), layer2.REMOTE_DIVERGED),
        (RolledBackError("x"), layer2.REMOTE_DIVERGED),
        (RemoteUnreachableError("x"), layer2.QUEUED_FOR_PUSH),
        (DeadlineError("x"), layer2.QUEUED_FOR_PUSH),
        (CommitError("x"), layer2.QUEUED_FOR_PUSH),
    ],
    ids=lambda one: type(one).__name__ if isinstance(one, Exception) else one,
)
def test_each_failure_of_a_push_has_its_word(
    it: Pushing, failure: SavepointError, word: str
) -> None:
    it.saved(1)
    it.push()
    it.saved(1)
    _failed(it, "push", failure)
    pushed, waiting = _layers(it)
    assert (pushed.status, pushed.error) == (layer2.PUSHED, "")
    assert (waiting.status, waiting.error) == (word, "x")


def test_why_something_is_not_committed(it: Pushing) -> None:
    it.layer.save(b"one\n")
    _failed(it, "commit", CommitError("there is no git"))
    (one,) = _layers(it)
    assert (one.status, one.error) == (layer2.QUEUED_FOR_COMMIT, "there is no git")


def test_a_failure_that_is_over_is_not_told(it: Pushing) -> None:
    """The row of a job stays until the worker has looked again."""
    it.saved(1)
    _failed(it, "push", PushRefusedError("x"))
    it.push()
    assert [(one.status, one.error) for one in _layers(it)] == [(layer2.PUSHED, "")]


def test_a_broken_ref_or_no_repository_is_no_exception(it: Pushing) -> None:
    it.saved(1)
    it.layer.ref_file.write_text("rubbish\n")
    assert _statuses(it) == [layer2.QUEUED_FOR_COMMIT]
    Path(it.layer.paths.store.repository).rename(it.bare.path.with_name("gone"))
    assert _statuses(it) == [layer2.QUEUED_FOR_COMMIT]


def test_caches_may_be_lost(it: Pushing) -> None:
    it.saved(2)
    it.push()
    before = _layers(it)
    for cache in (it.layer.git_dir / "savepoint").iterdir():
        cache.unlink()
    assert _layers(it) == before


def test_the_cache_of_the_remote_tracking_ref_is_no_evidence(it: Pushing) -> None:
    one, _ = it.saved(2)
    it.push()
    cache = it.layer.git_dir / "savepoint" / f"{it.slug}.pushed"
    cache.write_text(cache.read_text().replace('"seq":3', '"seq":9'))
    it.saved(1)
    (it.layer.git_dir / f"refs/remotes/origin/savepoints/{it.slug}").write_text(
        f"{_commit_of(it, one)}\n"
    )
    assert _statuses(it) == [layer2.PUSHED, layer2.QUEUED_FOR_PUSH, layer2.QUEUED_FOR_PUSH]


def _commit_of(it: Pushing, one: Record) -> str:
    found = layer2.layer2(it.layer.paths, [one], around())[one.seq].commit
    assert found is not None
    return found
