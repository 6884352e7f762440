"""Ways out where the remote has something else: adoption, foreign commits, lost branches."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import CommitError, RolledBackError
from savepoint.gitlayer import repository
from savepoint.gitlayer.remote import accept
from savepoint.store import trusted
from savepoint.store.witness import witness
from tests.gitlayer.accepting import (
    accept_remote,
    adopt_remote,
    check_whole,
    conversations,
    finish,
    twin_of,
)

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from tests.gitlayer.remotes import Pushing


def _accepted(it: Pushing) -> list[Record]:
    return [one for one in it.layer.built.records() if one.kind == "accept"]


def test_nothing_is_accepted_where_all_is_ours(it: Pushing) -> None:
    assert accept_remote(it) == accept.NOTHING
    it.saved(2)
    assert accept_remote(it) == accept.NOTHING
    it.push()
    it.saved(1)
    assert accept_remote(it) == accept.NOTHING
    assert _accepted(it) == []


def _forget_the_last(it: Pushing) -> None:
    """Another record stands where the trusted head has seen the index's last one: a twin's."""
    head = trusted.load(it.layer.paths)
    assert head is not None
    trusted.save(it.layer.paths, head._replace(record="ab" * 32))


def _verdict(it: Pushing) -> str:
    return str(witness.verify_local(it.layer.paths).verdict)


def test_an_acceptance_on_a_forked_index_does_not_cover_the_fork(it: Pushing) -> None:
    it.saved(3)
    it.push()
    it.bare.put(it.slug, it.layer.history()[1])
    _forget_the_last(it)
    assert _verdict(it) == "ROLLED_BACK"
    assert accept_remote(it).record is not None
    assert _verdict(it) == "ROLLED_BACK"


def test_an_adoption_over_a_forked_index_does_not_cover_the_fork(
    it: Pushing, tmp_path: Path
) -> None:
    it.saved(2)
    it.push()
    other = twin_of(it, tmp_path / "copy")
    it.saved(2)
    it.push()
    _forget_the_last(other)
    assert adopt_remote(other).records == 2
    assert _verdict(other) == "ROLLED_BACK"


# what the remote lost


def test_an_emptied_remote_gets_everything_again(it: Pushing) -> None:
    it.saved(3)
    it.push()
    it.bare.git("update-ref", "-d", f"refs/heads/savepoints/{it.slug}")
    done = accept_remote(it)
    assert done.record is not None
    assert done.record.body == {"reason": "remote", "first": None, "last": None, "tip": None}
    assert it.push()
    it.saved(1)  # with which the record rides
    it.push()
    check_whole(it)
    assert it.bare.git("rev-list", "--count", f"savepoints/{it.slug}") == "4"


def test_a_remote_that_went_back_gets_the_rest_again(it: Pushing) -> None:
    it.saved(3)
    it.push()
    older = it.layer.history()[1]
    it.bare.put(it.slug, older)
    done = accept_remote(it)
    assert done.record is not None
    assert done.record.body["tip"] == it.layer.built.records()[2].hash
    it.saved(1)
    assert it.push()
    check_whole(it)


def test_until_it_is_accepted_nothing_is_pushed_and_then_again(it: Pushing) -> None:
    """It holds for what the remote had, not for what it loses later."""
    it.saved(2)
    it.push()
    for _ in range(2):
        it.bare.git("update-ref", "-d", f"refs/heads/savepoints/{it.slug}")
        with pytest.raises(RolledBackError):
            it.push()
        assert accept_remote(it).record is not None
        assert it.push()
        it.check_pushed()


# what somebody else has put there


@pytest.mark.parametrize("more", [0, 1])
def test_a_foreign_commit_on_top_stays_below_ours(it: Pushing, more: int) -> None:
    it.saved(2)
    it.push()
    foreign = it.bare.foreign_commit(it.layer.tip())
    it.bare.put(it.slug, foreign)
    if more:
        it.saved(more)
    done = accept_remote(it)
    assert done.record is not None
    assert done.record.body["tip"] is None
    it.saved(1)
    assert it.push()
    check_whole(it)
    assert foreign in it.bare.git("rev-list", f"savepoints/{it.slug}").split()
    assert "note.txt" not in it.layer.tree(it.layer.tip())


def test_a_branch_that_was_replaced_by_anything_stays_below_ours(it: Pushing) -> None:
    it.saved(3)
    it.push()
    foreign = it.bare.foreign_commit(None)
    it.bare.put(it.slug, foreign)
    assert accept_remote(it).record is not None
    assert it.push()  # the joint alone
    it.saved(1)
    assert it.push()
    check_whole(it)
    pushed = it.bare.git("rev-list", f"savepoints/{it.slug}").split()
    assert {foreign, *it.layer.history()} == set(pushed)


def test_a_branch_that_was_taken_before_our_first_push(it: Pushing) -> None:
    foreign = it.bare.foreign_commit(None, "objects/x")
    it.bare.put(it.slug, foreign)
    it.saved(1)
    assert accept_remote(it).record is not None
    it.saved(1)
    assert it.push()
    check_whole(it)


def test_with_nothing_committed_a_taken_branch_is_built_on(it: Pushing) -> None:
    foreign = it.bare.foreign_commit(None, "objects/x")
    it.bare.put(it.slug, foreign)
    it.saved(1)
    it.layer.ref_file.unlink()
    it.layer.built.write_lines(it.layer.built.lines[0])
    Path(it.layer.paths.trusted).unlink()
    shutil.rmtree(it.layer.paths.snapshots)
    Path(it.layer.paths.snapshots).mkdir()
    it.layer.forget()
    accept_remote(it)
    it.saved(2)
    assert it.push()
    it.check_pushed()
    assert foreign in it.bare.git("rev-list", f"savepoints/{it.slug}").split()
    assert it.layer.tree(it.layer.tip()).keys() & {"objects/x"} == set()


def test_commits_lost_here_and_made_again_are_joined_with_the_old(it: Pushing) -> None:
    """repo.git was deleted: the same records have other commits now."""
    it.saved(3)
    it.push()
    old = it.layer.tip()
    shutil.rmtree(it.layer.git_dir)
    it.layer.blobs.clear()
    it.layer.commit()
    assert it.layer.tip() != old
    with pytest.raises(RolledBackError):
        it.push()
    done = accept_remote(it)
    assert done.record is not None
    assert done.record.body["tip"] == it.layer.built.records()[3].hash
    assert it.push()
    it.saved(1)
    it.push()
    check_whole(it)
    assert old in it.bare.git("rev-list", f"savepoints/{it.slug}").split()


def test_what_is_not_committed_is_not_passed_over(it: Pushing) -> None:
    """The joint names a record; all before it would count as committed."""
    it.saved(2)
    it.push()
    it.bare.put(it.slug, it.bare.foreign_commit(it.layer.tip()))
    it.layer.save(b"left behind\n")
    with pytest.raises(CommitError, match="not committed"):
        accept_remote(it)
    it.layer.commit()
    accept_remote(it)
    it.saved(1)
    assert it.push()
    check_whole(it)


# a local store that is behind


def test_records_of_the_remote_are_taken_over(it: Pushing, tmp_path: Path) -> None:
    """borgbackup/borg#4908: a store put back from its own older copy gets out by one command."""
    it.saved(2)
    it.push()
    behind = twin_of(it, tmp_path / "copy")
    it.saved(3)
    it.push()
    with pytest.raises(RolledBackError):
        behind.push()
    done = adopt_remote(behind)
    assert (done.records, done.problems) == (3, ())
    assert behind.layer.built.index_file.read_bytes() == it.layer.built.index_file.read_bytes()
    assert conversations(behind) == conversations(it)
    check_whole(behind)
    behind.saved(1)
    behind.push()
    check_whole(behind)
    assert _accepted(behind) == []


def test_what_was_saved_above_a_gap_follows_what_is_taken_over(it: Pushing, tmp_path: Path) -> None:
    """The trusted head stayed: the store went on behind it, on a new number."""
    it.saved(2)
    it.push()
    behind = twin_of(it, tmp_path / "copy")
    it.saved(2)
    it.push()
    shutil.copy(it.layer.paths.trusted, behind.layer.paths.trusted)
    later = {"timestamp_iso8601": "2026-10-01T00:00:00Z"}
    behind.layer.save(b"after the rollback\n", document=later)
    assert [one.seq for one in behind.layer.built.records()] == [1, 2, 3, 6]
    assert adopt_remote(behind).records == 2
    assert [one.seq for one in behind.layer.built.records()] == [1, 2, 3, 4, 5, 6]
    finish(behind)
    check_whole(behind)


def test_the_whole_repository_comes_back(it: Pushing) -> None:
    it.saved(3)
    it.push()
    tip = it.layer.tip()
    shutil.rmtree(it.layer.git_dir)
    repository.ensure(it.remote().repo)
    assert adopt_remote(it).records == 0
    assert it.layer.tip() == tip
    check_whole(it)


def test_adoption_refuses_a_fork(it: Pushing, tmp_path: Path) -> None:
    it.saved(1)
    it.push()
    other = twin_of(it, tmp_path / "copy")
    it.saved(1)
    it.push()
    other.layer.saved(b"another history\n")
    before = other.layer.built.index_file.read_bytes(), other.layer.tip()
    with pytest.raises(RolledBackError, match="another history"):
        adopt_remote(other)
    assert (other.layer.built.index_file.read_bytes(), other.layer.tip()) == before
