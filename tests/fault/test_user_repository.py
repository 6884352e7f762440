"""The user's repository is only read, whatever goes on in it; and no savepoint depends on it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.capture.gitrepo import Repo, fingerprint
from tests.capture.test_repository_hostile import marks, poison
from tests.fault.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project, a store, and a session that has something to save."""
    scene = Scene.make(tmp_path / "scene")
    scene.say(5)
    return scene


def in_the_middle_of_a_merge(scene: Scene) -> None:
    """With a conflict, a staged file, a staged deletion, a stash, and an untracked file."""
    scene.git("add", ".")
    scene.git("commit", "-qm", "second")
    (scene.project / "a.py").write_text("stashed\n")
    scene.git("stash", "-q")
    scene.git("checkout", "-q", "-b", "other", "HEAD~1")
    for name in ("a.py", "b.py", "c.py"):
        (scene.project / name).write_text("other\n")
    scene.git("add", ".")
    scene.git("commit", "-qm", "other")
    scene.git("checkout", "-q", "main")
    merge = ["git", "merge", "-q", "other"]
    assert subprocess.run(merge, cwd=scene.project, capture_output=True, check=False).returncode
    (scene.project / "staged.py").write_text("staged\n")
    scene.git("add", "staged.py")
    scene.git("rm", "-q", "--cached", "c.py")
    (scene.project / "staged.py").write_text("staged, and changed since\n")
    (scene.project / "new.py").write_text("untracked\n")


def in_the_middle_of_a_rebase(scene: Scene) -> None:
    scene.git("commit", "-qam", "second")
    scene.git("checkout", "-q", "-b", "other", "HEAD~1")
    (scene.project / "a.py").write_text("other\n")
    scene.git("commit", "-qam", "other")
    rebase = ["git", "rebase", "-q", "main"]
    assert subprocess.run(rebase, cwd=scene.project, capture_output=True, check=False).returncode


def with_a_live_git(scene: Scene) -> None:
    (scene.project / ".git/index.lock").touch()
    (scene.project / ".git/HEAD.lock").touch()


def detached(scene: Scene) -> None:
    scene.git("checkout", "-q", "--detach")


def unborn(scene: Scene) -> None:
    scene.git("checkout", "-q", "--orphan", "fresh")


def broken(scene: Scene) -> None:
    (scene.project / ".git/index").write_bytes(b"DIRC")
    (scene.project / ".git/HEAD").write_bytes(b"\0\0\0")


STATES = [in_the_middle_of_a_merge, in_the_middle_of_a_rebase, with_a_live_git, detached, unborn]
STATES += [broken]


@pytest.mark.parametrize("state", STATES)
def test_every_byte_and_time_of_it_stays(scene: Scene, state: Callable[[Scene], None]) -> None:
    state(scene)
    before = fingerprint(scene.project)
    for event in ("SessionStart", "PreCompact", "Stop", "SessionEnd"):
        scene.say(1)
        assert scene.fire(event=event).is_allowed(event)
    assert scene.create().code == 0
    assert scene.command("show", "latest").code == 0
    assert scene.command("verify", "--all").code == 0
    assert scene.log() == []
    assert fingerprint(scene.project) == before
    told = scene.document()["git_state"]
    assert isinstance(told, dict)
    if state is in_the_middle_of_a_merge:
        assert told["operation"] == "merge"
        held = scene.files()
        assert held["changes:new.py"] == b"untracked\n"
        assert b"<<<<<<<" in held["changes:a.py"]


def test_variables_of_git_lead_to_no_other_repository(scene: Scene) -> None:
    """A hook that is fired from inside a git hook has them set."""
    other = Repo.with_commit(scene.folder / "other")
    before = fingerprint(other.path)
    environment = scene.environment(
        GIT_DIR=str(other.path / ".git"),
        GIT_INDEX_FILE=str(other.path / ".git/index"),
        GIT_WORK_TREE=str(other.path),
        GIT_OBJECT_DIRECTORY=str(other.path / ".git/objects"),
    )
    assert scene.fire(env=environment).is_quiet
    told = scene.document()["git_state"]
    assert isinstance(told, dict)
    assert told["current_commit"] == scene.git("rev-parse", "HEAD")
    assert fingerprint(other.path) == before


def test_nothing_that_the_repository_names_is_run(scene: Scene) -> None:
    """Filters, textconv, fsmonitor, hooks, aliases: a canary tells (openai/codex#24954)."""
    canary = scene.folder / "canary"
    canary.write_text(f'#!/bin/sh\necho "$0 $*" >> {scene.folder}/MARK\ncat\n')
    canary.chmod(0o755)
    poison(Repo(scene.project), canary)
    for name in ("a.py", "x.process", "y.plain"):
        (scene.project / name).write_text(f"changed {name}\n")
    before = fingerprint(scene.project)
    (scene.folder / "MARK").unlink(missing_ok=True)
    scene.say(1)
    assert scene.fire().is_quiet
    assert scene.create().code == 0
    assert marks(canary) == ""
    assert fingerprint(scene.project) == before
    assert scene.files()["changes:x.process"] == b"changed x.process\n"
    subprocess.run(["git", "status"], cwd=scene.project, capture_output=True, check=False)
    assert marks(canary), "else the canary would be dumb"


def test_what_an_agent_destroys_takes_no_savepoint_with_it(scene: Scene) -> None:
    """`git clean -fdx`, a hard reset, `gc --prune=now`, and in the end the whole `.git`."""
    said = [scene.transcript().read_bytes()]
    assert scene.fire().is_quiet
    for command in (["clean", "-fdxq"], ["reset", "-q", "--hard"], ["gc", "-q", "--prune=now"]):
        scene.git(*command)
        said.append(scene.say(1))
        assert scene.fire().is_quiet
    shutil.rmtree(scene.project / ".git")
    said.append(scene.say(1))
    assert scene.fire().is_quiet
    assert [scene.conversation(one) for one in scene.saves()] == said
    listed = scene.command("list", "--json")
    assert [one["seq"] for one in json.loads(listed.out)["savepoints"]] == [2, 3, 4, 5, 6]
    assert scene.command("verify", "--all").code == 0
    assert scene.command("show", "latest", "--only", "conversation").out == said[-1]
    assert scene.damage() == []
    assert scene.log() == []
    assert os.listdir(scene.project) == ["a.py"]
