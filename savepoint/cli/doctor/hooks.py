"""What `doctor` checks of the agent's settings: do they run the hook, and is it still there?"""

from __future__ import annotations

import json
import os
import shlex
from typing import Any, NamedTuple

from savepoint.cli.doctor import agent
from savepoint.cli.doctor.checks import Check, fail, good, warn
from savepoint.core.strict_json import objects

EVENTS = ("PreCompact", "SessionStart", "UserPromptSubmit", "Stop", "SessionEnd")  # that save
QUIET = ("PostCompact", "SubagentStop")  # at which hook.py does nothing
_HOOK = "savepoint-hook"
_PROGRAMS = (_HOOK, "precompact-hook.sh", "precompact_skill.py")
_SETTINGS = ("settings.json", "settings.local.json")  # of a project, below .claude
_CORRECT = "correct it there: until then nothing is saved by it"
_INSTALL = "`savepoint install claude-code` puts it right: until then nothing is saved by it"


class Entry(NamedTuple):
    """A hook of the agent that runs one of our programs."""

    file: str
    event: str  # that the agent runs it at
    told: str | None  # the event that our program is told; None for the scripts, which need none
    missing: tuple[str, ...]  # programs that it names and that are not there


def run(config_dir: str, project: str) -> list[Check]:
    """For the user's own settings and those of the project in the folder `project`."""
    files = [os.path.join(config_dir, _SETTINGS[0])]
    files += [os.path.join(project, ".claude", name) for name in _SETTINGS]
    told = {file: _settings(file) for file in files}
    broken = [fail("agent", f"{file}: {what}", _CORRECT) for file, what in told.items() if what]
    entries = [one for file in files for one in entries_of(file)]
    return broken + (_judged(entries) or _absent(files[0]))


def _absent(file: str) -> list[Check]:
    if agent.has_plugin(os.path.dirname(file)):
        return [good("agent", "the plugin runs the hook")]
    todo = "run `savepoint install claude-code`: until then only `savepoint create` saves"
    return [warn("agent", f"no settings of the agent name {_HOOK}", todo)]


def _judged(entries: list[Entry]) -> list[Check]:
    found = []
    for one in entries:
        where = f"{one.file}: {one.event}"
        if one.missing:
            found.append(fail("agent", f"{where}: {one.missing[0]} is not there", _INSTALL))
        elif one.told is not None and one.told not in (*EVENTS, *QUIET):
            what = f"there is no event {one.told!r}" if one.told else "no event is named"
            found.append(fail("agent", f"{where}: {what}", _CORRECT))
    if found or not entries:
        return found
    events = list(dict.fromkeys(one.event for one in entries))
    if EVENTS[0] not in events:
        detail = f"the hook is run at {', '.join(events)} only"
        return [warn("agent", detail, f"`savepoint install claude-code` adds {EVENTS[0]}")]
    return [good("agent", f"runs the hook at {', '.join(events)}")]


def _settings(file: str) -> str:
    """What is wrong with the file; empty where nothing is, or there is none."""
    try:
        value = _parsed(file)
    except (OSError, ValueError, RecursionError) as failure:
        return "cannot be read" if isinstance(failure, OSError) else "is no JSON"
    return "all hooks are switched off (disableAllHooks)" if value.get("disableAllHooks") else ""


def _parsed(file: str) -> dict[str, Any]:
    try:
        with open(file, "rb") as settings:
            value = json.load(settings)
    except FileNotFoundError:
        return {}
    return value if isinstance(value, dict) else {}


def entries_of(file: str) -> list[Entry]:
    """The hooks of one settings file that run us; none where it cannot be read."""
    try:
        hooks = _parsed(file).get("hooks")
    except (OSError, ValueError, RecursionError):
        return []
    found = []
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for group in objects(groups):
            commands = (_words(hook) for hook in objects(group.get("hooks")))
            found += [_entry(file, event, words) for words in commands if _ours(words) is not None]
    return found


def _words(hook: dict[str, Any]) -> list[str]:
    """Its command line in words: `command` alone is for a shell, with `args` it is a program."""
    command, args = str(hook.get("command", "")), hook.get("args")
    if isinstance(args, list):
        return [command, *map(str, args)]
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def _ours(words: list[str]) -> int | None:
    """Which word is our program."""
    names = [os.path.basename(word) for word in words]
    return next((n for n, name in enumerate(names) if name in _PROGRAMS), None)


def _entry(file: str, event: str, words: list[str]) -> Entry:
    at = _ours(words) or 0
    told = None
    if os.path.basename(words[at]) == _HOOK:
        told = words[at + 1] if len(words) > at + 1 else ""
    programs = dict.fromkeys((words[0], words[at]))
    return Entry(file, event, told, tuple(one for one in programs if not _is_there(one)))


def _is_there(program: str) -> bool:
    """A variable or an assignment is the shell's to expand, and not judged here."""
    if "$" in program or "=" in program:
        return True
    path = os.path.expanduser(program)
    return (
        os.path.isfile(path)
        if "/" in path
        else any(os.access(os.path.join(folder, path), os.X_OK) for folder in os.get_exec_path())
    )
