"""The real client on a terminal of its own, whose picture can be read."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from tests.claude.client import Client

_SECONDS = 60  # that something is waited for
_KEY = "sk-ant-dummy"


class Screen:
    """A terminal with the client in it. Use as a context manager."""

    def __init__(self, tmux: str, claude: Client, folder: Path, env: Mapping[str, str]) -> None:
        self._tmux = [tmux, "-S", str(folder / "tmux.sock"), "-f", "/dev/null"]
        self._claude = claude
        self._env = {**claude.environment, "TERM": "xterm-256color", **env}

    def __enter__(self) -> Self:
        """Start it past the questions that it asks a new user."""
        told = {
            "hasCompletedOnboarding": True,
            "customApiKeyResponses": {"approved": [_KEY], "rejected": []},
            "projects": {str(self._claude.folder): {"hasTrustDialogAccepted": True}},
        }
        (self._claude.config / ".claude.json").write_text(json.dumps(told))
        variables = [f"{name}={value}" for name, value in self._env.items()]
        program = ["env", "-i", *variables, str(self._claude.program)]
        where = ["-x", "110", "-y", "30", "-c", str(self._claude.folder)]
        self._run("new-session", "-d", *where, *program)
        self.wait_for("\N{HEAVY RIGHT-POINTING ANGLE QUOTATION MARK ORNAMENT}")
        return self

    def __exit__(self, *ended: object) -> None:
        self._run("kill-server")

    def picture(self) -> str:
        """What stands on the screen."""
        return self._run("capture-pane", "-p")

    def say(self, text: str) -> None:
        """Type it, and send it off."""
        self._run("send-keys", "-l", text)
        self.wait_for(text)
        time.sleep(0.7)  # an Enter that comes with the text is taken for a pasted line end
        self._run("send-keys", "Enter")

    def wait_for(self, text: str) -> str:
        """The picture as soon as that stands on it."""
        end = time.monotonic() + _SECONDS
        while text not in (picture := self.picture()):
            assert time.monotonic() < end, picture
            time.sleep(0.2)
        return picture

    def _run(self, *words: str) -> str:
        done = subprocess.run([*self._tmux, *words], capture_output=True, check=True, timeout=180)
        return done.stdout.decode()
