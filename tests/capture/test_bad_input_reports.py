"""What others reported: two sessions in one file, a worktree, a project that was moved."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from savepoint.store import savepoints
from savepoint.store.fsck import fsck
from tests.fault.scene import Scene, record, session_id

if TYPE_CHECKING:
    from savepoint.core.record import Record


def test_two_sessions_in_one_file(scene: Scene) -> None:
    """anthropics/claude-code#30802: switching sessions inside the client writes the new session's
    records into the old one's file.
    """
    path = scene.transcript(1)
    for number, session in enumerate([1] * 20 + [2] * 10):
        with path.open("ab") as file:
            file.write(record(session, number, 60))
    scene.rest(1)
    for session in (2, 1):
        assert scene.fire(payload=scene.payload(session, transcript_path=str(path))).is_quiet
    with path.open("ab") as file:
        for number in range(5):
            file.write(record(2, 100 + number, 60))
    scene.rest(1)
    assert scene.fire(payload=scene.payload(2, transcript_path=str(path))).is_quiet
    assert scene.log() == []
    counts = [told["sessions"] for told in map(_history, [scene] * 3, scene.saves())]
    assert counts[:2] == [{session_id(1): 20, session_id(2): 10}] * 2
    assert counts[2] == {session_id(1): 20, session_id(2): 15}
    assert scene.conversation() == path.read_bytes()
    assert [scene.document(one)["notes"] for one in scene.saves()] == [[], [], []], "no rewrite"
    assert scene.stored_twice() == []
    assert scene.damage() == []


def _history(scene: Scene, one: Record) -> dict[str, object]:
    told = scene.document(one)["conversation_history"]
    assert isinstance(told, dict)
    return dict(told)


def test_the_agent_entered_a_worktree(scene: Scene) -> None:
    """anthropics/claude-code#87890: the hooks' project folder stays at the first checkout."""
    tree = scene.folder / "wt"
    scene.git("worktree", "add", "-q", "-b", "f", str(tree))
    (tree / "a.py").write_text("print(3)\n")
    scene.say(3)
    assert scene.fire(payload=scene.payload(cwd=str(tree))).is_quiet
    state = scene.document()["git_state"]
    assert isinstance(state, dict)
    assert state["branch"] == "f"
    assert state["current_commit"] == scene.git("rev-parse", "f")
    assert state["roots"] == {"project": str(scene.project), "worktree": str(tree)}
    assert scene.files()["changes:a.py"] == b"print(3)\n", "its change, not the project's"
    assert len(scene.saves()) == 1


@pytest.mark.parametrize("where", ["project", "moved"])
def test_the_project_was_moved_and_a_link_left_behind(scene: Scene, where: str) -> None:
    """anthropics/claude-code#71568: the fire before the adoption is not lost, and those behind it
    are of the old store, not of the one that was made for the folder meanwhile.
    """
    for _ in range(3):
        scene.say(3)
        assert scene.fire().is_quiet
    old = scene.paths
    time.sleep(1)  # times of the log are in seconds
    moved = scene.folder / "moved"
    scene.project.rename(moved)
    scene.project.symlink_to(moved)
    scene.say(3)
    folder = str(scene.folder / where)
    environment = scene.environment(CLAUDE_PROJECT_DIR=folder)
    assert scene.fire(payload=scene.payload(cwd=folder), env=environment).is_quiet
    assert len(savepoints.records(old).saves) == 3, "an inode alone is not the same project"
    assert scene.log()[-1]["session_id"] == session_id(1)
    adopted = scene.command("init", "--adopt", old.store.id[:8], "-C", str(moved))
    assert adopted.code == 0, adopted.err
    assert len(savepoints.records(old).saves) == 4
    shown = ("show", "--only", "conversation", "-C", str(moved))
    assert scene.command(*shown).out == scene.transcript().read_bytes()
    for name in ("project", "moved"):
        scene.say(1)
        environment = scene.environment(CLAUDE_PROJECT_DIR=str(scene.folder / name))
        assert scene.fire(env=environment).is_quiet
        assert scene.command(*shown).out == scene.transcript().read_bytes()
    assert len(savepoints.records(old).saves) == 6
    assert [one.detail for one in fsck.fsck(old.store, time.time()).items if one.exit_code] == []
