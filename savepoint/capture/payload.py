"""What an agent says to its hook on stdin, taken tolerantly: any field may be missing or wrong."""

from __future__ import annotations

import json
import re
from typing import NamedTuple

_FIELD_CHARS = 4096  # characters of an id or path; a longer one is no id or path


class Payload(NamedTuple):
    """The fields that a savepoint uses; an absent one is empty."""

    event: str = ""
    session_id: str = ""
    transcript: str = ""
    cwd: str = ""
    trigger: str = ""
    model: str = ""
    agent_id: str = ""
    intact: bool = True  # False: it was no JSON object, and the fields were found in its text


def parse(data: bytes) -> Payload:
    """The payload of a fire. Never raises: raw control characters, a text that ends in mid-string
    and plain rubbish are what clients really sent (claude-code#53463)."""
    text = data.decode("utf-8", "replace").lstrip("\ufeff")
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return _search(text)
    if not isinstance(value, dict):
        return Payload(intact=False)
    return _payload({key: found for key, found in value.items() if isinstance(found, str)}, True)


def _search(text: str) -> Payload:
    """The fields of something that is nearly JSON: the first whole string behind each name."""
    found = {}
    for name in _NAMES:
        match = re.search(rf'"{name}"\s*:\s*("(?:[^"\\]|\\.)*")', text)
        if match:
            try:
                found[name] = json.loads(match[1], strict=False)
            except ValueError:
                continue
    return _payload(found, False)


def _payload(found: dict[str, str], intact: bool) -> Payload:
    fields = {
        field: found[name]
        for name, field in _NAMES.items()
        if name in found and len(found[name]) <= _FIELD_CHARS and "\0" not in found[name]
    }
    return Payload(intact=intact, **fields)  # type: ignore[arg-type]  # names of Payload's own fields


_NAMES = {
    "hook_event_name": "event",
    "session_id": "session_id",
    "transcript_path": "transcript",
    "cwd": "cwd",
    "trigger": "trigger",
    "model": "model",
    "agent_id": "agent_id",
}
