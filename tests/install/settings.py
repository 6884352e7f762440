"""Settings files of a user who has much in them, and what of a file is ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.scene import Scene

INSTALL, UNINSTALL = ("install", "claude-code"), ("uninstall", "claude-code")
FULL: dict[str, Any] = {
    "zeta": 1,
    "permissions": {"allow": ["Bash(git log:*)", "Read(~/x ü)"], "deny": []},
    "mcpServers": {"a": {"command": "x", "args": []}},
    "hooks": {
        "Stop": [{"hooks": [{"type": "command", "command": "say done", "timeout": 3}]}],
        "PreToolUse": [],
    },
    "statusLine": {"type": "command", "command": "echo 'it is' \"$USER\"", "padding": 0},
    "env": {},
}
TEXTS = {
    "three blanks, no line end": json.dumps(FULL, indent=3, ensure_ascii=False),
    "two blanks": json.dumps(FULL, indent=2) + "\n",
    "tabs": json.dumps(FULL, indent="\t") + "\n",
    "one line": json.dumps(FULL),
    "dense": json.dumps(FULL, separators=(",", ":")) + "\n\n",
    "BOM, CRLF": "\ufeff" + json.dumps(FULL, indent=4).replace("\n", "\r\n") + "\r\n",
    "empty object": "{}",
    "empty object on lines": "{\n}\n",
    "empty hooks": '{\n  "hooks": {}\n}\n',
    "odd": '{ "b" : [ ]\n,\t"hooks":{ "Stop" : [ ] } , "a":{"x" :1}}   \n\n',
    "only hooks of others": '{"hooks":{"PreCompact":[{"matcher":"auto","hooks":[]}]}}',
}


def hooks(path: Path) -> dict[str, list[list[str]]]:
    """Event → command lines of its hooks."""
    found: dict[str, list[list[str]]] = {}
    for event, groups in json.loads(path.read_text("utf-8-sig"))["hooks"].items():
        listed = [hook for group in groups for hook in group["hooks"]]
        found[event] = [[hook["command"], *hook.get("args", [])] for hook in listed]
    return found


def ours(path: Path) -> dict[str, list[list[str]]]:
    """Those of them that run our hook."""
    named = {
        event: [words for words in lines if any(word.endswith("/savepoint-hook") for word in words)]
        for event, lines in hooks(path).items()
    }
    return {event: lines for event, lines in named.items() if lines}


def local(scene: Scene) -> Path:
    """The project's local settings."""
    return scene.project / ".claude" / "settings.local.json"
