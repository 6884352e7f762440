"""A repository and nothing else: for who has no store, and trusts nobody.

What it has of one instance is fetched into a store that lives as long as somebody looks at it; the
rules are then the same as everywhere. Nothing of the repository's own configuration is used.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from savepoint.core import limits, verify_index
from savepoint.core.errors import MalformedError, SelectorError, TamperedError
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import CheckedSavepoint, Report, Witness
from savepoint.gitlayer import repository, tree
from savepoint.gitlayer.remote import clone, theirs
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.repository import Repository
from savepoint.store import durable, index, savepoints
from savepoint.store.config import Config
from savepoint.store.layout import Home
from savepoint.store.witness import examine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from savepoint.core.verdicts import Finding
    from savepoint.gitlayer.remote.remote_url import RemoteUrl
    from savepoint.gitlayer.remote.theirs import Theirs
    from savepoint.store.layout import InstancePaths
    from savepoint.store.witness.examine import Select

_STORE = "00" * 16  # its id; there is no other in its home
_CLONED = "refs/remotes/origin/savepoints"  # where `git clone` puts the branches of its remote
_ASK = "name a ledger with --ledger, and the id of the program with --program"
_OFF = Witness((), off="only a repository was given")


class Alone(NamedTuple):
    """What a repository has of one instance, in a store of its own."""

    repo: Repository
    paths: InstancePaths
    config: Config


@contextmanager
def opened(
    url: RemoteUrl, instance: str, scratch: str, env: Mapping[str, str], deadline: float
) -> Iterator[Alone]:
    """url: the remote itself, or a clone of it. instance: slug or `NAME #N`, empty where it has
    only one. scratch: a folder for temporary files. deadline: of time.monotonic().

    Raises SelectorError (it has no such instance), TamperedError and MalformedError (its index is
    not what the key has signed), RemoteUnreachableError, RemoteDivergedError, CommitError,
    DiskError.
    """
    home = os.path.join(scratch, f"{durable.TEMPORARY_PREFIX}{os.urandom(8).hex()}")
    store = Home(home).store(_STORE)
    repo = Repository.of(store, env, deadline)
    try:
        durable.make_directories(store.path)
        repository.ensure(repo)
        remote, slug, tip = _chosen(Remote.of(repo, url), instance)
        clone.bring(remote, slug, tip)
        paths, config = store.instance(slug), Config(slug, (), (), ledger=None)
        config.save(store)
        _write(repo, paths, _read(remote, slug, tip))
        yield Alone(repo, paths, config)
    finally:
        durable.remove_folder(home)


def _read(remote: Remote, slug: str, tip: str) -> Theirs:
    """What the newest commit is, told with where it was found: there is no store to look into."""
    try:
        return theirs.read(remote.repo, slug, tip)
    except MalformedError as failure:
        where = f"{remote.url.shown}, branch {repository.branch(slug)}, commit {tip}"
        hint = "what somebody changed there is not made good here; ask for another clone"
        raise TamperedError(f"{where}: {failure.message}", hint=hint) from failure


def report(alone: Alone, select: Select | None) -> Report:
    """Rules 1 to 4 of its index, and the savepoints that `select` takes of it (None: all), of
    which no witness has been asked yet.
    """
    data = index.read(alone.paths)
    found = verify_index.Index(data, None, examine.names(alone.paths))
    saves = [one for one, _ in found.saves]
    chosen = saves if select is None else select(saves)
    checked = tuple(
        CheckedSavepoint(
            one.seq,
            str(one.body["snapshot_hash"]),
            {"local": _OFF, "git": _OFF, "chain": _OFF},
        )
        for one in chosen
    )
    return Report(Witness(tuple(map(_unseen, found.findings()))), checked)


def _unseen(one: Finding) -> Finding:
    """Who has seen nothing before is told of a newer index by a ledger alone."""
    if one.rule != "VERIFY-4" or one.result != "skipped":
        return one
    return one._replace(detail="only a ledger tells whether there was a newer index", hint=_ASK)


def _chosen(remote: Remote, instance: str) -> tuple[Remote, str, str]:
    """How to ask for the branch of the instance, its slug, and its tip."""
    for below in (remote.below, _CLONED):
        there = remote._replace(below=below)
        tips = there.tips()
        fitting = [one for one in tips if not instance or savepoints.is_named(one, instance)]
        if len(fitting) == 1:
            return there, fitting[0], tips[fitting[0]]
        if tips:
            hint = f"name one with --instance: {_some(sorted(fitting or tips))}"
            raise SelectorError(f"{remote.url.shown} has {len(fitting)} such instances", hint=hint)
    hint = "it is neither the remote of a store nor a clone of one"
    raise SelectorError(f"{remote.url.shown} has no savepoints", hint=hint)


def _some(slugs: list[str]) -> str:
    """Whoever can write there can put any number of branches there."""
    more = len(slugs) - limits.LISTED
    return ", ".join(slugs[: limits.LISTED]) + (f" and {more} more" if more > 0 else "")


def _write(repo: Repository, paths: InstancePaths, found: Theirs) -> None:
    durable.make_directories(paths.snapshots)
    durable.replace(paths.index_file, found.data)
    if tree.BOOTSTRAP in found.files:
        (data,) = tree.contents(repo, [found.files[tree.BOOTSTRAP]], limits.SMALL_DOCUMENT_BYTES)
        durable.replace(paths.bootstrap, data)
