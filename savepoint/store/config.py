"""A store's config.json: what the owner chose. Never read from the project's tree."""

from __future__ import annotations

import os

from savepoint.core import limits, schema, spelling
from savepoint.core.errors import MalformedError, NoStoreError, UnsupportedFormatError
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import Json, dump, parse
from savepoint.store import durable
from savepoint.store.files import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.store.layout import Store

EMBEDDED = "embedded"  # the default: no network, no funds, no public trace
MAINNET = "mainnet-beta"  # where it costs real money

OFF = "off"  # instead of a threshold
THRESHOLD = 85  # percent, as the specification has it


def _threshold(value: Json, where: str) -> None:
    if value != OFF and not (type(value) is int and 1 <= value <= 100):
        raise MalformedError(f"{where} is neither a percentage nor {OFF!r}")


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
        "remote": schema.nullable(schema.text),
        "push_wait": schema.count,
        "ledger": schema.nullable(schema.text),
        "program": schema.nullable(schema.spelled(spelling.key_bytes)),
        "payer": schema.nullable(schema.text),
        "spend": schema.nullable(schema.count),
        "confirmed": schema.nullable(schema.spelled(spelling.key_bytes)),
        "threshold": _threshold,
    },
    optional=frozenset(  # a store made before there were remotes, ledgers, or thresholds
        {"remote", "push_wait", "ledger", "program", "payer", "spend", "confirmed", "threshold"}
    ),
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
    remote: str | None = None  # where savepoints are pushed to; chosen by the owner, never guessed
    push_wait: int = limits.PUSH_WAIT_SECONDS  # seconds that a save waits for its push
    ledger: str | None = EMBEDDED  # its name, or URLs with a blank between them; None: off
    program: str | None = None  # base58 id of the program there; None: the one that ships
    payer: str | None = None  # Solana keypair file of who pays the fees; None: that of the home
    spend: int | None = None  # lamports that may be spent in 24 hours; None: no cap
    confirmed: str | None = None  # genesis hash (base58) of the mainnet that the owner agreed to
    threshold: int | None = THRESHOLD  # percent of what a session can use until its agent compacts;
    # it is saved when it has; None: off

    def save(self, store: Store) -> None:
        """Write it durably. Raises DiskError."""
        document: dict[str, Json] = {
            "v": 1,
            "instance": self.instance,
            "exclude": list(self.exclude),
            "projects": [dict(one._asdict()) for one in self.projects],
            "remote": self.remote,
            "push_wait": self.push_wait,
            "ledger": self.ledger,
            "program": self.program,
            "payer": self.payer,
            "spend": self.spend,
            "confirmed": self.confirmed,
            "threshold": OFF if self.threshold is None else self.threshold,
        }
        durable.replace(store.config, dump(document) + b"\n")


def load(store: Store) -> Config:
    """Raises NoStoreError (no such store), MalformedError (damaged or lost; the hint is the way
    out), UnsupportedFormatError, DiskError.
    """
    try:
        return _load(store)
    except MalformedError as failure:
        what = failure.message.removeprefix(f"{store.config}: ")
        raise MalformedError(f"{store.config}: {what}", hint=way_out(store)) from None


def way_out(store: Store) -> str:
    """What to do where the config is damaged or lost."""
    return f"`savepoint init --adopt {store.id[:8]}` in the project's folder writes a new one"


def _load(store: Store) -> Config:
    data = read_bounded(store.config, limits.SMALL_DOCUMENT_BYTES)
    if data is None:
        if not os.path.isdir(store.instances):
            raise NoStoreError(f"store {store.id} has no config.json")
        raise MalformedError("is missing")
    value = parse(data)
    version = value.get("v") if isinstance(value, dict) else None
    if type(version) is int and version > 1:
        raise UnsupportedFormatError(f"{store.config} is of version {version}")
    _SHAPE(value, "config.json")
    match value:
        case {"instance": str(instance), "exclude": [*exclude], "projects": [*projects], **more}:
            known = tuple(Project(**one) for one in projects)  # type: ignore[arg-type]  # _SHAPE
            more.pop("v")
            if more.get("threshold") == OFF:
                more["threshold"] = None
            return Config(instance, tuple(map(str, exclude)), known, **more)  # type: ignore[arg-type]  # _SHAPE
        case _:
            raise MalformedError("config.json is not what its shape says")
