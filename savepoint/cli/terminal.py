"""What the command line shows: lines for people, one JSON document for programs, bytes as they are.

Names, paths and reasons come from transcripts and repositories, so whatever is printed as a line is
escaped first: a file name must not steer the reader's terminal.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

import typer

from savepoint.core.errors import DiskError
from savepoint.core.spelling import counted as counted  # noqa: PLC0414  # the commands' own
from savepoint.store.journal import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import FrameType

    from savepoint.core.strict_json import Json

    Progress = Callable[[int, int | None], None]  # done, total if it is known; in bytes

_UNTOLD = "what the command did stands, only this could not be written; see where the output goes"
PIPE_CLOSED = 128 + signal.SIGPIPE  # exit code: the reader has gone, as `| head` does
_KILO = 1000


def prepare() -> None:
    """Make the streams take every text, whatever the locale, and SIGTERM end us in order."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # a closed descriptor: what is written then goes nowhere
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # a TextIOWrapper
    signal.signal(signal.SIGTERM, _end)


def _end(number: int, _frame: FrameType | None) -> None:
    """As an exception, so that what is half written is removed on the way out."""
    raise SystemExit(128 + number)


def say(line: str = "", colour: str | None = None) -> None:
    """One line on stdout."""
    text = printable(line)
    if colour and sys.stdout and sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        text = typer.style(text, fg=colour)
    _put(sys.stdout, text)


def note(line: str) -> None:
    """One line on stderr, beside the data."""
    _put(sys.stderr, f"savepoint: note: {printable(line)}")


def complain(message: str, hint: str) -> None:
    """An error, and what to do about it, on stderr."""
    _put(sys.stderr, f"savepoint: error: {printable(message)}")
    if hint:
        advise(hint)


def advise(hint: str) -> None:
    """What to do next, on stderr."""
    _put(sys.stderr, f"savepoint: hint: {printable(hint)}")


def document(value: Json) -> None:
    """The one JSON document of `--json`, in UTF-8 whatever the locale. What a terminal would obey,
    or show in another order, goes out as JSON's own escape: the value is the same.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not text.isprintable():
        text = "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)
    write(text.encode("utf-8") + b"\n")


def write(data: bytes) -> None:
    """Bytes on stdout as they are; nowhere if it is closed."""
    if sys.stdout is None:
        return
    with _reader():
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Rows under their heads; a head that starts with `>` is of a column of numbers."""
    names = [head.removeprefix(">") for head in heads]
    for line in columns([names, *rows], [head.startswith(">") for head in heads]):
        say(line)


def columns(rows: Sequence[Sequence[str]], to_right: Sequence[bool]) -> list[str]:
    """Each row as a line, its cells below those of the others; an empty column takes no room."""
    shown = [[printable(cell) for cell in row] for row in rows]
    widths = [max((len(row[n]) for row in shown), default=0) for n in range(len(to_right))]
    lines = []
    for row in shown:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, to_right, strict=True)
            if width
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def speaks(text: str) -> bool:
    """Can stdout show these characters?"""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def arrow() -> str:
    """What stands before what is to be done."""
    return "→" if speaks("→") else "->"


def size(count: int) -> str:
    """Bytes for people: `999 B`, `1.2 MB`."""
    if count < _KILO:
        return f"{count} B"
    value, units = count / _KILO, ["kB", "MB", "GB", "TB"]
    while value >= _KILO and len(units) > 1:
        value /= _KILO
        units.pop(0)
    return f"{value:.1f} {units[0]}"


def span(seconds: float) -> str:
    """A stretch of time for people, in its largest unit: `3 hours`."""
    for name, length in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return counted(int(seconds // length), name)
    return counted(max(0, int(seconds)), "second")


@contextmanager
def busy(text: str) -> Iterator[None]:
    """Show on a terminal that work of unknown length goes on."""
    if not _watched():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield


@contextmanager
def progress(text: str) -> Iterator[Progress]:
    """Show on a terminal how far work has come."""
    if not _watched():
        yield lambda _done, _total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(text, total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def _watched() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _put(stream: TextIO | None, line: str) -> None:
    """Nowhere if the stream is closed."""
    if stream is None:
        return
    with _reader():
        stream.write(line + "\n")


def flush() -> None:
    """Write what was said: where that fails, it fails here and not at the end of the process."""
    with _reader():
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()


@contextmanager
def _reader() -> Iterator[None]:
    """Nobody reads on: nothing is left to say, and it is no failure worth a word. What cannot be
    told is a failure, but what it was about has been done.
    """
    try:
        yield
    except BrokenPipeError:
        raise SystemExit(PIPE_CLOSED) from None
    except OSError as failure:
        raise DiskError(DiskError.of(failure, "the output").message, hint=_UNTOLD) from failure
