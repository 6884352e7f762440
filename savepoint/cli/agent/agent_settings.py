"""What `install` adds to Claude Code's settings, and takes out again: text in, text out.

Everything else in the text keeps its bytes. Hooks are in exec form, which no shell
reads; the status line always is a line for a shell.
"""

from __future__ import annotations

import json
import os
import shlex
from typing import TYPE_CHECKING, Any, NamedTuple

from savepoint.cli.agent import json_text
from savepoint.core.errors import MalformedError, SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.strict_json import Json

# Event → seconds after which the agent gives up on us: our own deadline (limits.py), and time for
# the interpreter to start on a loaded machine. That of SessionEnd also raises the 1.5 s that all
# hooks of it share.
SECONDS = {
    "PreCompact": 30,
    "SessionStart": 10,
    "UserPromptSubmit": 10,
    "Stop": 10,
    "SessionEnd": 5,
}
HOOK, COMMAND, STATUS_LINE = "savepoint-hook", "savepoint", "statusline"
EMPTY = "{}\n"
_THEN = "--then"
_BOM = "\ufeff"  # PowerShell writes one


class Program(NamedTuple):
    """The programs of one environment, by absolute paths: no shim and no PATH comes between."""

    python: str
    hook: str
    command: str

    def hook_entry(self, event: str) -> dict[str, Json]:
        """The hook of one event."""
        args: list[Json] = ["-I", self.hook, event]
        return {"type": "command", "command": self.python, "args": args, "timeout": SECONDS[event]}

    def status_line(self, own: str) -> str:
        """The status line that runs the user's `own` and adds ours."""
        words = [self.python, "-I", self.command, STATUS_LINE, *([_THEN, own] if own else [])]
        return shlex.join(words)


class StatusLine(NamedTuple):
    """The status line that a settings file names."""

    command: str
    is_ours: bool
    own: str  # the user's command: the whole of it, or what ours runs


def added(text: str, program: Program, own: str | None) -> str:
    """The text with our hooks in it, and with our status line around the user's `own`; without one
    where that is None. `text` has nothing of ours. Raises SettingsError.
    """
    mark, text = _without_mark(text)
    _check_hooks(_parsed(text).get("hooks", {}))
    try:
        for event in SECONDS:
            group: Json = {"hooks": [program.hook_entry(event)]}
            text = json_text.append(text, ("hooks", event), group)
        if own is not None:
            line = program.status_line(own)
            if json_text.find(text, ("statusLine",)) is None:
                text = json_text.put(text, ("statusLine", "type"), "command")
            text = json_text.put(text, ("statusLine", "command"), line)
    except MalformedError as failure:
        raise SettingsError(failure.message) from None
    return mark + text


def removed(text: str, before: str | None) -> str:
    """The text without what is ours. `before`: as it was when we first came, if that is known:
    what was empty then stays. Raises SettingsError.
    """
    mark, text = _without_mark(text)
    known = _parsed(_without_mark(before)[1]) if before is not None else {}
    while (place := next(_ours(_parsed(text)), None)) is not None:
        text = _emptied(json_text.remove(text, place), place, known)
    line = status_line(text)
    if line is not None and line.is_ours:
        had = "statusLine" in known or before is None
        if line.own and had:
            text = json_text.put(text, ("statusLine", "command"), line.own)
        else:
            text = json_text.remove(text, ("statusLine",))
    return mark + text


def status_line(text: str) -> StatusLine | None:
    """The status line that the text names; None where it names none, or one that is no command.

    Raises SettingsError.
    """
    value = _parsed(_without_mark(text)[1]).get("statusLine")
    if not isinstance(value, dict) or value.get("type", "command") != "command":
        return None
    command = value.get("command")
    return judged(command) if isinstance(command, str) else None


def has_status_line(text: str) -> bool:
    """Does it name any, of whatever kind? Raises SettingsError."""
    return "statusLine" in _parsed(_without_mark(text)[1])


def judged(command: str) -> StatusLine:
    """Whether a status line is ours, and what of it is the user's."""
    try:
        words = shlex.split(command)
    except ValueError:
        return StatusLine(command, is_ours=False, own=command)
    for at, word in enumerate(words[:-1]):
        if os.path.basename(word) == COMMAND and words[at + 1] == STATUS_LINE:
            rest = words[at + 2 :]
            return StatusLine(command, is_ours=True, own=rest[1] if rest[:1] == [_THEN] else "")
    return StatusLine(command, is_ours=False, own=command)


def _ours(settings: dict[str, Any]) -> Iterator[json_text.Path]:
    """Where our hooks are."""
    hooks = settings.get("hooks")
    for event, groups in hooks.items() if isinstance(hooks, dict) else ():
        for at, group in enumerate(groups if isinstance(groups, list) else ()):
            listed = group.get("hooks") if isinstance(group, dict) else None
            for place, hook in enumerate(listed if isinstance(listed, list) else ()):
                if _is_ours(hook):
                    yield ("hooks", event, at, "hooks", place)


def _is_ours(hook: object) -> bool:
    """Has the hook the form that we write? One that a person wrote for a shell is theirs."""
    match hook:
        case {"command": str(), "args": ["-I", str(program), str()]}:
            return os.path.basename(program) == HOOK
        case _:
            return False


def _emptied(text: str, place: json_text.Path, before: dict[str, Any]) -> str:
    """The text without what holds nothing any more and was not there before."""
    _, event, group, _, _ = place
    had = before.get("hooks")
    keeps_event = isinstance(had, dict) and event in had
    for path, keep in (
        (("hooks", event, group, "hooks"), False),
        (("hooks", event), keeps_event),
        (("hooks",), "hooks" in before),
    ):
        found = json_text.find(text, path)
        if found is None or found.members or keep:
            return text
        text = json_text.remove(text, path[:-1] if path[-1] == "hooks" and len(path) > 1 else path)
    return text


def _parsed(text: str) -> dict[str, Any]:
    """Raises SettingsError."""
    if not text.strip():
        raise SettingsError("is empty: write {} into it, or delete it")
    try:
        value = json.loads(text)
        json_text.read(text)
    except json.JSONDecodeError as failure:
        where = f"line {failure.lineno}, column {failure.colno}"
        raise SettingsError(f"is no JSON at {where}: {_complaint(text, failure)}") from None
    except (MalformedError, ValueError, RecursionError) as failure:
        raise SettingsError(f"is no JSON: {failure}") from None
    if not isinstance(value, dict):
        raise SettingsError(f"is {_kind(value)} and no JSON object; {{}} would be an empty one")
    return value


def _complaint(text: str, failure: json.JSONDecodeError) -> str:
    """What is wrong there: parsers say what they would have liked instead."""
    rest = text[failure.pos :].lstrip(", \t\r\n")
    if rest.startswith(("//", "/*", "#")):
        return "a comment, which JSON does not have; take it out"
    if rest[:1] in {"}", "]"} and "," in (text[: failure.pos].rstrip()[-1:], text[failure.pos]):
        return f"a comma before {rest[0]} at the end of a list; take it out"
    return failure.msg


def _check_hooks(hooks: object) -> None:
    """Raises SettingsError where ours cannot be added."""
    if not isinstance(hooks, dict):
        raise SettingsError(f"`hooks` is {_kind(hooks)} and no object; {{}} would be an empty one")
    for event in SECONDS:
        groups = hooks.get(event, [])
        if not isinstance(groups, list):
            raise SettingsError(f"`{event}` in `hooks` is {_kind(groups)} and no list")


def _kind(value: object) -> str:
    """As JSON calls it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return "a number"


def _without_mark(text: str) -> tuple[str, str]:
    return (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
