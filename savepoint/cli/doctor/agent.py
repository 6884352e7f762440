"""What `doctor` checks of the agent: what it deletes, whether its hooks fire, its version."""

from __future__ import annotations

import json
import os
import re
import time
from typing import TYPE_CHECKING

from savepoint.capture.agents import claude_places, claude_settings
from savepoint.cli import terminal
from savepoint.cli.doctor.checks import Check, good, warn
from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.store import savepoints
from savepoint.store.files import open_regular, read_at
from savepoint.store.layout import session_key
from savepoint.store.session import sessions

if TYPE_CHECKING:
    from savepoint.cli import place

_KEPT_DAYS = 30  # of the agent's cleanupPeriodDays, where nobody set it
_BUGS = os.path.join(os.path.dirname(__file__), "known_bugs.json")
_VERSION = re.compile(rb'"version":"(\d+(?:\.\d+){1,3})"')
_SWEEP = "`savepoint sweep` saves them"


def run(config_dir: str, project: str, at: place.Place, *, installed: bool) -> list[Check]:
    """For a project that has a store. installed: does the agent run our hook?"""
    written = sorted(claude_places.written(config_dir, project), reverse=True)
    if not written:
        return [good("sessions", "the agent has none of this folder")]
    found = [_retention(config_dir, project, at, written), *_version(written[0][1])]
    if installed:
        found.append(_fires(at, written[0][0] // 10**9))
    return found


def _retention(
    config_dir: str, project: str, at: place.Place, written: list[tuple[int, str]]
) -> Check:
    """The agent deletes old sessions, also where its setting is large (claude-code#62476): what is
    not saved by then is gone.
    """
    days = _kept_days(config_dir, project)
    unsaved = [path for when, path in written if when > _saved_at(at, path)]
    kept = terminal.counted(days, "day")
    detail = f"{terminal.counted(len(written), 'session')}, deleted after {kept} by the agent"
    rested = time.time() - limits.STOP_INTERVAL_SECONDS
    left = [path for path in unsaved if os.path.getmtime(path) < rested]
    if left:
        lacking = terminal.counted(len(left), "session")
        return warn("sessions", f"{detail}; {lacking} not saved to the end", _SWEEP)
    return good("sessions", detail)


def _saved_at(at: place.Place, path: str) -> float:
    """When a session was last saved, in ns."""
    key = session_key(os.path.basename(path).removesuffix(".jsonl"))
    head = sessions.head(at.store, key)
    return (head.saved_at + 1) * 1e9 if head else 0.0


def _kept_days(config_dir: str, project: str) -> int:
    return claude_settings.number(config_dir, project, "cleanupPeriodDays") or _KEPT_DAYS


def has_plugin(config_dir: str) -> bool:
    """Is our plugin switched on?"""
    enabled = claude_settings.read(os.path.join(config_dir, "settings.json")).get("enabledPlugins")
    known = enabled.items() if isinstance(enabled, dict) else ()
    return any(name.startswith("savepoint@") and on for name, on in known)


def _fires(at: place.Place, newest: int) -> Check:
    """Each fire leaves a line in a log: a session that goes on without one has no hook."""
    logs = [one.continuity_log for one in savepoints.instances(at.store)]
    last = max((_modified(path) for path in logs), default=0)
    if newest - last > limits.STOP_INTERVAL_SECONDS:
        lag = terminal.span(newest - last)
        return warn(
            "fires",
            f"the newest session was written {lag} after the hook last fired",
            "see whether the agent trusts this folder, and `claude --debug` for its hooks",
        )
    ago = terminal.span(time.time() - last)
    return good("fires", f"the hook last fired {ago} ago" if last else "the hook has not fired yet")


def _modified(path: str) -> int:
    try:
        return int(os.stat(path).st_mtime)
    except OSError:
        return 0


def _version(path: str) -> list[Check]:
    """Whether the client that wrote the newest session has a known bug with hooks."""
    version = _last_version(path)
    if version is None:
        return []
    with open(_BUGS, encoding="utf-8") as file:
        bugs = json.load(file)["bugs"]
    found = [
        why for first, last, why in bugs if _number(first) <= _number(version) <= _number(last)
    ]
    if found:
        return [warn("client", f"Claude Code {version}: {'; '.join(found)}", "update Claude Code")]
    return [good("client", f"Claude Code {version}")]


def _last_version(path: str) -> str | None:
    try:
        fd = open_regular(path)
    except (OSError, SavepointError):
        return None
    try:
        size = os.fstat(fd).st_size
        tail = read_at(fd, limits.STATUS_TAIL_BYTES, max(0, size - limits.STATUS_TAIL_BYTES))
    finally:
        os.close(fd)
    found = _VERSION.findall(tail)
    return found[-1].decode("ascii") if found else None


def _number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
