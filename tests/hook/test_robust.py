"""Fires that lie, come too often, or come where nothing works: exit 0, nothing in the way of the
agent, at most one savepoint a state, and nothing lost that was acknowledged.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from savepoint.capture.agents import claude_places
from savepoint.core import limits
from tests.fault.scene import HOOK, Scene, hurried, run, session_id

EVENTS = ["PreCompact", "SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project, a store, and a session that has something to save."""
    scene = Scene.make(tmp_path / "scene")
    scene.say(5)
    return scene


def notes(scene: Scene) -> str:
    """What the newest snapshot says of how it came to be."""
    return json.dumps(scene.document()["notes"])


# What the agent says is wrong


def test_two_to_four_fires_for_one_compaction_are_one_savepoint(scene: Scene) -> None:
    """claude-code-conductor 2.44: with different payloads each."""
    for more in (
        {"trigger": "auto", "custom_instructions": None},
        {"trigger": "manual", "custom_instructions": ""},
        {"trigger": "auto", "prompt_id": "x", "permission_mode": "plan"},
        {"trigger": "auto", "agent_id": "a1"},
    ):
        assert scene.fire(payload=scene.payload(**more)).is_quiet
    assert len(scene.saves()) == 1


@pytest.mark.parametrize("path", [None, "", "/no/such/file.jsonl", "stale"])
def test_a_transcript_that_is_not_where_it_is_said_to_be(scene: Scene, path: str | None) -> None:
    """claude-code#13668, #76362: it is looked for by session id, and by nothing else."""
    name = claude_places.folder_name(str(scene.project))
    scene.sessions.rename(scene.sessions.parent / name)
    scene.sessions.symlink_to(name)
    scene.say(3, session=2)  # the newest is another's
    payload = scene.payload(1, transcript_path=path)
    assert scene.fire(payload=payload).is_quiet
    (one,) = scene.saves()
    assert one.body["session_id"] == session_id(1)
    assert scene.conversation() == scene.transcript(1).read_bytes()


def test_a_transcript_that_nobody_has_is_said_to_be_missing(scene: Scene) -> None:
    assert scene.fire(payload=scene.payload(9, transcript_path="")).is_quiet
    document = scene.document()
    assert scene.conversation() is None
    assert "transcript" in {one["what"] for one in document["omitted"]}  # type: ignore[index,union-attr,call-overload]


@pytest.mark.parametrize("path", ["", "/no/such/file.jsonl", "a folder"])
def test_without_a_transcript_there_is_one_savepoint_a_state(scene: Scene, path: str) -> None:
    """Each fire made one more. A change of the repository is another state."""
    told = str(scene.folder) if path == "a folder" else path
    for trigger in ("auto", "manual", "auto"):
        payload = scene.payload(9, transcript_path=told, trigger=trigger)
        assert scene.fire(payload=payload).is_quiet
    assert len(scene.saves()) == 1
    assert scene.pending() == []
    (scene.project / "a.py").write_text("print(3)\n")
    for _ in range(2):
        assert scene.fire(payload=scene.payload(9, transcript_path=told)).is_quiet
    assert len(scene.saves()) == 2
    assert b"print(3)\n" in scene.files().values()
    shutil.rmtree(scene.store.sessions)  # what a cache knew, the index and the snapshot know
    Path(scene.store.sessions).mkdir(mode=0o700)
    assert scene.fire(payload=scene.payload(9, transcript_path=told)).is_quiet
    assert len(scene.saves()) == 2
    assert scene.damage() == []


def test_without_a_key_there_is_one_draft_a_state(scene: Scene) -> None:
    """Each fire kept one more, and each became a savepoint when the key was back."""
    key, away = Path(scene.paths.authority), scene.folder / "away"
    key.rename(away)
    for event in ("PreCompact", "PreCompact", "Stop", "SessionEnd"):
        assert scene.fire(event=event).is_quiet
    assert len([name for name in scene.pending() if name.endswith(".draft")]) == 1
    scene.say(1)
    assert scene.fire().is_quiet
    assert len([name for name in scene.pending() if name.endswith(".draft")]) == 2
    away.rename(key)
    scene.say(1)
    assert scene.fire().is_quiet
    assert len(scene.saves()) == 3
    assert scene.conversation() == scene.transcript().read_bytes()
    assert scene.pending() == []
    assert scene.damage() == []


@pytest.mark.parametrize("other", ["passwd", "a session of another", "a folder"])
def test_a_file_without_a_record_of_the_session_is_not_its_transcript(
    scene: Scene, other: str
) -> None:
    """`/etc/passwd` became the newest conversation of a session, and counted as whole."""
    name = claude_places.folder_name(str(scene.project))
    scene.sessions.rename(scene.sessions.parent / name)
    scene.sessions.symlink_to(name)
    path = scene.folder / "passwd"
    path.write_text("root:x:0:0\n")
    if other == "a session of another":
        path = scene.transcript(2)
        scene.say(3, session=2)
    elif other == "a folder":
        path = scene.folder
    assert scene.fire(payload=scene.payload(1, transcript_path=str(path))).is_quiet
    assert scene.conversation() == scene.transcript(1).read_bytes()
    scene.transcript(1).unlink()  # then there is nothing better, and what is there is marked
    assert scene.fire(payload=scene.payload(1, transcript_path=str(path))).is_quiet
    (_, one) = scene.saves()
    assert one.body["consciousness_preserved"] is False
    assert str(path) in json.dumps(scene.document()["omitted"])
    assert scene.conversation() == (None if path.is_dir() else path.read_bytes())


def test_a_transcript_under_a_name_of_its_own(scene: Scene) -> None:
    path = scene.folder / "moved.jsonl"
    scene.transcript().rename(path)
    assert scene.fire(payload=scene.payload(transcript_path=str(path))).is_quiet
    assert scene.conversation() == path.read_bytes()
    assert scene.document()["omitted"] == []


def test_a_transcript_that_is_flushed_late_is_waited_for(scene: Scene) -> None:
    """claude-code#15812: about 100 ms after the hook has started."""
    process = subprocess.Popen(
        [*HOOK, "PreCompact"], cwd=scene.project, env=scene.environment(), stdin=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(scene.payload(trigger="auto"))
    process.stdin.close()
    time.sleep(0.1)
    with scene.transcript().open("ab") as file:
        file.write(b'{"type":"user","sessionId":"x","message":{"content":"LATE"}}\n')
    assert process.wait(timeout=180) == 0
    assert b"LATE" in (scene.conversation() or b"")


def test_a_transcript_that_goes_on_growing_is_not_waited_for_for_ever(scene: Scene) -> None:
    grow = 'while :; do echo "{}" >> "$0"; sleep 0.05; done'
    writer = subprocess.Popen(["sh", "-c", grow, str(scene.transcript())])
    try:
        assert scene.fire(payload=scene.payload(trigger="auto")).is_quiet
    finally:
        writer.kill()
        writer.wait()
    (one,) = scene.saves()
    held = scene.conversation(one) or b""
    assert scene.transcript().read_bytes().startswith(held[: held.rfind(b"\n")])


def test_an_automatic_compaction_has_an_unknown_scope(scene: Scene) -> None:
    """claude-code#91910: a subagent's bears the session's id and path."""
    scopes: list[tuple[dict[str, Any], str]] = [
        ({"trigger": "manual"}, "main"),
        ({"trigger": "auto"}, "unknown"),
        ({"trigger": "auto", "agent_id": "a1", "agent_type": "Explore"}, "subagent"),
    ]
    for more, scope in scopes:
        scene.say(1)
        assert scene.fire(payload=scene.payload(**more)).is_quiet
        history: Any = scene.document()["conversation_history"]
        assert history["scope"] == scope


# It is run badly


def test_a_gigabyte_on_stdin(scene: Scene) -> None:
    command = f"head -c 1000000000 /dev/zero | exec {' '.join(HOOK)} PreCompact"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=scene.project,
        env=scene.environment(),
        capture_output=True,
        check=False,
        timeout=180,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert scene.damage() == []


@pytest.mark.parametrize("has_store", [False, True])
@pytest.mark.parametrize("payload", [b"", b"{}"])
def test_tried_by_hand_it_makes_no_store_and_no_session(
    tmp_path: Path, payload: bytes, *, has_store: bool
) -> None:
    """`savepoint-hook PreCompact </dev/null` made both, and that session became `latest`."""
    scene = Scene.make(tmp_path / "scene", store=has_store)
    scene.say(1)
    environment = scene.environment()
    del environment["CLAUDE_PROJECT_DIR"]  # which an agent sets
    if has_store:
        assert scene.fire(env=environment).is_quiet
    assert scene.fire(payload=payload, env=environment).is_quiet
    assert "names no session" in str(scene.log()[-1]["reason"])
    if has_store:
        assert json.loads(scene.command("status", "--json").out)["missed_fires"] == 0
        assert [one.body["session_id"] for one in scene.saves()] == [session_id(1)]
    else:
        assert not (scene.home / "stores").exists()


def test_a_folder_alone_is_enough_to_save_its_state(scene: Scene) -> None:
    environment = scene.environment()
    del environment["CLAUDE_PROJECT_DIR"]
    payload = json.dumps({"cwd": str(scene.project)}).encode()
    assert scene.fire(payload=payload, env=environment).is_quiet
    assert len(scene.saves()) == 1


@pytest.mark.parametrize("arguments", [["--help"], ["PreCompact"]])
def test_a_person_is_told_what_it_is(tmp_path: Path, arguments: list[str]) -> None:
    """--help, or a terminal where an agent has a pipe."""
    scene = Scene.make(tmp_path / "scene", store=False)
    ours, theirs = os.openpty()
    done = subprocess.run(
        [*HOOK, *arguments],
        cwd=scene.project,
        env=scene.environment(),
        stdin=theirs,
        capture_output=True,
        check=False,
        timeout=60,
    )
    os.close(ours)
    os.close(theirs)
    assert done.returncode == 0
    assert b"Usage: savepoint-hook EVENT" in (done.stdout if "--help" in arguments else done.stderr)
    assert not list(scene.home.iterdir())


@pytest.mark.parametrize("event", EVENTS)
def test_hostile_variables(scene: Scene, event: str) -> None:
    environment = scene.environment(
        GIT_DIR="/nowhere",
        GIT_INDEX_FILE="/nowhere",
        GIT_WORK_TREE="/",
        GIT_CONFIG_COUNT="1",
        GIT_CONFIG_KEY_0="core.fsmonitor",
        GIT_CONFIG_VALUE_0="touch /tmp/never",
        LANG="C",
        LC_ALL="C",
        TZ="nonsense",
    )
    assert scene.fire(event=event, env=environment).is_allowed(event)
    assert scene.conversation() == scene.transcript().read_bytes()
    git: Any = scene.document()["git_state"]
    assert git["branch"] == "main"
    assert [one["path"] for one in git["changes"]["files"]] == ["a.py"]


@pytest.mark.parametrize("event", EVENTS)
def test_unknown_arguments_and_fields_are_nothing(scene: Scene, event: str) -> None:
    payload = scene.payload(event=event, future={"deep": [1, None]}, source=None, model=7)
    command = [*HOOK, event, "--new-flag", "x"]
    assert run(command, scene.project, scene.environment(), payload).is_allowed(event)
    assert len(scene.saves()) == 1


@pytest.mark.parametrize("event", EVENTS)
def test_a_home_that_cannot_be_made(tmp_path: Path, event: str) -> None:
    """cli-sub-agent#2958: one line on stderr with path and reason, the project untouched; and the
    next event that finds a home saves everything.
    """
    scene = Scene.make(tmp_path / "scene", store=False)
    said = scene.say(3)
    before = sorted(scene.project.rglob("*"))
    scene.home.rmdir()
    scene.home.write_bytes(b"in the way")
    fired = scene.fire(event=event)
    assert (fired.code, fired.out) == (0, b"")
    (line,) = fired.err.splitlines()
    assert line.startswith("savepoint-hook: ")
    assert str(scene.home) in line
    assert sorted(scene.project.rglob("*")) == before
    assert "home" in [
        one["name"]
        for one in json.loads(scene.command("doctor", "--json").out)["checks"]
        if one["result"] == "fail"
    ]
    scene.home.unlink()
    assert scene.fire(event="SessionStart").is_allowed("SessionStart")
    assert scene.conversation() == said


# Other processes


def test_fires_during_a_save_and_after_a_killed_one(scene: Scene) -> None:
    stopped = scene.start()
    end = time.monotonic() + 120
    while not scene.pending() and not scene.saves() and time.monotonic() < end:
        time.sleep(0.001)
    stopped.send_signal(signal.SIGSTOP)
    try:
        for event in EVENTS[1:]:
            fired = run(
                hurried(event, 2), scene.project, scene.environment(), scene.payload(event=event)
            )
            assert fired.code == 0
    finally:
        stopped.kill()
        stopped.communicate()
    assert scene.fire().is_quiet
    assert scene.conversation(scene.saves(1)[-1]) == scene.transcript().read_bytes()
    assert scene.damage() == []
    assert scene.pending() == []


def test_fires_while_a_push_hangs(scene: Scene) -> None:
    """The worker has the push; no fire waits for it longer than it may."""
    remote = scene.folder / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    hook = remote / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\nsleep 30\nexit 1\n")
    hook.chmod(0o755)
    assert scene.command("config", "remote", str(remote)).code == 0
    for number in range(3):
        scene.say(1)
        begun = time.monotonic()
        assert scene.fire().is_quiet
        assert time.monotonic() - begun < limits.SAVE_AND_PUSH_SECONDS + 30
        assert len(scene.saves()) == number + 1
    for event in EVENTS[1:]:
        scene.say(1)
        assert scene.fire(event=event).is_allowed(event)
    assert scene.conversation() == scene.transcript().read_bytes()
    assert scene.damage() == []


def test_a_worker_that_died_holds_nobody_up(scene: Scene) -> None:
    outbox = Path(scene.store.outbox)
    outbox.write_bytes(b"no database")
    for suffix in ("lock", "next"):
        (outbox.parent / f"worker.{suffix}").touch()
    assert scene.fire().is_quiet
    assert scene.conversation() == scene.transcript().read_bytes()


def test_the_log_may_be_anything(scene: Scene) -> None:
    """It is for people: what it cannot take stops no save."""
    log = Path(scene.paths.continuity_log)
    log.unlink(missing_ok=True)
    log.mkdir()
    for event in EVENTS:
        scene.say(1)
        assert scene.fire(event=event).is_allowed(event)
        assert scene.fire(event=event).is_allowed(event)
    assert scene.conversation() == scene.transcript().read_bytes()


def test_the_caches_of_a_session_may_be_anything(scene: Scene) -> None:
    assert scene.fire(event="Stop").is_quiet
    key = session_id(1)
    for path in (scene.store.session_context(key), scene.store.session_alarm(key)):
        for data in (b"", b"[]", b'{"v":2}', os.urandom(40)):
            Path(path).write_bytes(data)
            scene.say(1)
            assert scene.fire(event="Stop").is_quiet
            assert scene.fire(event="UserPromptSubmit").is_quiet
    shutil.rmtree(scene.store.sessions)
    Path(scene.store.sessions).mkdir(mode=0o700)
    scene.say(1)
    assert scene.fire(event="Stop").is_quiet
    assert scene.conversation() == scene.transcript().read_bytes()
    assert scene.damage() == []
