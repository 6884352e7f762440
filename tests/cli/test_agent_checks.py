"""`doctor` on the agent: what it deletes, whether its hooks fire, its version."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from savepoint.cli.doctor import agent
from tests.cli.scene import OTHER_SESSION, SESSION, Scene

HOUR = 3600


def look(scene: Scene) -> dict[str, Any]:
    """The checks by name."""
    return {one["name"]: one for one in scene("doctor", "--json").json["checks"]}


def age(path: Path | str, seconds: float) -> None:
    """The file was last written so long ago."""
    then = time.time() - seconds
    os.utime(path, (then, then))


def settings(**members: object) -> None:
    """The user's settings of the agent."""
    path = Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json")
    path.write_text(json.dumps(members))


def test_what_the_agent_will_delete_unsaved(cli: Scene) -> None:
    cli.say("x", session=OTHER_SESSION)
    cli.good("create", "--session", SESSION)
    age(cli.transcript, HOUR)
    age(cli.path_of(OTHER_SESSION), HOUR)
    told = look(cli)["sessions"]
    assert told["result"] == "warn"
    assert told["detail"] == (
        "2 sessions, deleted after 30 days by the agent; 1 session not saved to the end"
    )
    assert told["todo"] == "`savepoint sweep` saves them"
    cli.good("sweep")
    assert look(cli)["sessions"]["result"] == "ok"


@pytest.mark.parametrize(
    ("value", "days"), [(7, 7), (99999, 99999), ("x", 30), (0, 30), (True, 30)]
)
def test_how_long_the_agent_keeps_sessions(cli: Scene, value: object, days: int) -> None:
    settings(cleanupPeriodDays=value)
    assert f"after {days} days" in look(cli)["sessions"]["detail"]


def test_hooks_that_do_not_fire(cli: Scene) -> None:
    cli.good("install", "claude-code")
    assert look(cli)["fires"]["result"] == "warn"
    cli.created()
    assert look(cli)["fires"]["detail"].startswith("the hook last fired")
    age(cli.paths.continuity_log, HOUR)
    cli.say("more")
    told = look(cli)["fires"]
    assert told["result"] == "warn"
    assert told["detail"].startswith("the newest session was written 59 minutes after")


def test_without_hooks_their_fires_are_not_missed(cli: Scene) -> None:
    assert "fires" not in look(cli)


@pytest.mark.parametrize(
    ("version", "result"), [("2.1.332", "ok"), ("2.1.110", "warn"), ("1.0.40", "warn"), ("x", None)]
)
def test_versions_with_known_bugs(cli: Scene, version: str, result: str | None) -> None:
    cli.write(b'{"type":"user","version":"%s"}\n' % version.encode())
    if result is None:
        cli.path_of(SESSION).write_bytes(b'{"type":"user","version":"x"}\n')
    told = look(cli)
    assert told.get("client", {}).get("result") == result


def test_the_table_of_bugs_is_in_order() -> None:
    bugs = json.loads(Path(agent._BUGS).read_text())["bugs"]
    assert bugs
    for first, last, why in bugs:
        assert agent._number(first) <= agent._number(last)
        assert why


def test_a_plugin_that_is_switched_on_runs_the_hook(cli: Scene) -> None:
    settings(enabledPlugins={"savepoint@savepoint": True})
    assert look(cli)["agent"]["detail"] == "the plugin runs the hook"
    settings(enabledPlugins={"savepoint@savepoint": False})
    assert look(cli)["agent"]["result"] == "warn"
