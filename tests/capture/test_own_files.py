"""Our own keys are never taken for a session, whatever the payload names."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from savepoint.capture.request import Request
from savepoint.core.errors import TranscriptError
from savepoint.core.spelling import Instance
from savepoint.save import save_consciousness_state
from savepoint.store import birth, registry, savepoints
from savepoint.store.layout import Home
from tests.structure.sources import PROJECT

_HOOK = f"import sys; sys.path.insert(0, {str(PROJECT)!r}); from savepoint import hook; hook.main()"


@pytest.fixture
def place(tmp_path: Path) -> tuple[Home, Path, Path]:
    """A home, a project, and the root seed of its store."""
    project = tmp_path / "project"
    project.mkdir()
    home = Home(str(tmp_path / "home"))
    store = birth.create_store(home, str(project), Instance("Ada", 1), 1_800_000_000)
    return home, project, Path(store.root_seed)


def test_root_seed_is_no_transcript_for_a_person(place: tuple[Home, Path, Path]) -> None:
    home, project, seed = place
    request = Request(
        home=home.path,
        project=str(project),
        cwd=str(project),
        config_dir=str(project),
        session_id="",
        transcript=str(seed),
        trigger="manual",
        now=1_800_000_000,
        deadline=time.monotonic() + 120,
        environment={},
        even_if_unchanged=True,
    )
    with pytest.raises(TranscriptError, match="belongs to savepoint"):
        save_consciousness_state(request)


def test_root_seed_is_no_transcript_for_a_hook(
    place: tuple[Home, Path, Path], tmp_path: Path
) -> None:
    home, project, seed = place
    link = tmp_path / "11111111-1111-4111-8111-111111111111.jsonl"
    link.symlink_to(seed.parent)
    payload = {
        "session_id": "11111111-1111-4111-8111-111111111111",
        "transcript_path": str(link / "root.seed"),
        "cwd": str(project),
        "trigger": "manual",
    }
    subprocess.run(
        [sys.executable, "-I", "-c", _HOOK, "PreCompact"],
        input=json.dumps(payload).encode(),
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SAVEPOINT_HOME": home.path},
        check=True,
    )
    secret = seed.read_bytes()
    files = [one for one in Path(home.path).rglob("*") if one.is_file() and "keys" not in one.parts]
    snapshots = [one for one in files if one.name.startswith("snapshot_")]
    assert "belongs to savepoint" in snapshots[0].read_text()
    assert not [one for one in files if secret in one.read_bytes()]


@pytest.mark.parametrize("where", ["transcript", "companion", "read", "untracked"])
@pytest.mark.parametrize("which", ["root_seed", "age_identity", "recipients"])
def test_a_hard_link_to_a_key_is_not_captured(
    place: tuple[Home, Path, Path], tmp_path: Path, where: str, which: str
) -> None:
    home, project, _ = place
    session = "11111111-1111-4111-8111-111111111111"
    subprocess.run(["git", "init", "-q", str(project)], check=True)
    folder = tmp_path / ".claude" / "projects" / re.sub("[^A-Za-z0-9]", "-", str(project))
    results = folder / session / "tool-results"
    results.mkdir(parents=True)
    transcript = folder / f"{session}.jsonl"
    shown = {"filePath": str(project / "x"), "content": "x", "numLines": 1, "startLine": 1}
    said = {"type": "user", "sessionId": session, "toolUseResult": {"file": shown}}
    transcript.write_text(json.dumps(said) + "\n", "utf-8")
    link = {
        "transcript": transcript,
        "companion": results / "x.txt",
        "read": project / "x",
        "untracked": project / "y",
    }[where]
    link.unlink(missing_ok=True)
    store = registry.find(home, str(project))
    secret = Path(getattr(store, which))
    os.link(secret, link)
    payload = {
        "session_id": session,
        "transcript_path": str(transcript),
        "cwd": str(project),
        "trigger": "manual",
    }
    subprocess.run(
        [sys.executable, "-I", "-c", _HOOK, "PreCompact"],
        input=json.dumps(payload).encode(),
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path), "SAVEPOINT_HOME": home.path},
        check=True,
    )
    paths = store.instance(os.listdir(store.instances)[0])
    one = savepoints.find(paths, "latest")
    document = savepoints.open_snapshot(paths, one).document
    assert "belongs to savepoint" in json.dumps(document)
    for file in savepoints.files(store, document):
        assert secret.read_bytes() not in b"".join(savepoints.content(store, file))
