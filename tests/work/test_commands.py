"""`sync`, `worker --status` and `config remote`, as a person runs them."""

from __future__ import annotations

import os
import shutil
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.gitlayer.remote import pushed
from savepoint.store import savepoints, trusted
from savepoint.store.locks import Lock
from savepoint.store.session import pending
from tests.gitlayer.remotes import Bare, git
from tests.work.scene import around, created

if TYPE_CHECKING:
    from tests.work.scene import Working

pytestmark = pytest.mark.usefixtures("no_worker", "no_wait")


def _hint(work: Working, *arguments: str) -> tuple[int, str]:
    ran = work.scene(*arguments)
    return ran.code, ran.err


# sync


def test_sync_pushes_and_says_so(work: Working) -> None:
    seq = created(work)
    ran = work.scene.good("sync")
    assert ran.text == f"pushed up to savepoint {seq} of {work.paths.slug} to {work.bare.path}\n"
    work.check_pushed(seq)
    assert work.scene.good("sync").text == f"{work.bare.path} has everything\n"


def test_sync_in_json(work: Working) -> None:
    seq = created(work)
    told = work.scene.good("sync", "--json").json
    assert told == {
        "store": work.store.id,
        "accepted": [],
        "done": [{"kind": "push", "key": work.paths.slug, "seq": seq}],
        "left": [],
    }


def test_sync_without_a_remote_has_nothing_to_push(work: Working) -> None:
    work.scene.good("config", "remote", "--unset")
    created(work)
    ran = work.scene.good("sync")
    assert ran.text == "everything is committed\n"
    assert "config remote URL" in ran.err


def test_what_a_fire_left_is_saved_committed_and_pushed_by_sync(work: Working) -> None:
    note = pending.Note(
        session_id="11111111-2222-4333-8444-555555555555",
        transcript=str(work.scene.transcript),
        project=str(work.scene.project),
        cwd=str(work.scene.project),
        trigger="auto",
        since=1_700_000_000,
        reason="started",
    )
    note.save(work.store, note.session_id)
    work.scene.good("sync")
    (one,) = savepoints.records(work.paths).saves
    work.check_pushed(one.seq)


def test_a_refusal_is_30_with_the_line_of_the_remote(work: Working) -> None:
    work.bare.hook("pre-receive", "echo closed on sundays >&2; exit 1")
    created(work)
    code, err = _hint(work, "sync")
    assert code == 30
    assert "refuses: closed on sundays" in err
    assert "hint: the remote says why" in err


def test_three_different_words(work: Working, tmp_path: Path) -> None:
    """Digital-Process-Tools/claude-remember#253: refused, diverged, unplugged."""
    created(work)
    work.scene.good("sync")
    work.bare.hook("pre-receive", "exit 1")
    seq = created(work)
    assert work.scene("sync").code == 30
    assert _word(work, seq) == "PUSH_REFUSED"
    (work.bare.path / "hooks/pre-receive").unlink()
    foreign = work.bare.foreign_commit(work.bare.tip(work.paths.slug))
    work.bare.put(work.paths.slug, foreign)
    assert work.scene("sync").code == 22
    assert _word(work, seq) == "REMOTE_DIVERGED"
    work.bare.path.rename(tmp_path / "unplugged.git")
    assert work.scene("sync").code == 30
    assert _word(work, seq) == "QUEUED_FOR_PUSH"


def _word(work: Working, seq: int) -> str:
    """As `list` and `status` give it, and they agree."""
    listed = work.scene.good("list", "--json").json["savepoints"]
    word = next(one["layer_2_status"] for one in listed if one["seq"] == seq)
    states = [one["state"] for one in work.scene.good("status", "--json").json["jobs"]]
    assert states == [word]
    return str(word)


def test_a_remote_that_does_not_answer_is_30(work: Working, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        work.scene.good("config", "remote", f"https://127.0.0.1:{server.getsockname()[1]}/x.git")
        created(work)
        began = time.monotonic()
        code, err = _hint(work, "sync", "--timeout", "3")
        assert time.monotonic() - began < 30
    assert code == 30
    assert "out of time" in err


def test_sync_waits_for_a_remote_that_comes_back(work: Working, tmp_path: Path) -> None:
    seq = created(work)
    work.bare.path.rename(tmp_path / "unplugged.git")
    began = time.monotonic()
    assert work.scene("sync", "--wait", "--timeout", "3").code == 30
    assert 2 < time.monotonic() - began < 40
    if os.fork() == 0:
        time.sleep(1)
        (tmp_path / "unplugged.git").rename(work.bare.path)
        os._exit(0)
    work.scene.good("sync", "--wait", "--timeout", "40")
    os.wait()
    work.check_pushed(seq)


def test_sync_beside_a_worker_is_pending(work: Working, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOCK_WAIT_SECONDS", 0.2)
    created(work)
    with Lock(work.store.worker_lock, time.monotonic() + 1):
        ran = work.scene("sync")
    assert ran.code == 3
    assert "left: push" in ran.text
    assert "is held by another savepoint process" in ran.err


@pytest.mark.parametrize("value", ["0", "-1", "nan", "x"])
def test_a_timeout_is_a_number_of_seconds(work: Working, value: str) -> None:
    assert work.scene("sync", "--timeout", value).code == 2


# the ways out, from the command line


def test_emptied(work: Working) -> None:
    seq = created(work)
    work.scene.good("sync")
    work.bare.git("update-ref", "-d", f"refs/heads/savepoints/{work.paths.slug}")
    created(work)
    code, err = _hint(work, "sync")
    assert code == 22
    assert "has no branch" in err
    assert "sync --accept-remote" in err
    work.scene.good("sync", "--accept-remote")
    work.check_pushed(seq + 1)


def test_diverged(work: Working) -> None:
    created(work)
    work.scene.good("sync")
    work.bare.put(work.paths.slug, work.bare.foreign_commit(work.bare.tip(work.paths.slug)))
    seq = created(work)
    code, err = _hint(work, "sync")
    assert code == 22
    assert "sync --accept-remote" in err
    ran = work.scene.good("sync", "--accept-remote")
    assert "somebody else" in ran.text
    assert work.is_pushed()
    assert created(work) > seq
    work.scene.good("sync")
    assert work.is_pushed()
    assert work.scene("verify", "--all").code in {0, 3}


def test_accepting_is_in_the_log_and_in_json(work: Working) -> None:
    created(work)
    work.scene.good("sync")
    work.bare.git("update-ref", "-d", f"refs/heads/savepoints/{work.paths.slug}")
    told = work.scene.good("sync", "--accept-remote", "--json").json
    (one,) = told["accepted"]
    assert one["seq"] == savepoints.records(work.paths).all[-1].seq
    assert "accepted from" in Path(work.paths.continuity_log).read_text()


def test_there_is_nothing_to_accept_without_a_remote(work: Working) -> None:
    work.scene.good("config", "remote", "--unset")
    assert work.scene("sync", "--accept-remote").code == 2


# worker


def test_worker_status(work: Working, tmp_path: Path) -> None:
    assert work.scene.good("worker", "--status", "--json").json == {"running": False, "jobs": []}
    seq = created(work)
    work.bare.path.rename(tmp_path / "unplugged.git")
    work.scene("sync")
    (job,) = work.scene.good("worker", "--status", "--json").json["jobs"]
    assert (job["kind"], job["key"], job["seq"]) == ("push", work.paths.slug, seq)
    assert job["tries"] == 1
    assert 0 <= job["next_in_seconds"] <= 3
    assert "does not appear" in job["error"]
    with Lock(work.store.worker_lock, time.monotonic() + 1):
        ran = work.scene.good("worker", "--status")
    assert ran.text.startswith("a worker is running\npush of ")
    assert "1 attempt, the next in" in ran.text


def test_nobody_starts_a_worker_by_hand(work: Working) -> None:
    code, err = _hint(work, "worker")
    assert code == 2
    assert "--status" in err


# config


@pytest.mark.parametrize("url", ["http://example.org/x", "git://h/x", "ext::sh", "--upload-pack=x"])
def test_a_remote_that_must_not_be_is_refused(work: Working, url: str) -> None:
    assert work.scene("config", "remote", "--", url).code == 2
    assert work.scene.good("config", "remote").text == f"{work.bare.path}\n"


def test_a_password_is_neither_taken_nor_repeated(work: Working) -> None:
    ran = work.scene("config", "remote", "https://ada:hunter2@example.org/x.git")
    assert ran.code == 2
    assert "hunter2" not in ran.err + ran.text
    assert "credential" in ran.err
    assert b"hunter2" not in Path(work.store.config).read_bytes()


def test_what_may_be_a_token_is_not_shown(work: Working) -> None:
    work.scene.good("config", "remote", "https://hunter2@example.org/x.git")
    ran = work.scene.good("config", "--json")
    assert ran.json["remote"] == "https://example.org/x.git"
    assert "hunter2" not in work.scene.good("status", "--json").text
    assert "hunter2" not in work.scene.good("status").text


def test_a_relative_path_is_from_the_project(work: Working) -> None:
    work.scene.good("config", "remote", "../elsewhere.git")
    expected = work.scene.project.parent / "elsewhere.git"
    assert work.scene.good("config", "remote").text == f"{expected}\n"


@pytest.mark.parametrize(("value", "code"), [("3", 0), ("0", 0), ("6", 0), ("7", 2), ("x", 2)])
def test_push_wait(work: Working, value: str, code: int) -> None:
    assert work.scene("config", "push_wait", value).code == code


def test_another_remote_starts_without_the_memory_of_the_old(work: Working, tmp_path: Path) -> None:
    """Neither is what the old one had missed in the new one, nor its refusal waited out."""
    seq = created(work)
    work.scene.good("sync")
    work.bare.hook("pre-receive", "exit 1")
    created(work)
    assert work.scene("sync").code == 30
    other = Bare.new(tmp_path / "other.git")
    work.scene.good("config", "remote", str(other.path))
    head = trusted.load(work.paths)
    assert head is not None
    assert head.remote_tip is None
    assert pushed.commit(around().repository(work.store), work.paths.slug) is None
    assert work.scene.good("status", "--json").json["jobs"][0]["error"] is None
    work.scene.good("sync")
    assert other.git("rev-list", "--count", f"savepoints/{work.paths.slug}") == str(seq)


def test_the_same_remote_again_forgets_nothing(work: Working) -> None:
    created(work)
    work.scene.good("sync")
    work.scene.good("config", "remote", str(work.bare.path))
    assert work.is_pushed()


def test_history_that_only_the_old_remote_has_is_fetched_before_it_is_left(
    work: Working, tmp_path: Path
) -> None:
    for _ in range(3):
        created(work)
    work.scene.good("sync")
    _make_shallow(work)
    other = Bare.new(tmp_path / "other.git")
    work.scene.good("config", "remote", str(other.path))
    work.scene.good("sync")
    assert other.git("rev-list", "--count", f"savepoints/{work.paths.slug}") == "3"


def test_what_another_remote_will_lack_is_told(work: Working, tmp_path: Path) -> None:
    for _ in range(2):
        created(work)
    work.scene.good("sync")
    _make_shallow(work)
    work.bare.path.rename(tmp_path / "unplugged.git")
    ran = work.scene.good("config", "remote", str(tmp_path / "other.git"))
    assert f"another remote will lack the history of {work.paths.slug}" in ran.err


def _make_shallow(work: Working) -> None:
    """As a machine that was bootstrapped has it: one commit."""
    repo = Path(work.store.repository)
    tip = work.bare.tip(work.paths.slug)
    shutil.rmtree(repo / "objects")
    for name in ("pack", "info"):
        (repo / "objects" / name).mkdir(parents=True)
    where = f"--git-dir={repo}"
    git(
        where,
        "fetch",
        "-q",
        "--depth=1",
        f"file://{work.bare.path}",
        f"savepoints/{work.paths.slug}",
    )
    assert (repo / "shallow").read_text().strip() == tip
