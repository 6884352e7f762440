"""Pushing to real remotes: forward only, in steps, remembered when read back; and what stops it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from savepoint.core import limits
from savepoint.core.errors import (
    RemoteDivergedError,
    RolledBackError,
)
from savepoint.gitlayer.remote import push as pushing
from savepoint.gitlayer.remote import pushed
from tests.gitlayer.remotes import Pushing


def test_what_is_committed_is_pushed_and_read_back(it: Pushing) -> None:
    it.saved(3)
    assert it.push()
    it.check_pushed()
    assert it.bare.git("rev-list", "--count", f"savepoints/{it.slug}") == "3"
    assert it.bare.git("fsck", "--full", "--strict").strip() in {"", _UNBORN}
    at = pushed.read(it.remote().repo, it.slug)
    assert at is not None
    assert (at.seq, at.record) == (4, it.layer.built.records()[-1].hash)


_UNBORN = "notice: HEAD points to an unborn branch (main)"


def test_nothing_is_pushed_twice(it: Pushing) -> None:
    log = it.bare.record_pushes()
    it.saved(2)
    it.push()
    it.push()
    it.saved(1)
    it.push()
    assert len(log.read_text().splitlines()) == 2
    it.check_pushed()


def test_a_store_without_a_commit_has_nothing_to_push(it: Pushing) -> None:
    it.saved(1)
    ref = it.layer.ref_file
    kept = ref.read_bytes()
    ref.unlink()
    assert it.push()
    assert it.bare.tip(it.slug) == ""
    ref.write_bytes(kept)


def test_only_the_instance_branch_is_pushed(it: Pushing) -> None:
    it.saved(1)
    it.layer.git("update-ref", "refs/heads/savepoints/other-00000000", it.layer.tip())
    it.layer.git("tag", "v1", it.layer.tip())
    Path(os.environ["HOME"], ".gitconfig").write_text(
        "[push]\nfollowTags = true\ngpgSign = true\ndefault = matching\npushOption = x\n"
    )
    it.push()
    assert it.bare.git("for-each-ref", "--format=%(refname)") == f"refs/heads/savepoints/{it.slug}"


@pytest.mark.parametrize("form", ["file://{}", "{}"])
def test_forms_of_a_local_remote(it: Pushing, form: str) -> None:
    it.use(form.format(it.bare.path))
    it.saved(1)
    it.push()
    it.check_pushed()


def test_a_backlog_goes_in_steps_of_whole_commits(
    it: Pushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each below the limit, except where one commit alone is above it."""
    log = it.bare.record_pushes()
    for number in range(5):
        it.layer.saved(os.urandom(60_000 if number != 3 else 200_000).hex().encode())
    monkeypatch.setattr(limits, "PUSH_STEP_BYTES", 150_000)
    assert it.push(seconds=limits.PUSH_STEP_SECONDS + 30)
    it.check_pushed()
    pushes = [line.split() for line in log.read_text().splitlines()]
    counts = [
        len(it.layer.lines("rev-list", new, *([f"^{old}"] if set(old) != {"0"} else [])))
        for old, new in pushes
    ]
    assert counts == [2, 1, 1, 1]


def test_a_step_knows_its_bytes(it: Pushing, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object counts where it first appears: with --reverse and --in-commit-order git lists it
    there.
    """
    first = (
        os.urandom(550_000).hex().encode() + b"\n"
    )  # closes a segment, which later commits share
    it.layer.saved(first)
    it.layer.saved(first + b"more")
    it.layer.saved(first + b"more still")
    repo = it.remote().repo
    oldest, *_ = it.layer.history()
    monkeypatch.setattr(limits, "PUSH_STEP_BYTES", 500_000)
    step, total = pushing.next_step(repo, None, it.layer.tip())
    assert step.commit == oldest
    assert 500_000 < step.size < total < 700_000
    rest, left = pushing.next_step(repo, oldest, it.layer.tip())
    assert rest == (it.layer.tip(), left)
    assert total == step.size + left


def test_what_the_time_was_too_short_for_is_left(
    it: Pushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        it.layer.saved(os.urandom(60_000).hex().encode())
    monkeypatch.setattr(limits, "PUSH_STEP_BYTES", 1)
    monkeypatch.setattr(limits, "PUSH_STEP_SECONDS", 100.0)
    assert not it.push(seconds=50)
    assert it.tracking() == it.bare.tip(it.slug) == it.layer.history()[0]
    monkeypatch.setattr(limits, "PUSH_STEP_SECONDS", 1.0)
    assert it.push()
    it.check_pushed()


# a remote that went another way


def test_a_remote_that_is_emptied_is_rolled_back(it: Pushing) -> None:
    it.saved(2)
    it.push()
    it.bare.git("update-ref", "-d", f"refs/heads/savepoints/{it.slug}")
    it.saved(1)
    with pytest.raises(RolledBackError, match="has no branch") as refused:
        it.push()
    assert "--accept-remote" in refused.value.hint
    assert it.bare.tip(it.slug) == ""


def test_that_is_known_without_the_remote_tracking_ref(it: Pushing) -> None:
    """The trusted head lies outside the store."""
    it.saved(1)
    it.push()
    (it.layer.git_dir / f"refs/remotes/origin/savepoints/{it.slug}").unlink()
    it.bare.git("update-ref", "-d", f"refs/heads/savepoints/{it.slug}")
    with pytest.raises(RolledBackError):
        it.push()


def test_that_is_known_without_the_trusted_head(it: Pushing) -> None:
    it.saved(1)
    it.push()
    Path(it.layer.paths.trusted).unlink()
    it.bare.git("update-ref", "-d", f"refs/heads/savepoints/{it.slug}")
    with pytest.raises(RolledBackError):
        it.push()


@pytest.mark.parametrize("more", [0, 1])
def test_a_remote_that_went_back_is_not_silently_moved_on(it: Pushing, more: int) -> None:
    """A plain push would move it forward again and hide that it went back."""
    it.saved(3)
    it.push()
    older = it.layer.history()[0]
    it.bare.put(it.slug, older)
    if more:
        it.saved(more)
    with pytest.raises(RolledBackError, match="went back"):
        it.push()
    assert it.bare.tip(it.slug) == older
    assert it.head().remote_tip == it.tracking() == it.layer.history()[2]


def test_a_remote_in_whose_place_another_stands_is_rolled_back(it: Pushing, tmp_path: Path) -> None:
    it.saved(2)
    it.push()
    other = tmp_path / "other"
    other.mkdir()
    stranger = Pushing.new(other)
    stranger.saved(3)
    stranger.push()
    it.bare.path.rename(tmp_path / "gone.git")
    stranger.bare.path.rename(it.bare.path)
    with pytest.raises(RolledBackError, match="has no branch"):
        it.push()
    it.bare.put(it.slug, stranger.layer.tip())
    with pytest.raises(RolledBackError, match="was replaced"):
        it.push()


def test_a_foreign_commit_on_top_is_divergence(it: Pushing) -> None:
    """Digital-Process-Tools/claude-remember#253: it looked like a network hiccup for weeks."""
    it.saved(2)
    it.push()
    it.bare.put(it.slug, it.bare.foreign_commit(it.layer.tip()))
    with pytest.raises(RemoteDivergedError) as refused:
        it.push()
    assert refused.value.exit_code == 22
    it.saved(1)
    with pytest.raises(RemoteDivergedError):
        it.push()


def test_a_branch_that_was_there_before_us_is_divergence(it: Pushing) -> None:
    it.bare.put(it.slug, it.bare.foreign_commit(None))
    it.saved(1)
    with pytest.raises(RemoteDivergedError):
        it.push()


def test_a_remote_that_is_ahead_leaves_the_local_behind(it: Pushing) -> None:
    it.saved(2)
    it.push()
    kept = it.layer.built.index_file.read_bytes(), it.layer.tip()
    it.saved(2)
    it.push()
    it.layer.built.index_file.write_bytes(kept[0])
    it.layer.git("update-ref", it.layer.ref, kept[1])
    with pytest.raises(RolledBackError, match="has records up to 5") as behind:
        it.push()
    assert not isinstance(behind.value, RemoteDivergedError)
    assert "fsck --repair" in behind.value.hint


def test_what_is_fetched_to_compare_overwrites_nothing(it: Pushing) -> None:
    it.saved(2)
    it.push()
    before = it.layer.lines("for-each-ref", "--format=%(refname) %(objectname)", "refs/heads")
    tips = [it.bare.foreign_commit(it.layer.tip(), f"{n}.txt") for n in range(2)]
    for tip in tips:
        it.bare.put(it.slug, tip)
        with pytest.raises(RemoteDivergedError):
            it.push()
    after = it.layer.lines("for-each-ref", "--format=%(refname) %(objectname)")
    assert set(before) <= set(after)
    assert {f"refs/savepoint/seen/{tip} {tip}" for tip in tips} <= set(after)
    assert it.tracking() == it.layer.tip()


def test_a_link_in_the_tree_is_nothing_of_ours(it: Pushing) -> None:
    """A snapshot that is a symbolic link."""
    it.saved(2)
    it.push()
    one = it.layer.built.records()[-1]
    path = f"{one.snapshot_file}.zst.age"
    link = it.bare.foreign_commit(it.layer.tip(), path, mode="120000")
    message = it.layer.git("log", "-1", "--format=%B", it.layer.tip())
    tree = it.bare.git("rev-parse", f"{link}^{{tree}}")
    evil = it.bare.git("commit-tree", tree, "-p", it.layer.tip(), stdin=message)
    it.bare.put(it.slug, evil)
    with pytest.raises(RemoteDivergedError, match="no plain file"):
        it.push()


def test_unsound_objects_are_not_taken(it: Pushing) -> None:
    """A tree with an entry `.git`: git itself finds it when it is told to look."""
    it.saved(1)
    it.push()
    blob = it.bare.git("hash-object", "-w", "--stdin", stdin=b"x")
    entry = b"100644 .git\0" + bytes.fromhex(blob)
    tree = it.bare.git("hash-object", "--literally", "-t", "tree", "-w", "--stdin", stdin=entry)
    evil = it.bare.git("commit-tree", tree, "-p", it.layer.tip(), "-m", "x")
    it.bare.put(it.slug, evil)
    with pytest.raises(RemoteDivergedError, match="unsound"):
        it.push()
    assert not it.layer.lines("for-each-ref", "refs/savepoint")
