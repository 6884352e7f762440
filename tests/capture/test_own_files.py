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
from savepoint.capture.transcript import open_transcript
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
    with pytest.raises(TranscriptError, match="belongs to savepoint"):
        save_consciousness_state(_request(home, project, str(seed)))


def _request(home: Home, project: Path, transcript: str) -> Request:
    return Request(
        home=home.path,
        project=str(project),
        cwd=str(project),
        config_dir=str(project),
        session_id="",
        transcript=transcript,
        trigger="manual",
        now=1_800_000_000,
        deadline=time.monotonic() + 120,
        environment={},
        even_if_unchanged=True,
    )


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


_PEM = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n-----END OPENSSH PRIVATE KEY-----\n"
_SESSION = "11111111-1111-4111-8111-111111111111"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("id_ed25519", "whatever is in it\n"),
        (".env", "TOKEN=secret\n"),
        ("payer-keypair.json", '{"secret": "123"}\n'),
        (f"{_SESSION}.jsonl", _PEM),
        (f"{_SESSION}.jsonl", "# made today\nAGE-SECRET-KEY-1QQQ\n"),
        (f"{_SESSION}.jsonl", json.dumps(list(range(64)))),
    ],
)
def test_a_key_file_of_the_user_is_no_session(tmp_path: Path, name: str, content: str) -> None:
    """A payload that named one had it stored whole as the conversation, and pushed."""
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(TranscriptError, match="and holds no record"):
        open_transcript(str(path), str(tmp_path / "home"))


@pytest.mark.parametrize("before", ["", _PEM])
def test_a_session_is_one_whatever_it_is_called_or_begins_with(tmp_path: Path, before: str) -> None:
    path = tmp_path / "id_ed25519.jsonl"
    path.write_text(before + '{"type":"user"}\n')
    os.close(open_transcript(str(path), str(tmp_path / "home")))


def test_a_key_beside_a_session_is_left_out_and_told_of(
    place: tuple[Home, Path, Path], tmp_path: Path
) -> None:
    home, project, _ = place
    folder = tmp_path / ".claude" / "projects" / re.sub("[^A-Za-z0-9]", "-", str(project))
    results = folder / _SESSION / "tool-results"
    results.mkdir(parents=True)
    (results / "x.txt").write_text(_PEM)
    transcript = folder / f"{_SESSION}.jsonl"
    transcript.write_text(json.dumps({"type": "user", "sessionId": _SESSION}) + "\n")
    request = _request(home, project, str(transcript))
    saved = save_consciousness_state(request._replace(config_dir=str(tmp_path / ".claude")))
    assert saved is not None
    document = savepoints.open_snapshot(saved.paths, saved.record).document
    assert "x.txt holds a private key and holds no record" in json.dumps(document["omitted"])
