"""What the witnesses say of a savepoint, and a remote to push to: for the tests of `verify`."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from savepoint.capture import surroundings
from savepoint.cli.shapes.verification import Verification
from savepoint.gitlayer.remote import push, remote_url
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.repository import Repository
from tests.gitlayer.remotes import Bare

if TYPE_CHECKING:
    from tests.cli.scene import Ran, Scene


def chain_of(ran: Ran, at: int = 0) -> dict[str, Any]:
    Verification.model_validate(ran.json)
    witness: dict[str, Any] = ran.json["savepoints"][at]["witnesses"]["chain"]
    return witness


def remote_of(cli: Scene) -> Bare:
    return Bare(cli.project.parent / "remote.git")


def use_remote(cli: Scene) -> None:
    cli.good("config", "remote", str(remote_of(cli).path))


def push_to_remote(cli: Scene) -> None:
    """As the worker does it."""
    store = cli.paths.store
    env = surroundings.for_children(os.environ)
    repo = Repository.of(store, env, time.monotonic() + 120)
    remote = Remote.of(repo, remote_url.parse(str(remote_of(cli).path), "/"))
    assert push.push(remote, cli.paths, lambda _done, _all: None)


def save_and_push(cli: Scene, count: int = 2) -> None:
    """So many savepoints, at the remote as well."""
    for number in range(count):
        cli.say(f"message {number}")
        cli.created()
    use_remote(cli)
    push_to_remote(cli)


def git_of(ran: Ran) -> dict[str, Any]:
    """The git witness of the one savepoint."""
    Verification.model_validate(ran.json)
    (one,) = ran.json["savepoints"]
    witness: dict[str, Any] = one["witnesses"]["git"]
    return witness


def git_failures(ran: Ran) -> dict[str, str]:
    """Rule → detail of what does not pass."""
    found = git_of(ran)["findings"]
    return {one["rule"]: one["detail"] for one in found if one["result"] != "pass"}


def git_dir(cli: Scene) -> Path:
    return Path(cli.paths.store.repository)


def ref_of(cli: Scene) -> Path:
    return git_dir(cli) / "refs/heads/savepoints" / cli.paths.slug
