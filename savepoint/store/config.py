"""A store's config.json: what the owner chose. Never read from the project's tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from savepoint.core import limits, schema
from savepoint.core.errors import MalformedError, NoStoreError
from savepoint.core.strict_json import Json, dump, parse
from savepoint.store import durable
from savepoint.store.files import read_bounded

if TYPE_CHECKING:
    from savepoint.store.layout import Store

_SHAPE = schema.members(
    {
        "v": schema.one_of(1),
        "instance": schema.text,
        "exclude": schema.array(schema.text),
        "projects": schema.array(
            schema.members(
                {
                    "path": schema.text,
                    "common_dir": schema.nullable(schema.text),
                    "device": schema.count,
                    "inode": schema.count,
                }
            )
        ),
    }
)


class Project(NamedTuple):
    """A folder whose sessions belong to the store."""

    path: str  # real path
    common_dir: str | None  # of its git repository: worktrees share the store
    device: int
    inode: int


class Config(NamedTuple):
    """What the owner chose for one store."""

    instance: str  # slug of the current instance
    exclude: tuple[str, ...]  # globs of project files that are never captured as files
    projects: tuple[Project, ...]

    def save(self, store: Store) -> None:
        """Write it durably. Raises DiskError."""
        document: dict[str, Json] = {
            "v": 1,
            "instance": self.instance,
            "exclude": list(self.exclude),
            "projects": [dict(one._asdict()) for one in self.projects],
        }
        durable.replace(store.config, dump(document) + b"\n")


def load(store: Store) -> Config:
    """Raises NoStoreError (no such store), MalformedError, DiskError."""
    data = read_bounded(store.config, limits.SMALL_DOCUMENT_BYTES)
    if data is None:
        raise NoStoreError(f"store {store.id} has no config.json")
    value = parse(data)
    _SHAPE(value, "config.json")
    match value:
        case {"instance": str(instance), "exclude": [*exclude], "projects": [*projects]}:
            known = tuple(Project(**one) for one in projects)  # type: ignore[arg-type]  # _SHAPE
            return Config(instance, tuple(map(str, exclude)), known)
        case _:
            raise MalformedError("config.json is not what its shape says")
