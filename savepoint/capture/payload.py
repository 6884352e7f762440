"""What an agent says to its hook on stdin, taken tolerantly: any field may be missing or wrong."""

from __future__ import annotations

import json
import re

from savepoint.core import spelling
from savepoint.core.named import NamedTuple

_FIELD_CHARS = 4096  # characters of an id or path; a longer one is no id or path


class Payload(NamedTuple):
    """The fields that a savepoint uses; an absent one is empty."""

    event: str = ""
    session_id: str = ""
    transcript: str = ""
    cwd: str = ""
    trigger: str = ""  # a word that a record may hold
    source: str = ""
    model: str = ""
    agent_id: str = ""
    intact: bool = True  # False: it was no JSON object, and the fields were found in its text


def parse(data: bytes) -> Payload:
    """The payload of a fire. Never raises: raw control characters, a text that ends in mid-string
    and plain rubbish are what clients really sent (claude-code#53463).
    """
    text = _text(data)
    try:
        value = json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return _search(text)
    if not isinstance(value, dict):
        return Payload(intact=False)
    return _payload({key: found for key, found in value.items() if isinstance(found, str)})


def is_whole(data: bytes) -> bool:
    """Is this an object to its end, so that nothing more is to come?"""
    try:
        return isinstance(json.loads(_text(data), strict=False), dict)
    except (ValueError, RecursionError):
        return False


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace").lstrip("\ufeff")


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
    return _payload(found, intact=False)


def _payload(found: dict[str, str], *, intact: bool = True) -> Payload:
    fields = {
        field: found[name]
        for name, field in _NAMES.items()
        if len(found.get(name, "")) <= _FIELD_CHARS and is_plain(found.get(name, "\0"))
    }
    if not spelling.is_word(fields.get("trigger", "")):
        fields.pop("trigger", None)  # else no record could be signed, and nothing saved
    return Payload(intact=intact, **fields)


def is_plain(text: str) -> bool:
    """Can this be a path, or stand in our JSON? NUL and lone surrogates can do neither."""
    try:
        return "\0" not in text and bool(text.encode())
    except UnicodeEncodeError:
        return False


_NAMES = {
    "hook_event_name": "event",
    "session_id": "session_id",
    "transcript_path": "transcript",
    "cwd": "cwd",
    "trigger": "trigger",
    "source": "source",
    "model": "model",
    "agent_id": "agent_id",
}
