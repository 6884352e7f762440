"""Ways out where the remote has something else: adoption, forks, foreign commits, lost branches."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.core.errors import CommitError, KeyFileError, RolledBackError
from savepoint.gitlayer import accept, adopt, check, repository
from savepoint.store import agekeys, config, fsck, savepoints, witness
from savepoint.store.layout import Home
from tests.gitlayer.layer import Layer
from tests.gitlayer.remotes import Pushing
from tests.verify.builder import NOW, Built

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.gitlayer.accept import Accepted


@pytest.fixture
def it(tmp_path: Path) -> Pushing:
    return Pushing.new(tmp_path)


def _accept(it: Pushing) -> Accepted:
    identities = agekeys.identities(it.layer.paths.store)
    return accept.accept(it.remote(), it.layer.paths, identities, NOW + 1_000_000)


def _adopt(it: Pushing) -> adopt.Adopted:
    return adopt.adopt(it.remote(), it.layer.paths, agekeys.identities(it.layer.paths.store))


def _twin(it: Pushing, folder: Path) -> Pushing:
    """The store as it is, gone on with on another machine."""
    home = it.layer.paths.store.home
    shutil.copytree(home, folder)
    store = Home(str(folder)).store(it.layer.paths.store.id)
    built = Built(store.instance(it.slug), dict(it.layer.built.known))
    return Pushing(Layer(built, dict(it.layer.blobs)), it.bare)


def _finish(it: Pushing) -> None:
    """What follows an acceptance: ours is committed, and pushed."""
    it.layer.commit()
    assert it.push()


def _check_whole(it: Pushing) -> None:
    """Pushed, and every witness at hand says that all is well."""
    it.check_pushed()
    assert it.layer.fsck() == ""
    report = witness.verify_local(it.layer.paths)
    assert str(report.verdict) == "VERIFIED", report.to_json()
    remote = it.remote()
    checked = check.check(remote.repo, it.layer.paths, agekeys.identities(it.layer.paths.store))
    assert checked.faults == []
    found = fsck.fsck(it.layer.paths.store, NOW)
    assert [item for item in found.items if item.severity != "note"] == []


def _conversations(it: Pushing) -> dict[str, bytes]:
    """Snapshot hash → transcript, of all savepoints."""
    found = {}
    for one in savepoints.records(it.layer.paths).saves:
        document = savepoints.open_snapshot(it.layer.paths, one).document
        (file,) = savepoints.files(it.layer.paths.store, document)
        found[one.snapshot_hash] = b"".join(savepoints.content(it.layer.paths.store, file))
    return found


def _accepted(it: Pushing) -> list[Record]:
    return [one for one in it.layer.built.records() if one.kind == "accept"]


def test_nothing_is_accepted_where_all_is_ours(it: Pushing) -> None:
    assert _accept(it) == accept.NOTHING
    it.saved(2)
    assert _accept(it) == accept.NOTHING
    it.push()
    it.saved(1)
    assert _accept(it) == accept.NOTHING
    assert _accepted(it) == []


# what the remote lost


def test_an_emptied_remote_gets_everything_again(it: Pushing) -> None:
    it.saved(3)
    it.push()
    it.bare.git("update-ref", "-d", f"refs/heads/savepoints/{it.slug}")
    done = _accept(it)
    assert done.record is not None
    assert done.record.body == {"reason": "remote", "first": None, "last": None, "tip": None}
    assert it.push()
    it.saved(1)  # with which the record rides
    it.push()
    _check_whole(it)
    assert it.bare.git("rev-list", "--count", f"savepoints/{it.slug}") == "4"


def test_a_remote_that_went_back_gets_the_rest_again(it: Pushing) -> None:
    it.saved(3)
    it.push()
    older = it.layer.history()[1]
    it.bare.put(it.slug, older)
    done = _accept(it)
    assert done.record is not None
    assert done.record.body["tip"] == it.layer.built.records()[2].hash
    it.saved(1)
    assert it.push()
    _check_whole(it)


def test_until_it_is_accepted_nothing_is_pushed_and_then_again(it: Pushing) -> None:
    """It holds for what the remote had, not for what it loses later."""
    it.saved(2)
    it.push()
    for _ in range(2):
        it.bare.git("update-ref", "-d", f"refs/heads/savepoints/{it.slug}")
        with pytest.raises(RolledBackError):
            it.push()
        assert _accept(it).record is not None
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
    done = _accept(it)
    assert done.record is not None
    assert done.record.body["tip"] is None
    it.saved(1)
    assert it.push()
    _check_whole(it)
    assert foreign in it.bare.git("rev-list", f"savepoints/{it.slug}").split()
    assert "note.txt" not in it.layer.tree(it.layer.tip())


def test_a_branch_that_was_replaced_by_anything_stays_below_ours(it: Pushing) -> None:
    it.saved(3)
    it.push()
    foreign = it.bare.foreign_commit(None)
    it.bare.put(it.slug, foreign)
    assert _accept(it).record is not None
    assert it.push()  # the joint alone
    it.saved(1)
    assert it.push()
    _check_whole(it)
    pushed = it.bare.git("rev-list", f"savepoints/{it.slug}").split()
    assert {foreign, *it.layer.history()} == set(pushed)


def test_a_branch_that_was_taken_before_our_first_push(it: Pushing) -> None:
    foreign = it.bare.foreign_commit(None, "objects/x")
    it.bare.put(it.slug, foreign)
    it.saved(1)
    assert _accept(it).record is not None
    it.saved(1)
    assert it.push()
    _check_whole(it)


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
    _accept(it)
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
    done = _accept(it)
    assert done.record is not None
    assert done.record.body["tip"] == it.layer.built.records()[3].hash
    assert it.push()
    it.saved(1)
    it.push()
    _check_whole(it)
    assert old in it.bare.git("rev-list", f"savepoints/{it.slug}").split()


def test_what_is_not_committed_is_not_passed_over(it: Pushing) -> None:
    """The joint names a record; all before it would count as committed."""
    it.saved(2)
    it.push()
    it.bare.put(it.slug, it.bare.foreign_commit(it.layer.tip()))
    it.layer.save(b"left behind\n")
    with pytest.raises(CommitError, match="not committed"):
        _accept(it)
    it.layer.commit()
    _accept(it)
    it.saved(1)
    assert it.push()
    _check_whole(it)


# a local store that is behind


def test_records_of_the_remote_are_taken_over(it: Pushing, tmp_path: Path) -> None:
    """borgbackup/borg#4908: a store put back from its own older copy gets out by one command."""
    it.saved(2)
    it.push()
    behind = _twin(it, tmp_path / "copy")
    it.saved(3)
    it.push()
    with pytest.raises(RolledBackError):
        behind.push()
    done = _adopt(behind)
    assert (done.records, done.problems) == (3, ())
    assert behind.layer.built.index_file.read_bytes() == it.layer.built.index_file.read_bytes()
    assert _conversations(behind) == _conversations(it)
    _check_whole(behind)
    behind.saved(1)
    behind.push()
    _check_whole(behind)
    assert _accepted(behind) == []


def test_what_was_saved_above_a_gap_follows_what_is_taken_over(it: Pushing, tmp_path: Path) -> None:
    """The trusted head stayed: the store went on behind it, on a new number."""
    it.saved(2)
    it.push()
    behind = _twin(it, tmp_path / "copy")
    it.saved(2)
    it.push()
    shutil.copy(it.layer.paths.trusted, behind.layer.paths.trusted)
    later = {"timestamp_iso8601": "2026-10-01T00:00:00Z"}
    behind.layer.save(b"after the rollback\n", document=later)
    assert [one.seq for one in behind.layer.built.records()] == [1, 2, 3, 6]
    assert _adopt(behind).records == 2
    assert [one.seq for one in behind.layer.built.records()] == [1, 2, 3, 4, 5, 6]
    _finish(behind)
    _check_whole(behind)


def test_the_whole_repository_comes_back(it: Pushing) -> None:
    it.saved(3)
    it.push()
    tip = it.layer.tip()
    shutil.rmtree(it.layer.git_dir)
    repository.ensure(it.remote().repo)
    assert _adopt(it).records == 0
    assert it.layer.tip() == tip
    _check_whole(it)


def test_adoption_refuses_a_fork(it: Pushing, tmp_path: Path) -> None:
    it.saved(1)
    it.push()
    other = _twin(it, tmp_path / "copy")
    it.saved(1)
    it.push()
    other.layer.saved(b"another history\n")
    before = other.layer.built.index_file.read_bytes(), other.layer.tip()
    with pytest.raises(RolledBackError, match="another history"):
        _adopt(other)
    assert (other.layer.built.index_file.read_bytes(), other.layer.tip()) == before


# forks


def _fork(it: Pushing, tmp_path: Path, theirs: int, ours: int) -> Pushing:
    """Two machines with one key; the first has pushed."""
    it.saved(2)
    it.push()
    other = _twin(it, tmp_path / "copy")
    it.saved(theirs)
    it.push()
    for number in range(ours):
        other.layer.saved(b"another history %d\n" % number)
    return other


@pytest.mark.parametrize(("theirs", "ours"), [(1, 1), (3, 1), (1, 3)])
def test_of_two_histories_both_are_kept(
    it: Pushing, tmp_path: Path, theirs: int, ours: int
) -> None:
    other = _fork(it, tmp_path, theirs, ours)
    expected = {**_conversations(it), **_conversations(other)}
    before = other.layer.built.index_file.read_bytes()
    old_tip = other.layer.tip()
    used = max(len(it.layer.built.lines), len(other.layer.built.lines))
    with pytest.raises(RolledBackError):
        other.push()
    done = _accept(other)
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
    _finish(other)
    _check_whole(other)
    assert _conversations(other) == expected
    (kept,) = Path(other.layer.paths.forks).iterdir()
    assert kept.read_bytes() == before
    there = other.bare.git("rev-list", f"savepoints/{it.slug}").split()
    assert {old_tip, it.layer.tip()} <= set(there)


def test_snapshots_of_one_second_and_name_are_both_kept(it: Pushing, tmp_path: Path) -> None:
    """The made-up savepoints of one number have one time, so their files have one name."""
    other = _fork(it, tmp_path, 1, 1)
    names = [one.layer.built.records()[-1].snapshot_file for one in (it, other)]
    assert names[0] == names[1]
    _accept(other)
    records = [one for one in other.layer.built.records() if one.kind == "save"]
    assert len({one.snapshot_file for one in records}) == len(records)
    _finish(other)
    _check_whole(other)


def test_the_other_machine_then_takes_over_what_was_joined(it: Pushing, tmp_path: Path) -> None:
    other = _fork(it, tmp_path, 2, 2)
    _accept(other)
    _finish(other)
    with pytest.raises(RolledBackError):
        it.push()
    done = _adopt(it)
    assert done.problems == ()
    assert it.layer.built.index_file.read_bytes() == other.layer.built.index_file.read_bytes()
    _check_whole(it)


def test_what_comes_from_what_was_appended_again_has_its_new_number(
    it: Pushing, tmp_path: Path
) -> None:
    it.saved(1)
    it.push()
    other = _twin(it, tmp_path / "copy")
    it.saved(2)
    it.push()
    first = other.layer.saved(b"another\n")
    assert first.cursor.seq == 3
    one = other.layer.built.records()[-1]
    body = {**one.body, "from": one.origin()}
    later = other.layer.built.make("save", 4, one.hash, body, other.layer.built.seed)
    other.layer.built.write_lines(*other.layer.built.lines, later.line)
    _accept(other)
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
        _accept(other)
    assert (other.layer.built.index_file.read_bytes(), other.layer.tip()) == before


@pytest.mark.parametrize(
    "step",
    [
        "savepoint.gitlayer.adopt.content",
        "savepoint.store.durable.replace",
        "savepoint.gitlayer.joint.join",
        "savepoint.gitlayer.adopt.move_ref",
        "savepoint.gitlayer.adopt.seen",
        "savepoint.gitlayer.pushed.forget",
    ],
)
def test_an_acceptance_that_is_killed_is_finished_by_the_next(
    it: Pushing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    other = _fork(it, tmp_path, 1, 2)
    expected = {**_conversations(it), **_conversations(other)}
    with monkeypatch.context() as patch:
        patch.setattr(step, _killed)
        with pytest.raises(KeyboardInterrupt):
            _accept(other)
    _accept(other)
    _finish(other)
    _check_whole(other)
    assert _conversations(other) == expected


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_joint_is_no_place_to_stop_in_the_middle(
    it: Pushing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step of a backlog ends where the remote's tip leads to, never on the other side."""
    other = _fork(it, tmp_path, 1, 3)
    _accept(other)
    other.layer.commit()
    monkeypatch.setattr(limits, "PUSH_STEP_BYTES", 1)
    assert other.push(seconds=100)
    _check_whole(other)


def test_config_of_the_copy_is_its_own(it: Pushing, tmp_path: Path) -> None:
    other = _fork(it, tmp_path, 1, 1)
    assert config.load(other.layer.paths.store).remote == str(it.bare.path)
