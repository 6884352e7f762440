"""The status line: the user's own command still there, and below it what is saved."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest

from savepoint.store import config, journal
from savepoint.store.layout import session_key
from savepoint.store.session import context
from savepoint.store.session.context import Figures
from tests.fault.scene import COMMAND, Fired, Scene, run, session_id
from tests.hook.test_events import answer, triggers

_LINE = re.compile(r"import time:\s+\d+ \|\s+\d+ \|\s+([\w.]+)$", re.MULTILINE)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project, a store, and a session that has something to save."""
    scene = Scene.make(tmp_path / "scene")
    scene.say(5)
    return scene


def status(scene: Scene, *arguments: str, used: int | None = 5000) -> Fired:
    """Run it as the agent does after an answer."""
    usage = None if used is None else {"input_tokens": used, "output_tokens": 7}
    told = {
        "session_id": session_id(1),
        "transcript_path": str(scene.transcript()),
        "cwd": str(scene.project),
        "model": {"id": "claude-opus-5-5", "display_name": "Opus"},
        "workspace": {"current_dir": str(scene.project), "project_dir": str(scene.project)},
        "context_window": {"context_window_size": 1_000_000, "current_usage": usage},
    }
    environment = scene.environment()
    del environment["CLAUDE_PROJECT_DIR"]  # the agent does not set it here
    data = json.dumps(told).encode()
    return run([*COMMAND, "statusline", *arguments], scene.project, environment, data)


def shown(scene: Scene, *arguments: str, used: int | None = 5000) -> str:
    """What it prints."""
    fired = status(scene, *arguments, used=used)
    assert (fired.code, fired.err) == (0, "")
    return fired.out.decode().removesuffix("\n")


def test_the_state_from_nothing_to_pushed_and_anchored(scene: Scene) -> None:
    assert shown(scene) == "savepoint: session not saved yet · 0 % of the way to compaction"
    assert scene.fire().is_quiet
    scene.settle()
    assert re.fullmatch(
        r"savepoint: 2 saved \d\d:\d\d · 0 % of the way to compaction", shown(scene)
    )
    config.load(scene.store)._replace(ledger=config.EMBEDDED).save(scene.store)
    assert " · anchor queued · 0 %" in shown(scene)
    assert scene.command("config", "remote", str(scene.folder / "remote.git")).code == 0
    assert " · push queued · " in shown(scene)
    for word, expected in (
        ("PUSH_REFUSED", " · PUSH_REFUSED"),
        ("PUSHED_TO_GITHUB", " · pushed"),
        ("BLOCKCHAIN_VERIFIED", " · anchored"),
    ):
        journal.became(scene.paths, int(time.time()), 2, word, "")
        assert expected in shown(scene)


def test_a_savepoint_of_another_day(scene: Scene) -> None:
    assert scene.fire().is_quiet
    cache = Path(scene.store.session(session_id(1)))
    cache.write_bytes(re.sub(rb'"saved_at":[0-9]+', b'"saved_at":1700000000', cache.read_bytes()))
    assert re.search(r"savepoint: 2 saved 2023-11-1\d \d\d:\d\d", shown(scene))


def test_without_a_store(tmp_path: Path) -> None:
    assert shown(Scene.make(tmp_path / "scene", store=False)) == "savepoint: nothing saved yet"


@pytest.mark.parametrize(
    ("own", "first"),
    [
        ("printf 'mine\\n'", "mine"),
        ("cat | head -c 14", '{"session_id":'),
        ('echo "it\'s $HOME"; exit 3', "it's "),
        ("printf 'one\\ntwo\\n'", "one"),
    ],
)
def test_the_users_line_comes_first(scene: Scene, own: str, first: str) -> None:
    lines = shown(scene, "--then", own).split("\n")
    assert lines[0].startswith(first)
    assert lines[-1].startswith("savepoint: ")


@pytest.mark.parametrize("own", ["true", "exit 1", "/no/such/program"])
def test_a_line_of_the_user_that_says_nothing(scene: Scene, own: str) -> None:
    fired = status(scene, "--then", own)
    assert fired.code == 0
    assert fired.out.startswith(b"savepoint: ")


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b"\xff", b"[" * 100_000],
    ids=["empty", "torn", "list", "nothing", "no UTF-8", "deep"],
)
def test_an_agent_that_tells_nothing_is_said_in_words(scene: Scene, data: bytes) -> None:
    """The line was `savepoint: JSONDecodeError`."""
    environment = scene.environment()
    del environment["CLAUDE_PROJECT_DIR"]
    fired = run([*COMMAND, "statusline"], scene.project, environment, data)
    assert fired == Fired(0, b"savepoint: the agent told nothing of its session\n", "")


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help_of_the_status_line(scene: Scene, option: str) -> None:
    assert status(scene, option).out.startswith(b"Usage: savepoint statusline [--then COMMAND]\n")
    assert b"savepoint statusline" in scene.command("install", "--help").out


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b'{"workspace":[],"context_window":7}', b"\xff"]
)
def test_rubbish_does_not_take_the_users_line_away(scene: Scene, data: bytes) -> None:
    command = [*COMMAND, "statusline", "--then", "echo mine"]
    fired = run(command, scene.project, scene.environment(), data)
    assert (fired.code, fired.err) == (0, "")
    assert fired.out.startswith(b"mine\nsavepoint: ")


def test_the_figures_are_kept_for_the_hook(scene: Scene) -> None:
    shown(scene, used=4321)
    assert context.figures(scene.store, session_id(1)) == Figures(1_000_000, 4321)
    shown(scene, used=None)
    assert context.figures(scene.store, session_id(1)) == Figures(1_000_000, 4321)
    answer(scene, 4321, model="a-model-that-no-table-has")
    assert scene.fire().is_quiet
    document = scene.document()
    assert document["session_token_budget"] == 967_000
    assert document["token_source"] == "transcript usage; window from status line"
    assert scene.damage() == []


def test_passing_the_threshold_calls_the_hook_at_once(scene: Scene) -> None:
    """Within a turn no event of the agent would."""
    assert scene.fire(event="Stop").is_quiet
    shown(scene, used=800_000)
    answer(scene, 830_000, model="a-model-that-no-table-has")
    assert "85 % of the way to compaction" in shown(scene, used=830_000)
    end = time.monotonic() + 120
    while context.is_armed(scene.store, session_key(session_id(1)), 0) and time.monotonic() < end:
        time.sleep(0.1)  # it is noted behind the save
    assert triggers(scene) == ["stop", "context_limit_approaching"]
    answer(scene, 840_000, model="a-model-that-no-table-has")
    shown(scene, used=840_000)
    assert scene.fire(event="Stop").is_quiet
    assert len(scene.saves()) == 2


def test_it_starts_without_the_command_line(scene: Scene) -> None:
    assert scene.fire().is_quiet
    timed = [COMMAND[0], "-X", "importtime", *COMMAND[1:], "statusline"]
    fired = run(timed, scene.project, scene.environment(), b"{}")
    assert fired.code == 0
    heavy = {
        "typer",
        "click",
        "pydantic",
        "rich",
        "solders",
        "cryptography",
        "subprocess",
        "sqlite3",
    }
    assert {name.partition(".")[0] for name in _LINE.findall(fired.err)} & heavy == set()
