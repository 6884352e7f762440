"""Files that a session names: what is not the project's is listed, and never stored."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from tests.fault.scene import Scene, session_id

if TYPE_CHECKING:
    from pathlib import Path

MARK = "this-must-not-be-stored"


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project and a store."""
    return Scene.make(tmp_path / "scene")


def read_by_the_agent(scene: Scene, path: str) -> None:
    """A record that shows that the agent has read a file, but not what was in it."""
    shown = {"filePath": path, "content": "one\n", "numLines": 1, "startLine": 1, "totalLines": 1}
    told = {
        "type": "user",
        "sessionId": session_id(1),
        "message": {"role": "user", "content": [{"type": "tool_result", "content": "1\tone"}]},
        "toolUseResult": {"type": "text", "file": shown},
    }
    with scene.transcript().open("a") as file:
        file.write(json.dumps(told, separators=(",", ":")) + "\n")
    scene.rest()


def entry(scene: Scene, name: str) -> dict[str, object]:
    """What the newest savepoint says of a loaded file."""
    listed = scene.document()["loaded_files"]
    assert isinstance(listed, dict)
    found = listed[name]
    assert isinstance(found, dict)
    return dict(found)


def assert_unstored(scene: Scene, name: str, reason: str) -> None:
    assert reason in str(entry(scene, name)["reason"])
    assert entry(scene, name)["segments"] is None
    assert entry(scene, name)["sha256"] is None
    held = b"".join(scene.files().values())
    assert MARK.encode() not in held


@pytest.mark.parametrize("how", ["file", "folder", "chain", "up", "absolute"])
def test_a_link_out_of_the_project_is_not_followed(scene: Scene, how: str) -> None:
    outside = scene.folder / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text(MARK)
    named = scene.project / "link"
    if how == "file":
        named.symlink_to(outside / "secret.txt")
    elif how == "folder":
        (scene.project / "folder").symlink_to(outside)
        named = scene.project / "folder/secret.txt"
    elif how == "chain":
        (scene.project / "second").symlink_to(outside / "secret.txt")
        named.symlink_to("second")
    elif how == "up":
        named = scene.project / "../outside/secret.txt"
    else:
        named = outside / "secret.txt"
    read_by_the_agent(scene, str(named))
    assert scene.fire().is_quiet
    assert_unstored(scene, str(named), "outside the project")


def test_a_link_inside_the_project_is(scene: Scene) -> None:
    (scene.project / "b.py").write_text("one\n")
    (scene.project / "link").symlink_to("b.py")
    read_by_the_agent(scene, str(scene.project / "link"))
    assert scene.fire().is_quiet
    assert entry(scene, "b.py")["reason"] is None
    assert entry(scene, "b.py")["changed"] is False
    assert scene.files()["files:b.py"] == b"one\n"


@pytest.mark.parametrize("kind", ["fifo", "folder", "device", "gone", "huge", "loop"])
def test_what_is_no_file_does_not_stop_the_save(scene: Scene, kind: str) -> None:
    path = scene.project / "strange"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(1 << 40)  # sparse
    elif kind == "loop":
        path.symlink_to("strange")
    read_by_the_agent(scene, str(path))
    assert scene.fire().is_quiet
    assert scene.log() == []
    listed = scene.document()["loaded_files"]
    assert isinstance(listed, dict)
    assert [bool(one["reason"]) for one in listed.values()] == [True]  # type: ignore[index,call-overload]
    assert scene.conversation() == scene.transcript().read_bytes()


@pytest.mark.parametrize(
    "name", [".env", "IDENTITY.md", "legal_case/a.txt", "id_rsa", "x.pem", "sub/.env.local"]
)
def test_what_is_never_captured_is_listed_with_its_reason(scene: Scene, name: str) -> None:
    path = scene.project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(MARK)
    read_by_the_agent(scene, str(path))
    assert scene.fire().is_quiet
    assert_unstored(scene, name, "")
    assert entry(scene, name)["reason"]


def test_what_gitignore_excludes_is_listed_and_not_stored(scene: Scene) -> None:
    (scene.project / ".gitignore").write_text("out/\n")
    (scene.project / "out").mkdir()
    (scene.project / "out/a.txt").write_text(MARK)
    read_by_the_agent(scene, str(scene.project / "out/a.txt"))
    assert scene.fire().is_quiet
    assert_unstored(scene, "out/a.txt", "gitignore")
