"""Two machines went on with one key: both histories are kept, and an acceptance is finished."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.core.errors import KeyFileError, RolledBackError
from savepoint.gitlayer.remote import accept
from savepoint.store import config
from savepoint.store.keys import retirement
from tests.gitlayer.accepting import (
    accept_remote,
    adopt_remote,
    check_whole,
    conversations,
    finish,
    twin_of,
)
from tests.verify.builder import NOW

if TYPE_CHECKING:
    from tests.gitlayer.remotes import Pushing


def _fork(it: Pushing, tmp_path: Path, theirs: int, ours: int) -> Pushing:
    """Two machines with one key; the first has pushed."""
    it.saved(2)
    it.push()
    other = twin_of(it, tmp_path / "copy")
    it.saved(theirs)
    it.push()
    for number in range(ours):
        other.layer.saved(b"another history %d\n" % number)
    return other


def test_a_retirement_stays_the_last_record(it: Pushing, tmp_path: Path) -> None:
    other = _fork(it, tmp_path, 1, 1)
    retirement.retire(other.layer.paths, NOW + 100_000)
    accept_remote(other)
    assert [one.kind for one in other.layer.built.records()][-3:] == ["accept", "save", "retire"]
    finish(other)
    check_whole(other)


def test_nothing_is_appended_to_a_history_that_ends_with_a_retirement(
    it: Pushing, tmp_path: Path
) -> None:
    other = _fork(it, tmp_path, 1, 1)
    retirement.retire(it.layer.paths, NOW + 100_000)
    finish(it)
    before = other.layer.built.index_file.read_bytes()
    with pytest.raises(KeyFileError, match="retired by its record 5"):
        accept_remote(other)
    assert other.layer.built.index_file.read_bytes() == before


def test_an_emptied_remote_is_accepted_by_no_record_of_a_retired_key(it: Pushing) -> None:
    it.saved(2)
    retirement.retire(it.layer.paths, NOW + 100_000)
    finish(it)
    before = it.layer.built.index_file.read_bytes()
    it.bare.git("update-ref", "-d", f"refs/heads/savepoints/{it.slug}")
    with pytest.raises(RolledBackError):
        it.push()
    assert accept_remote(it).record is None
    assert it.layer.built.index_file.read_bytes() == before
    assert it.push()
    it.check_pushed()


@pytest.mark.parametrize(("theirs", "ours"), [(1, 1), (3, 1), (1, 3)])
def test_of_two_histories_both_are_kept(
    it: Pushing, tmp_path: Path, theirs: int, ours: int
) -> None:
    other = _fork(it, tmp_path, theirs, ours)
    expected = {**conversations(it), **conversations(other)}
    before = other.layer.built.index_file.read_bytes()
    old_tip = other.layer.tip()
    used = max(len(it.layer.built.lines), len(other.layer.built.lines))
    with pytest.raises(RolledBackError):
        other.push()
    done = accept_remote(other)
    assert done.problems == ()
    assert done.record is not None
    body = done.record.body
    assert (body["first"], body["last"]) == (4, 3 + ours)
    assert body["tip"] == it.layer.built.records()[-1].hash
    records = other.layer.built.records()
    assert [one.hash for one in records[: 3 + theirs]] == [
        one.hash for one in it.layer.built.records()
    ]
    new = records[3 + theirs :]
    assert [one.seq for one in new] == list(range(used + 1, used + 1 + len(new)))
    assert [one.kind for one in new][-ours:] == ["save"] * ours
    finish(other)
    check_whole(other)
    assert conversations(other) == expected
    (kept,) = Path(other.layer.paths.forks).iterdir()
    assert kept.read_bytes() == before
    there = other.bare.git("rev-list", f"savepoints/{it.slug}").split()
    assert {old_tip, it.layer.tip()} <= set(there)


def test_snapshots_of_one_second_and_name_are_both_kept(it: Pushing, tmp_path: Path) -> None:
    """The made-up savepoints of one number have one time, so their files have one name."""
    other = _fork(it, tmp_path, 1, 1)
    names = [one.layer.built.records()[-1].snapshot_file for one in (it, other)]
    assert names[0] == names[1]
    accept_remote(other)
    records = [one for one in other.layer.built.records() if one.kind == "save"]
    assert len({one.snapshot_file for one in records}) == len(records)
    finish(other)
    check_whole(other)


def test_the_other_machine_then_takes_over_what_was_joined(it: Pushing, tmp_path: Path) -> None:
    other = _fork(it, tmp_path, 2, 2)
    accept_remote(other)
    finish(other)
    with pytest.raises(RolledBackError):
        it.push()
    done = adopt_remote(it)
    assert done.problems == ()
    assert it.layer.built.index_file.read_bytes() == other.layer.built.index_file.read_bytes()
    check_whole(it)


def test_what_comes_from_what_was_appended_again_has_its_new_number(
    it: Pushing, tmp_path: Path
) -> None:
    it.saved(1)
    it.push()
    other = twin_of(it, tmp_path / "copy")
    it.saved(2)
    it.push()
    first = other.layer.saved(b"another\n")
    assert first.cursor.seq == 3
    one = other.layer.built.records()[-1]
    body = {**one.body, "from": one.origin()}
    later = other.layer.built.make("save", 4, one.hash, body, other.layer.built.seed)
    other.layer.built.write_lines(*other.layer.built.lines, later.line)
    accept_remote(other)
    *_, again, child = other.layer.built.records()
    assert child.body["from"] == again.origin()
    assert again.body["from"] is None


def test_a_fork_without_the_age_key_changes_nothing(it: Pushing, tmp_path: Path) -> None:
    other = _fork(it, tmp_path, 1, 1)
    before = other.layer.built.index_file.read_bytes(), other.layer.tip()
    with pytest.raises(KeyFileError):
        accept.accept(other.remote(), other.layer.paths, [], NOW)
    assert (other.layer.built.index_file.read_bytes(), other.layer.tip()) == before


def test_a_fork_without_the_signing_key_changes_nothing(it: Pushing, tmp_path: Path) -> None:
    other = _fork(it, tmp_path, 1, 1)
    before = other.layer.built.index_file.read_bytes(), other.layer.tip()
    Path(other.layer.paths.authority).unlink()
    with pytest.raises(KeyFileError):
        accept_remote(other)
    assert (other.layer.built.index_file.read_bytes(), other.layer.tip()) == before


@pytest.mark.parametrize(
    "step",
    [
        "savepoint.gitlayer.remote.adopt.content",
        "savepoint.store.durable.replace",
        "savepoint.gitlayer.commits.joint.join",
        "savepoint.gitlayer.remote.adopt.move_ref",
        "savepoint.gitlayer.remote.adopt.raise_head",
        "savepoint.gitlayer.remote.pushed.forget",
    ],
)
def test_an_acceptance_that_is_killed_is_finished_by_the_next(
    it: Pushing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    other = _fork(it, tmp_path, 1, 2)
    expected = {**conversations(it), **conversations(other)}
    with monkeypatch.context() as patch:
        patch.setattr(step, _killed)
        with pytest.raises(KeyboardInterrupt):
            accept_remote(other)
    accept_remote(other)
    finish(other)
    check_whole(other)
    assert conversations(other) == expected


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_joint_is_no_place_to_stop_in_the_middle(
    it: Pushing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of a backlog ends where the remote's tip leads to, never on the other side."""
    other = _fork(it, tmp_path, 1, 3)
    accept_remote(other)
    other.layer.commit()
    monkeypatch.setattr(limits, "PUSH_STEP_BYTES", 1)
    assert other.push(seconds=100)
    check_whole(other)


def test_config_of_the_copy_is_its_own(it: Pushing, tmp_path: Path) -> None:
    other = _fork(it, tmp_path, 1, 1)
    assert config.load(other.layer.paths.store).remote == str(it.bare.path)
