"""What the owner chose for handoffs: pairs of commands for bindings, and kinds of guidance.

stores/<id>/handoff.json, written by `savepoint handoff config`; never read from the project's tree:
a cloned repository must not choose what is run.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from savepoint.core import limits, schema
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import Json, dump, parse
from savepoint.store import durable
from savepoint.store.files import read_bounded
from succession.handoff import trigger

if TYPE_CHECKING:
    from savepoint.store.layout import Store
    from succession.handoff.trigger import Kind

FILE = "handoff.json"
_WORDS = schema.array(schema.text)
_SHAPE = schema.members(
    {
        "v": schema.one_of(1),
        "commands": schema.mapping(schema.members({"set": _WORDS, "read": _WORDS})),
        "kinds": schema.array(trigger.KIND),
    }
)


class Pair(NamedTuple):
    """How a binding is set, and how it is read back: programs with their arguments."""

    set: tuple[str, ...]  # gets the key and the value behind them
    read: tuple[str, ...]  # gets the key, and prints the value


class Chosen(NamedTuple):
    """All of it."""

    commands: dict[str, Pair]
    kinds: tuple[Kind, ...]  # held against a file before Claude Code's own

    def save(self, store: Store) -> None:
        """Write it durably. Raises DiskError."""
        pairs: dict[str, Json] = {
            name: {"set": list(one.set), "read": list(one.read)}
            for name, one in self.commands.items()
        }
        kinds: list[Json] = [dict(one._asdict()) for one in self.kinds]
        document: dict[str, Json] = {"v": 1, "commands": pairs, "kinds": kinds}
        durable.replace(_path(store), dump(document) + b"\n")


def load(store: Store) -> Chosen:
    """Raises MalformedError, DiskError."""
    path = _path(store)
    data = read_bounded(path, limits.SMALL_DOCUMENT_BYTES)
    if data is None:
        return Chosen({}, ())
    try:
        value = parse(data)
        _SHAPE(value, FILE)
    except MalformedError as failure:
        hint = "move it away, then choose anew: `savepoint handoff config`"
        raise MalformedError(f"{path}: {failure.message}", hint=hint) from None
    match value:
        case {"commands": dict(pairs), "kinds": [*kinds]}:
            commands = {name: _pair(one) for name, one in pairs.items()}
            return Chosen(commands, tuple(map(trigger.kind_of_json, kinds)))
    raise MalformedError(f"{path} is not what its shape says")


def _pair(value: Json) -> Pair:
    match value:
        case {"set": [*to_set], "read": [*to_read]}:
            return Pair(tuple(map(str, to_set)), tuple(map(str, to_read)))
    raise MalformedError(f"{FILE} has no pair of commands")


def _path(store: Store) -> str:
    return os.path.join(store.path, FILE)
