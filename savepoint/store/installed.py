"""What `install` found in the agent's settings: the backup, and what `uninstall` goes back to."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

from savepoint.core import limits, schema, spelling
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import Json, dump, parse
from savepoint.store import durable
from savepoint.store.files import read_bounded
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from savepoint.store.layout import Home

_SHAPE = schema.members(
    {
        "v": schema.one_of(1),
        "files": schema.mapping(
            schema.members(
                {
                    "before": schema.nullable(schema.text),
                    "after": schema.text,
                    "folder": schema.nullable(schema.text),
                    "timestamp": schema.spelled(spelling.time_seconds),
                }
            )
        ),
    }
)


class Installed(NamedTuple):
    """One settings file that we added to."""

    before: str | None  # its text without anything of ours; None: there was no file
    after: str  # SHA-256 of what we wrote, hex
    folder: str | None  # that was made for it
    timestamp: str  # when

    def left(self, text: str) -> bool:
        """Is that text what we wrote, so that nobody has changed it since?"""
        return digest(text) == self.after


def digest(text: str) -> str:
    """SHA-256 of a text, hex."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def load(home: Home) -> dict[str, Installed]:
    """By the path of the settings file. Raises DiskError, MalformedError."""
    data = read_bounded(home.installed, limits.SMALL_DOCUMENT_BYTES)
    if data is None:
        return {}
    value = parse(data)
    _SHAPE(value, "installed.json")
    files = value.get("files") if isinstance(value, dict) else None
    if not isinstance(files, dict):
        raise MalformedError("installed.json is not what its shape says")
    return {path: Installed(**one) for path, one in files.items()}  # type: ignore[arg-type]  # _SHAPE


def keep(home: Home, path: str, one: Installed | None) -> None:
    """Remember, or with None forget, what was added to the file at `path`. Raises DiskError."""
    durable.make_directories(home.path)
    with Lock(home.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
        files = {name: known for name, known in load(home).items() if name != path}
        if one is not None:
            files[path] = one
        value: dict[str, Json] = {name: dict(known._asdict()) for name, known in files.items()}
        durable.replace(home.installed, dump({"v": 1, "files": value}) + b"\n")
