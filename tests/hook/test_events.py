"""What each event of the agent does beside saving: the store, the threshold, the log, the facts."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from savepoint.capture.agents import claude_places
from savepoint.core.spelling import Instance
from savepoint.store import birth, config, registry
from savepoint.store.layout import Home
from tests.fault.scene import BIN, HOOK, Fired, Scene, run, session_id

LIMIT = 967_000  # tokens: where the client compacts a session with a window of 1,000,000


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project, a store, and a session that has something to save."""
    scene = Scene.make(tmp_path / "scene")
    scene.say(5)
    return scene


def answer(scene: Scene, tokens: int, model: str = "claude-opus-5-5", session: int = 1) -> None:
    """The model answers, and says how many tokens it was given."""
    usage = {"input_tokens": 5, "cache_read_input_tokens": tokens - 5, "output_tokens": 9}
    message = {
        "role": "assistant",
        "id": f"msg_{tokens}",
        "model": model,
        "usage": usage,
        "content": [],
    }
    append(scene, {"type": "assistant", "uuid": str(tokens), "message": message}, session)


def append(scene: Scene, record: dict[str, Any], session: int = 1) -> None:
    """One more record of the agent."""
    with scene.transcript(session).open("ab") as file:
        file.write(json.dumps({"sessionId": session_id(session), **record}).encode() + b"\n")
    scene.rest(session)


def compact(scene: Scene) -> None:
    """The agent has compacted."""
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "b", "parentUuid": None}
    append(scene, {**boundary, "compactMetadata": {"trigger": "auto", "preTokens": 1}})
    append(scene, {"type": "user", "isCompactSummary": True, "message": {"content": "short"}})


def triggers(scene: Scene) -> list[str]:
    """Of all savepoints."""
    return [str(one.body["trigger"]) for one in scene.saves()]


def greeting(fired: Fired) -> str:
    """What the agent is told."""
    assert fired.is_allowed("SessionStart"), fired
    told: str = json.loads(fired.out)["hookSpecificOutput"]["additionalContext"]
    return told


def continuity(scene: Scene) -> list[str]:
    """The lines of the log for people, without their times."""
    lines = Path(scene.paths.continuity_log).read_text().splitlines()
    return [line.partition(" ")[2] for line in lines]


# The threshold


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit"])
def test_the_threshold_is_passed_once_and_armed_by_a_compaction(scene: Scene, event: str) -> None:
    assert scene.fire(event=event).is_quiet
    for tokens in (LIMIT * 84 // 100, LIMIT * 85 // 100 + 1, LIMIT * 90 // 100):
        answer(scene, tokens)
        assert scene.fire(event=event).is_quiet
    first = {"Stop": "stop", "UserPromptSubmit": "prompt"}[event]
    assert triggers(scene) == [first, "context_limit_approaching"]
    document = scene.document()
    assert document["tokens_used_this_session"] == LIMIT * 85 // 100 + 1
    assert document["context_utilization_percent"] == 85
    assert document["token_source"] == "transcript usage; window from the table of models"
    compact(scene)
    answer(scene, 30_000)
    assert scene.fire(event=event).is_quiet
    answer(scene, LIMIT)
    assert scene.fire(event=event).is_quiet
    assert triggers(scene)[2:] == ["context_limit_approaching"]
    assert scene.damage() == []


def test_another_threshold_and_none(scene: Scene) -> None:
    assert scene.fire(event="Stop").is_quiet
    assert scene.command("config", "threshold", "50").code == 0
    answer(scene, LIMIT // 2 + 1)
    assert scene.fire(event="Stop").is_quiet
    assert triggers(scene)[1:] == ["context_limit_approaching"]
    assert scene.command("config", "threshold", "off").code == 0
    assert json.loads(scene.command("config", "--json").out)["threshold"] == "off"
    compact(scene)
    answer(scene, LIMIT)
    assert scene.fire(event="Stop").is_quiet
    assert len(scene.saves()) == 2
    for wrong in ("0", "101", "x", "8.5"):
        assert scene.command("config", "threshold", wrong).code == 2


@pytest.mark.parametrize(
    ("variables", "settings", "tokens"),
    [
        ({"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"}, "{}", 142_000),
        ({}, '{"autoCompactWindow": 200000}', 142_000),
        ({"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, "{}", 417_000),
    ],
)
def test_it_is_taken_of_the_tokens_at_which_the_client_compacts(
    scene: Scene, variables: dict[str, str], settings: str, tokens: int
) -> None:
    (scene.user / ".claude/settings.json").write_text(settings)
    environment = scene.environment(**variables)
    assert scene.fire(event="Stop", env=environment).is_quiet
    for used in (tokens - 1000, tokens):
        answer(scene, used)
        assert scene.fire(event="Stop", env=environment).is_quiet
    assert triggers(scene) == ["stop", "context_limit_approaching"]
    assert scene.document()["tokens_used_this_session"] == tokens


# A store of its own


def stores(scene: Scene) -> dict[str, str]:
    """Project → store."""
    home = Home(str(scene.home))
    return {one.path: s.id for s in registry.stores(home) for one in config.load(s).projects}


def fire_in(scene: Scene, folder: Path, session: int = 1) -> None:
    """The agent works in another folder."""
    environment = scene.environment(CLAUDE_PROJECT_DIR=str(folder))
    payload = scene.payload(session, cwd=str(folder))
    assert run([*HOOK, "PreCompact"], folder, environment, payload).is_quiet


def test_a_project_is_made_for_the_whole_repository(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "scene", store=False)
    scene.say(3)
    below = scene.project / "src"
    below.mkdir()
    fire_in(scene, below)
    scene.git("worktree", "add", "-q", str(scene.folder / "tree"))
    fire_in(scene, scene.folder / "tree")
    fire_in(scene, scene.project)
    assert list(stores(scene)) == [str(scene.project)]


def test_what_lies_below_the_users_folder_is_no_part_of_it(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "scene", store=False)
    folders = [scene.user, scene.user / "notes", scene.user / "notes/below", scene.user / "code"]
    for number, folder in enumerate(folders):
        folder.mkdir(exist_ok=True)
        if folder.name == "code":
            subprocess.run(["git", "init", "-q", str(folder)], check=True)
        scene.say(2, session=number)
        fire_in(scene, folder, session=number)
    assert sorted(stores(scene)) == sorted(str(folders[n]) for n in (0, 1, 3))


def test_fifty_first_fires_make_one_store(tmp_path: Path) -> None:
    scene = Scene.make(tmp_path / "scene", store=False)
    said = {number: scene.say(2, session=number) for number in range(10)}
    processes = [scene.start(number % 10) for number in range(50)]
    for process in processes:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out, err) == (0, b"", b"")
    assert len(stores(scene)) == 1
    for number in said:
        assert scene.fire(number).is_quiet
    held = {str(one.body["session_id"]): scene.conversation(one) for one in scene.saves()}
    assert held == {session_id(number): text for number, text in said.items()}
    assert scene.damage() == []


def test_a_folder_that_moved_is_told_of(scene: Scene) -> None:
    """claude-code#71568: everything is keyed by path, and the moved project counted as empty."""
    assert scene.fire().is_quiet
    old = scene.store.id
    moved = scene.folder / "moved"
    scene.project.rename(moved)
    scene.project.symlink_to(moved)
    said = scene.say(2)
    time.sleep(1.1)  # records and logs have whole seconds
    fired = scene.fire(event="SessionStart")
    assert f"init --adopt {old[:8]}" in greeting(fired)
    assert len(stores(scene)) == 2
    done = scene.command("init", "--adopt", old[:8], "--json")
    (caught,) = json.loads(done.out)["caught_up"]
    shown = scene.command("show", str(caught), "--only", "conversation")
    assert shown.out == said


# The log


def test_each_fire_is_one_line(scene: Scene) -> None:
    for event in ("PreCompact", "PreCompact", "Stop"):
        assert scene.fire(event=event).is_quiet
    scene.say(1)
    assert scene.fire(event="Stop").is_quiet
    assert scene.fire(event="SessionStart").is_allowed("SessionStart")
    lines = [line for line in continuity(scene) if not line.startswith(("worker", "savepoint 2:"))]
    assert lines[:3] == [
        "savepoint 2 (manual) whole",
        "PreCompact: nothing new",
        "Stop: nothing new",
    ]
    assert lines[3].startswith("Stop: not due: ")
    assert lines[4:] == ["savepoint 3 (session_start) whole"]


# The start of a session


@pytest.mark.parametrize("source", ["startup", "resume", "clear", "fork"])
def test_a_session_that_has_no_file_yet_makes_no_savepoint(scene: Scene, source: str) -> None:
    assert scene.fire().is_quiet
    payload = scene.payload(7, "SessionStart", source=source)
    told = greeting(scene.fire(event="SessionStart", payload=payload))
    assert len(scene.saves()) == 1
    assert "Newest savepoint of this project: 2 (manual," in told
    assert "resurrect 2` brings that session's conversation and files back" in told


def test_a_session_of_another_instance_than_the_current_one_names_it(scene: Scene) -> None:
    assert scene.fire().is_quiet
    own = scene.paths.slug
    born, _ = birth.give_birth(scene.store, Instance("Ada", 2), int(time.time()))
    config.load(scene.store)._replace(instance=born.slug).save(scene.store)
    told = greeting(scene.fire(event="SessionStart"))
    (asked,) = re.findall(r"(resurrect 2[^`]*)`", told)
    assert asked == f"resurrect 2 --instance {own}"
    compacted = scene.payload(event="SessionStart", source="compact")
    told = greeting(scene.fire(event="SessionStart", payload=compacted))
    assert f"show 2 --instance {own} --only conversation` prints it" in told


def test_a_compaction_that_no_event_announced_is_caught_up(scene: Scene) -> None:
    """claude-code#13572, #50467: in some versions PreCompact never fires."""
    said = scene.transcript().read_bytes()
    payload = scene.payload(event="SessionStart", source="compact")
    told = greeting(scene.fire(event="SessionStart", payload=payload))
    assert triggers(scene) == ["session_start"]
    assert scene.conversation() == said
    assert "compacted just now" in told
    assert "show 2 --only conversation` prints it" in told


def test_the_way_to_what_was_compacted_leads_before_the_compaction(scene: Scene) -> None:
    """`resurrect N` of a savepoint with the compaction in it: "Shown by the client: 0 of 32"."""
    payload = scene.payload(event="SessionStart", source="compact")
    assert scene.fire().is_quiet
    told = greeting(scene.fire(event="SessionStart", payload=payload))
    assert "resurrect 2` brings it back" in told
    compact(scene)
    told = greeting(scene.fire(event="SessionStart", payload=payload))
    assert triggers(scene)[-1] == "session_start"
    assert "resurrect 3 --full` brings it back" in told


def test_after_a_savepoint_of_the_compaction_there_is_no_second(scene: Scene) -> None:
    assert scene.fire().is_quiet
    append(scene, {"type": "cost-state", "cost": 1})  # what clients write that are no messages
    payload = scene.payload(event="SessionStart", source="compact")
    greeting(scene.fire(event="SessionStart", payload=payload))
    assert len(scene.saves()) == 1
    scene.say(1)
    greeting(scene.fire(event="SessionStart", payload=payload))
    assert len(scene.saves()) == 2


def test_a_subagents_compaction_tells_the_session_nothing(scene: Scene) -> None:
    """claude-code#91910: its events bear the session's id."""
    payload = scene.payload(event="SessionStart", source="compact", agent_id="a1")
    assert scene.fire(event="SessionStart", payload=payload).is_quiet
    assert len(scene.saves()) == 1


def test_sessions_that_no_event_saved_are_left_to_the_worker(scene: Scene) -> None:
    """claude-code#17885, #6428: the client is killed, or fires nothing at its end."""
    then = time.time() - 3600
    root = scene.store.root_seed
    os.utime(root, (then - 60, then - 60))  # the store is older than the sessions
    name = claude_places.folder_name(str(scene.project))
    scene.sessions.rename(scene.sessions.parent / name)
    scene.sessions.symlink_to(name)
    said = {number: scene.say(2, session=number) for number in (2, 3, 4)}
    os.utime(scene.transcript(2), (then, then))
    os.utime(scene.transcript(4), (then - 3600, then - 3600))
    greeting(scene.fire(1, "SessionStart"))
    end = time.monotonic() + 30
    while len(scene.saves()) < 2 and time.monotonic() < end:
        time.sleep(0.1)
    scene.settle()
    swept = {str(one.body["session_id"]): one for one in scene.saves()}  # in either order
    assert set(swept) == {session_id(1), session_id(2)}
    assert swept[session_id(2)].body["trigger"] == "sweep"
    assert scene.conversation(swept[session_id(2)]) == said[2]


def test_what_the_greeting_is_made_of_never_makes_it_too_long(scene: Scene) -> None:
    shutil.rmtree(scene.home)
    scene.begin()
    assert scene.fire().is_quiet
    assert len(greeting(scene.fire(event="SessionStart"))) < 1500, "it takes room in the context"


def test_a_save_that_fails_takes_no_greeting_away(scene: Scene) -> None:
    """Of a busy store, or a key of a wrong mode, the agent was told nothing at all."""
    assert scene.fire().is_quiet
    scene.say(1)
    key = Path(scene.paths.authority)
    key.chmod(0o644)
    assert "Newest savepoint" in greeting(scene.fire(event="SessionStart"))
    key.chmod(0o600)
    assert len(scene.saves()) == 1
    assert any(str(key) in line["reason"] for line in scene.log())


# A plugin beside the settings


def test_plugin_and_settings_are_one_savepoint_and_one_greeting(scene: Scene) -> None:
    settings = scene.user / ".claude/settings.json"
    plugin = scene.environment(CLAUDE_PLUGIN_ROOT=str(scene.folder))
    assert scene.fire(event="SessionStart", env=plugin).is_allowed("SessionStart")
    settings.write_text(json.dumps({"hooks": {"x": [str(BIN / "savepoint-hook")]}}))
    assert scene.fire(event="SessionStart", env=plugin).is_quiet
    assert scene.fire(event="SessionStart").is_allowed("SessionStart")
    assert len(scene.saves()) == 1


def test_what_events_keep_of_a_session_is_nothing_left_over(scene: Scene) -> None:
    """`fsck` called guidance, the alarm and the context of a session caches that do not fit."""
    payload = scene.payload(event="SessionStart", source="startup")
    greeting(scene.fire(event="SessionStart", payload=payload))
    answer(scene, LIMIT)
    assert scene.fire(event="Stop").is_quiet
    kept = {one.name.split(".", 1)[1] for one in scene.home.glob("stores/*/sessions/*")}
    assert {"guidance.json", "alarm.json"} <= kept
    scene.settle()
    assert [one.detail for one in scene.fsck().items if "sessions/" in one.detail] == []


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_to_end_is_answered_with_0(scene: Scene, number: signal.Signals) -> None:
    """The window of a session is closed, and a SessionEnd's save ended with 129."""
    code = (
        "import signal; from savepoint import hook; real = hook.serve\n"
        f"def serve(*given): signal.raise_signal({int(number)}); return real(*given)\n"
        "hook.serve = serve; hook.main()"
    )
    command = [HOOK[0], "-I", "-c", code, "PreCompact"]
    assert run(command, scene.project, scene.environment(), scene.payload()).is_quiet
    assert len(scene.saves()) == (number == signal.SIGHUP), "asked to end, it is brief"
    assert [line["reason"].split(";")[0] for line in scene.log()] == (
        [] if number == signal.SIGHUP else ["the hook's time has passed"]
    )
