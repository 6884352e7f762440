"""Shows with the real client: installed in one command, it saves by itself, and harms nothing."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.claude.client import Client, running
from tests.claude.screen import Screen
from tests.claude.stub import Reply, texts
from tests.cli.scene import Scene
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.xdist_group("claude"), pytest.mark.timeout(300)]

WINDOW = {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"}  # it compacts at 167,000 tokens
PLUGIN = PROJECT / "plugin"
_OF_TURNS = {"stop", "prompt", "session_end", "session_start", "sweep"}
# What the client writes into a transcript, or shows, where it does not like a hook's answer.
COMPLAINTS = ("hook_non_blocking_error", "hook_blocking_error", "hook error", "validation failed")


class Session(Scene):
    """A project with the real client in it."""

    claude: Client
    id = ""

    @property
    def settings(self) -> Path:
        """The user's settings of the client."""
        return self.claude.config / "settings.json"

    def ask(self, prompt: str, *options: str, **env: str) -> None:
        """One turn of the session."""
        if self.id:
            options = ("--resume", self.id, *options)
        ran = self.claude.good(prompt, *options, env=env)
        assert not [word for word in COMPLAINTS if word in ran.out.lower() + ran.err.lower()]
        self.id = ran.session

    def saves(self) -> list[dict[str, Any]]:
        """All savepoints."""
        listed: list[dict[str, Any]] = self.good("list", "--json").json["savepoints"]
        return listed

    def triggers(self) -> list[str]:
        """Of the savepoints of this session that compactions and the threshold made, each once. At
        the end of turns and sessions others are made: the client flushes late, and ends a hook that
        a busy machine starts late, so one has what the other has not.
        """
        own = [one["trigger"] for one in self.saves() if one["session_id"] == self.id]
        told = [trigger for trigger in own if trigger not in _OF_TURNS]
        return [one for one, before in zip(told, [None, *told], strict=False) if one != before]

    def all_triggers(self) -> list[str]:
        """Of all savepoints."""
        return [one["trigger"] for one in self.saves()]

    def conversation(self, seq: int) -> bytes:
        """The transcript that a savepoint holds."""
        return self.good("show", str(seq), "--only", "conversation").out

    def assert_whole(self) -> None:
        """Every savepoint verifies, the last holds all that there is, and the client found nothing
        to complain of. The hook at the end of a session has 1.5 s in a plugin: on a busy machine a
        sweep saves what it could not.
        """
        self.good("sweep")
        assert self("verify", "--all", "--offline").code in {0, 3, 21}
        checked = self("verify", "--all", "--offline", "--json").json["savepoints"]
        assert {one["witnesses"]["local"]["verdict"] for one in checked} == {"VERIFIED"}
        transcript = self.claude.transcript(self.id).read_bytes()
        last = [one["seq"] for one in self.saves() if one["session_id"] == self.id][-1]
        assert self.conversation(last) == transcript
        assert not [word for word in COMPLAINTS if word.encode() in transcript]


@pytest.fixture
def session(
    claude_program: Path, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> Iterator[Session]:
    """A project without a store, and a client that has not been started yet."""
    project = tmp_path / "project"
    project.mkdir()
    with running(claude_program, project) as claude:
        claude.config.mkdir(exist_ok=True)
        session = Session(project, capsysbinary)
        session.claude = claude
        yield session


def a_whole_session(session: Session, *options: str) -> None:
    """Prompt, tool, manual compaction, automatic compaction, fork: exactly these savepoints."""
    session.claude.stub.replies += [Reply("noted")]
    session.claude.stub.replies += [
        Reply(tool="Bash", given={"command": "echo OTTER"}),
        Reply("ok"),
    ]
    session.ask("the word is BADGER", *options)
    session.ask("say it", "--allowed-tools", "Bash", *options)
    assert session.triggers() == []
    assert 1 <= len(session.saves()) <= 4
    session.ask("/compact", *options)
    assert session.triggers() == ["manual"]
    (manual,) = (one["seq"] for one in session.saves() if one["trigger"] == "manual")
    assert b"OTTER" in session.conversation(manual)
    assert b"compact_boundary" not in session.conversation(manual)
    session.claude.stub.replies += [Reply("x", tokens=170_000), Reply("y")]
    session.ask("fill it", *options, **WINDOW)
    session.ask("go on", *options, **WINDOW)
    assert session.triggers() == ["manual", "context_limit_approaching", "auto"]
    assert len(session.claude.stub.compactions) == 2
    before = session.id
    session.ask("elsewhere", "--fork-session", *options)
    assert session.id != before
    assert session.triggers() == []
    assert 6 <= len(session.saves()) <= 18, "one or two a turn, and those three"
    session.assert_whole()


def test_installed_it_saves_a_whole_session_and_uninstalled_leaves_no_trace(
    session: Session,
) -> None:
    before = b'{\n   "permissions": {"allow": ["Read"]}, "cleanupPeriodDays": 90\n}'
    session.settings.write_bytes(before)
    session.good("install", "claude-code")
    installed = session.settings.read_bytes()
    a_whole_session(session)
    assert session.settings.read_bytes() == installed, "the client did not mind"
    session.good("uninstall", "claude-code")
    assert session.settings.read_bytes() == before
    count = len(session.saves())
    session.ask("nobody saves this")
    assert len(session.saves()) == count


def test_the_agent_is_told_what_is_saved(session: Session) -> None:
    session.good("install", "claude-code")
    session.ask("the word is BADGER")
    session.ask("and now?")
    told = [
        text for text in texts(session.claude.stub.turns[-1]["messages"]) if "savepoint" in text
    ]
    assert re.search(r"Newest savepoint of this session: \d+ \(\w+, 20", "".join(told))
    session.claude.stub.replies += [Reply("x", tokens=170_000)]
    session.ask("fill it", **WINDOW)
    session.ask("go on", **WINDOW)
    told = [
        text for text in texts(session.claude.stub.turns[-1]["messages"]) if "savepoint" in text
    ]
    assert "This session's context was compacted just now." in "".join(told)


def test_the_threshold_is_passed_once_before_each_compaction(session: Session) -> None:
    session.good("install", "claude-code")
    tokens = [120_000, 143_000, 150_000, 170_000, 20_000, 145_000]
    session.claude.stub.replies += [Reply("x", tokens=count) for count in tokens]
    for number in range(len(tokens)):
        session.ask(f"turn {number}", **WINDOW)
    alarm = "context_limit_approaching"
    session.ask("and now?", **WINDOW)
    assert session.triggers() == [alarm, "auto", alarm]
    assert len(session.claude.stub.compactions) == 1
    first = next(s for s in session.saves() if s["trigger"] == "context_limit_approaching")
    assert first["context_utilization_percent"] == 85
    assert first["tokens_used_this_session"] == 143_000
    assert first["tokens_remaining"] == 24_000


def test_without_precompact_the_start_after_it_catches_up(session: Session) -> None:
    """claude-code#13572, #50467: in some versions it never fires."""
    session.good("install", "claude-code")
    value = json.loads(session.settings.read_text())
    for event in ("PreCompact", "Stop", "SessionEnd", "UserPromptSubmit"):
        del value["hooks"][event]
    session.settings.write_text(json.dumps(value))
    session.claude.stub.replies += [Reply("x", tokens=170_000), Reply("y")]
    session.ask("the word is BADGER", **WINDOW)
    session.ask("/compact", **WINDOW)
    assert len(session.claude.stub.compactions) == 1
    assert session.triggers() == []
    if not session.saves():  # the machine is too busy for two seconds: what is pending comes next
        session.ask("go on", **WINDOW)
    last = session.saves()[-1]["seq"]
    assert b"BADGER" in session.conversation(last)


# The plugin


def test_the_client_finds_nothing_wrong_with_the_plugin(session: Session) -> None:
    for folder in (PLUGIN, PLUGIN / "savepoint"):
        done = session.claude.command("plugin", "validate", str(folder), "--strict")
        assert done.code == 0, done.out + done.err


def test_through_the_plugin(session: Session) -> None:
    a_whole_session(session, "--plugin-dir", str(PLUGIN / "savepoint"))


def test_the_plugin_from_its_marketplace_and_the_settings_are_one(session: Session) -> None:
    for words in (("marketplace", "add", str(PLUGIN)), ("install", "savepoint@savepoint")):
        done = session.claude.command("plugin", *words)
        assert done.code == 0, done.out + done.err
    session.good("install", "claude-code")
    assert "savepoint@savepoint" in session.settings.read_text()
    a_whole_session(session)
    greetings = list(texts(session.claude.stub.turns[-1]["messages"]))
    assert sum("savepoint saves the state of this session" in text for text in greetings) <= 2
    session.good("uninstall", "claude-code")
    assert "savepoint-hook" not in session.settings.read_text()
    assert "savepoint@savepoint" in session.settings.read_text()


def test_a_skill_saves(session: Session) -> None:
    options = ("--plugin-dir", str(PLUGIN / "savepoint"), "--allowed-tools", "Bash")
    session.ask("hello", *options)
    command = 'savepoint create ${CLAUDE_CODE_SESSION_ID:+--session "$CLAUDE_CODE_SESSION_ID"}'
    session.claude.stub.replies += [Reply(tool="Bash", given={"command": command}), Reply("done")]
    session.ask("/savepoint:precompact", *options)
    asked, answered = session.claude.stub.turns[-2:]
    assert any(command in text for text in texts(asked["messages"])), "the skill names it"
    assert any("Layer 1: Local savepoint created" in text for text in texts(answered["messages"]))
    assert session.triggers() == ["manual"]


# On a terminal


def test_the_status_line_shows_the_users_own_and_the_state(session: Session, tmux: str) -> None:
    own = {"type": "command", "command": 'echo "my own line: $(basename "$PWD")"'}
    session.settings.write_text(json.dumps({"statusLine": own}))
    session.good("install", "claude-code")
    session.claude.stub.replies += [Reply("Noted.", tokens=140_000), Reply("Done.", tokens=143_000)]
    with Screen(tmux, session.claude, session.project.parent, WINDOW) as screen:
        assert "my own line: project" in screen.wait_for(" saved yet")
        screen.say("the word is BADGER")
        assert "my own line: project" in screen.wait_for("83 % of the way to compaction")
        screen.say("go on")
        picture = screen.wait_for("85 % of the way to compaction")
        assert "my own line: project" in picture
        assert re.search(r"savepoint: [23] saved \d\d:\d\d · anchor", picture)
        end = time.monotonic() + 60
        alarm = "context_limit_approaching"
        while alarm not in session.all_triggers() and time.monotonic() < end:
            time.sleep(0.5)
    assert session.all_triggers().count(alarm) == 1
