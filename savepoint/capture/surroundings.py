"""From the environment of a hook or a command to a request: the variables that count, by name."""

from __future__ import annotations

import os

from savepoint.capture.agents import Window
from savepoint.capture.agents.claude import environment_percent, environment_window
from savepoint.core.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

# What git may see of the environment; the agent's own holds secrets (claude-e2e.md, section 2).
_ALLOWED = frozenset(
    {
        "HOME",
        "USER",
        "LOGNAME",
        "PATH",
        "LANG",
        "TMPDIR",
        "DBUS_SESSION_BUS_ADDRESS",
        "SSH_AUTH_SOCK",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
    }
)
_ALLOWED_PREFIXES = ("XDG_", "SAVEPOINT_")


def home(environ: Mapping[str, str]) -> str:
    """$SAVEPOINT_HOME, else ~/.savepoint. Raises UsageError if it is not absolute: each folder
    would have a home of its own, and a `~` that no shell expanded put the keys into the project.
    """
    path = environ.get("SAVEPOINT_HOME") or os.path.expanduser("~/.savepoint")
    if not os.path.isabs(path):
        raise UsageError(f"SAVEPOINT_HOME is {path}", hint="it must be an absolute path")
    return os.path.abspath(path)


def config_dir(environ: Mapping[str, str]) -> str:
    """The agent's own folder: $CLAUDE_CONFIG_DIR, else ~/.claude."""
    return os.path.abspath(environ.get("CLAUDE_CONFIG_DIR") or os.path.expanduser("~/.claude"))


def for_children(environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a child process may see."""
    return {
        name: value
        for name, value in environ.items()
        if name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)
    }


def window(environ: Mapping[str, str]) -> Window:
    """What the environment says of the context window."""
    return Window(environment=environment_window(environ), percent=environment_percent(environ))
