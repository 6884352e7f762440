"""What a session touched: the paths and words of the tool calls in its transcript."""

from __future__ import annotations

from contextlib import suppress

from savepoint.capture.agents import claude_lines
from savepoint.core import limits, spelling
from savepoint.core.digest import sha256
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple
from savepoint.core.patterns import late
from succession.dynasty import words
from succession.dynasty.constants import WORD_LETTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ID_DIGITS = 12  # hex digits of an id's digest: enough to tell some thousand calls apart


class Call(NamedTuple):
    """One tool call."""

    key: str  # stands for its tool_use_id
    time: float  # Unix seconds; 0 where the record tells none
    paths: tuple[str, ...]  # from the project's top
    words: frozenset[str]


class Read(NamedTuple):
    """The calls of some bytes of a transcript, and whether a turn ended in them."""

    calls: tuple[Call, ...]
    answered: bool  # the agent said something
    size: int  # bytes of whole lines


def read(data: bytes, project: str) -> Read:
    """The calls in whole lines; a last line without LF is left for the next time. Never raises."""
    size = data.rfind(b"\n") + 1
    calls: list[Call] = []
    answered = False
    for line in data[:size].split(b"\n"):
        if b'"assistant"' not in line or len(line) > limits.SCAN_LINE_BYTES:
            continue
        for record in claude_lines.objects(line)[0]:
            if record.get("type") == "assistant" and record.get("isApiErrorMessage") is not True:
                answered = True
                calls += _calls(record, project)
    return Read(tuple(calls), answered, size)


def _calls(record: dict[str, object], project: str) -> Iterator[Call]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    for block in content if isinstance(content, list) else []:
        if not isinstance(block, dict) or block.get("type") != "tool_use":
            continue
        identity, given = block.get("id"), block.get("input")
        if isinstance(identity, str) and isinstance(given, dict):
            paths = tuple(dict.fromkeys(_paths(given, project)))
            key = sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
            time = _seconds(record.get("timestamp"))
            yield Call(key[:_ID_DIGITS], time, paths, _words(given, paths))


def _paths(given: dict[object, object], project: str) -> Iterator[str]:
    """Files and folders that the call names, also in a command line."""
    for name in ("file_path", "notebook_path", "path"):
        value = given.get(name)
        if isinstance(value, str) and value:
            yield _inside(value, project)
    command = given.get("command")
    if isinstance(command, str):
        yield from sorted(_inside(one, project) for one in words.paths(command))


def _words(given: dict[object, object], paths: tuple[str, ...]) -> frozenset[str]:
    """Words of the paths and of what was searched for. A command line is no such thing: it says
    what a program is told, and often what an entry says.
    """
    asked = (given.get(name) for name in ("pattern", "query", "glob"))
    texts = [*paths, *(one for one in asked if isinstance(one, str))]
    return frozenset(one for one in words.words(" ".join(texts)) if len(one) >= WORD_LETTERS)


def _inside(path: str, project: str) -> str:
    return path.removeprefix(project.rstrip("/") + "/").removeprefix("./")


def _seconds(value: object) -> float:
    """Of an ISO time with a zone. As the client writes it, it needs no datetime, whose import takes
    a turn 2 ms.
    """
    usual = _TIME.fullmatch(value) if isinstance(value, str) else None
    if usual is not None:
        with suppress(MalformedError):  # no such day, or a leap second
            return (spelling.time_seconds(f"{usual[1]}Z") * 1000 + int(usual[2])) / 1000
    from datetime import datetime

    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        moment = None
    return moment.timestamp() if moment is not None and moment.tzinfo else 0.0


_TIME = late(r"([0-9-]{10}T[0-9:]{8})\.([0-9]{3})Z")
