"""Git talking to a remote, as its owner would and without ever asking a question.

Here, and nowhere else, the user's own git configuration counts: credential helpers, proxies, ssh
commands, insteadOf. What it could do beyond that is switched off: hooks, prompts, signed pushes,
protocols in the clear.
"""

from __future__ import annotations

import os
import re
import time
from typing import TYPE_CHECKING

from savepoint import gitcmd
from savepoint.core import limits
from savepoint.core.errors import (
    PushRefusedError,
    RemoteDivergedError,
    RemoteUnreachableError,
    SavepointError,
)
from savepoint.core.named import NamedTuple
from savepoint.gitlayer import repository
from savepoint.gitlayer.remote import remote_url
from savepoint.gitlayer.repository import BRANCHES, ID_DIGITS
from savepoint.store.journal import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.gitlayer.remote.remote_url import RemoteUrl
    from savepoint.gitlayer.repository import Repository

_SETTINGS = (
    "credential.interactive=false",
    f"http.lowSpeedLimit={limits.REMOTE_STALL_BYTES}",
    f"http.lowSpeedTime={limits.REMOTE_STALL_SECONDS}",  # without: a silent server for ever
    "fetch.fsckObjects=true",
    "fetch.unpackLimit=1",  # one pack a fetch, as one a commit
    "fetch.prune=false",
    "push.gpgSign=false",
    "push.pushOption=",
    "pack.window=0",  # nothing to find: what is encrypted has no deltas
    "pack.compression=0",
    "submodule.recurse=false",
)
_OPTIONS = tuple(part for setting in _SETTINGS for part in ("-c", setting))

# A question of ssh is answered by a program that fails; one of git, by nobody. A session of its own
# (gitcmd) has no terminal.
_UNASKED = {
    "GIT_ALLOW_PROTOCOL": remote_url.PROTOCOLS,  # over what a config or an insteadOf says
    "GIT_ASKPASS": "",  # none, whatever is configured: it would be asked with the user's name
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "force",
    "GCM_INTERACTIVE": "never",
}
_NO_BATCH_MODE = ("plink", "putty", "tortoiseplink", "simple")  # values of ssh.variant

_PROMISOR = "promisor"  # how the remote is called where it is asked for single blobs
_GENEROUS = "git -c uploadpack.allowFilter=true upload-pack"
_SLUG = re.compile(
    f"[a-z0-9-]{{1,{limits.SLUG_CHARS}}}-[0-9a-f]{{8}}"
)  # as `Instance.slug` makes them
_SEEN = "refs/savepoint/seen"  # what was fetched, by commit: nothing is ever overwritten there
_HOSTILE = (b"fsck error", b"did not send all necessary objects")
_OF_A_BRANCH = (*_HOSTILE, b"not our ref", b" is corrupt", b"possible repository corruption")
_UNFIT = (b"does not support this repository's hash algorithm", b"shallow update not allowed")


class Remote(NamedTuple):
    """A remote, and the repository that is pushed to it."""

    repo: Repository
    url: RemoteUrl
    ssh: str  # the command that git runs for ssh
    below: str = BRANCHES  # where it has the branches of instances; a clone has them elsewhere

    @classmethod
    def of(cls, repo: Repository, url: RemoteUrl) -> Remote:
        """Ready to be spoken to: the user's ssh command is looked up, and told to ask nothing."""
        return cls(repo, url, _ssh_command(repo))

    def tip(self, slug: str) -> str | None:
        """The commit of an instance's branch, or None where there is none.

        Raises RemoteUnreachableError.
        """
        return self.tips(slug).get(slug)

    def tips(self, slug: str = "*") -> dict[str, str]:
        """Slug → commit of the branches that the remote has, of those that an instance can have.

        Raises RemoteUnreachableError.
        """
        command = ("ls-remote", "--refs", self.url.address, f"{self.below}/{slug}")
        result = self._run(command, limits.REMOTE_ANSWER_SECONDS)
        if not result.ok:
            raise self._unreachable(result)
        found = [line.partition("\t") for line in result.out.decode("utf-8", "replace").split("\n")]
        return {
            name.removeprefix(f"{self.below}/"): commit
            for commit, _, name in found
            if name.startswith(f"{self.below}/")
            and len(commit) == ID_DIGITS
            and _SLUG.fullmatch(name.removeprefix(f"{self.below}/"))
        }

    def push(self, slug: str, commit: str, size: int) -> None:
        """Let the instance's branch lead to `commit`, which comes after what the remote has: it is
        never forced. size: bytes that this takes, for its deadline.

        Raises PushRefusedError, RemoteDivergedError (someone was faster), RemoteUnreachableError.
        """
        seconds = limits.PUSH_STEP_SECONDS + size / limits.PUSH_BYTES_PER_SECOND
        options = ("--porcelain", "--no-progress", "--no-verify", "--no-signed")
        alone = ("--no-follow-tags", "--recurse-submodules=no", "--no-thin")
        refspec = f"{commit}:{repository.branch(slug)}"
        result = self._run(("push", *options, *alone, self.url.address, refspec), seconds)
        if not result.ok:
            raise self._push_failure(result)

    def fetch(self, slug: str, commit: str, *, depth: int = 0) -> None:
        """Bring what the instance's branch leads to, `commit` as it was last seen, into a place of
        its own. depth: so many commits, each of which is a whole savepoint; 0: all of them.

        Raises RemoteUnreachableError, RemoteDivergedError (what it sends is not sound).
        """
        place = f"{_SEEN}/{commit}"
        options = ("--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--quiet")
        border = (f"--depth={depth}",) if depth else ()
        refspec = f"{self.below}/{slug}:{place}"  # no `+`: never over another commit
        command = ("fetch", *options, *border, "--no-auto-maintenance", self.url.address, refspec)
        result = self._run(command, limits.FETCH_SECONDS)
        if any(words in result.err for words in _HOSTILE):
            raise RemoteDivergedError(f"what {self.url.shown} sends is unsound: {said(result)}")
        if not result.ok:
            raise self._unreachable(result)
        if repository.read_ref(self.repo, place) != commit:
            self.repo.run("update-ref", "-d", place)
            raise RemoteUnreachableError(f"the branch at {self.url.shown} moved meanwhile")

    def glance(self, tips: Mapping[str, str]) -> None:
        """Bring the newest commits and trees of these branches (slug → commit), without content:
        what is read of it is fetched by itself. For a repository that is thrown away.

        Whoever can write there can put branches beside ours: nothing comes of one that cannot be
        had, or is unsound. Raises RemoteUnreachableError.
        """
        refspecs = "".join(f"{self.below}/{slug}:{_SEEN}/{slug}\n" for slug in tips)
        options = ("--no-tags", "--no-write-fetch-head", "--quiet", "--no-auto-maintenance")
        without = ("--depth=1", "--filter=blob:none")
        command = (*self.promising(), "fetch", "--stdin", *options, *without, _PROMISOR)
        result = self._run(command, limits.FETCH_SECONDS, stdin=refspecs.encode())
        if result.ok:
            return
        if result.problem or not any(words in result.err for words in _OF_A_BRANCH):
            raise self._unreachable(result)
        some = list(tips.items())
        half = len(some) // 2
        for part in (some[:half], some[half:]) if half else ():
            self.glance(dict(part))

    def read_lazily(self, blob: str, limit: int) -> bytes:
        """The bytes of a blob that `glance` left out. Raises RemoteUnreachableError."""
        command = (*self.promising(), "cat-file", "blob", blob)
        result = self._run(command, limits.REMOTE_ANSWER_SECONDS, limit, lazily=True)
        if not result.ok:
            raise self._unreachable(result)
        return result.out

    def promising(self) -> tuple[str, ...]:
        """Options that name the remote as the one which has what is missing here. A path, which
        serves only what its own config allows, is asked with one that does.
        """
        name = f"remote.{_PROMISOR}"
        settings = [f"{name}.url={self.url.address}", f"{name}.promisor=true"]
        if self.url.kind in ("path", "file"):
            settings.append(f"{name}.uploadpack={_GENEROUS}")
        return tuple(part for one in settings for part in ("-c", one))

    def complete(self, slug: str) -> None:
        """Bring the history of an instance's branch that a shallow repository lacks. One that lacks
        none is not asked for it: git refuses to, whatever the remote is like.

        Raises RemoteUnreachableError.
        """
        if not os.path.exists(os.path.join(self.repo.path, "shallow")):
            return
        options = ("--unshallow", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance")
        command = ("fetch", "--quiet", *options, self.url.address, repository.branch(slug))
        result = self._run(command, limits.FETCH_SECONDS)
        if not result.ok:
            raise self._unreachable(result)

    def _run(
        self,
        args: tuple[str, ...],
        seconds: float,
        limit: int = limits.GIT_OUTPUT_BYTES,
        *,
        stdin: bytes = b"",
        lazily: bool = False,
    ) -> gitcmd.Result:
        where = (self.repo.option, *repository.OPTIONS, *_OPTIONS)
        lazy = {"GIT_NO_LAZY_FETCH": "0"} if lazily else {}
        running = gitcmd.start(
            (*where, *args),
            env=self.repo.env,
            stdin=stdin,
            limit=limit,
            variables={**_UNASKED, "GIT_SSH_COMMAND": self.ssh, **self.url.settings, **lazy},
        )
        return running.finish(min(self.repo.deadline, time.monotonic() + seconds))

    def _push_failure(self, result: gitcmd.Result) -> SavepointError:
        """A line of --porcelain that starts with `!` says what the remote, or git, refuses."""
        lines = result.out.decode("utf-8", "replace").split("\n")
        refused = next((line for line in lines if line.startswith("!")), "")
        if "[remote rejected]" in refused:
            why = _clean(refused.rpartition("(")[2].rstrip(")"))
            return PushRefusedError(f"{self.url.shown} refuses: {remote_line(result) or why}")
        if "[rejected]" in refused:
            return RemoteDivergedError(f"the branch at {self.url.shown} is no longer where it was")
        if any(words in result.err for words in _UNFIT):
            return PushRefusedError(f"{self.url.shown} refuses: {said(result)}")
        return self._unreachable(result)

    def _unreachable(self, result: gitcmd.Result) -> RemoteUnreachableError:
        reason = result.problem or said(result)
        return RemoteUnreachableError(f"{self.url.shown} cannot be reached: {reason}")


def remote_line(result: gitcmd.Result) -> str:
    """The line of the remote's own that says why; nothing where it said nothing."""
    lines = [line for line in _lines(result) if line.startswith("remote: ")]
    own = [line.removeprefix("remote: ").strip() for line in lines]
    telling = [one for one in own if one.lower().startswith(("error", "fatal"))]
    return _clean(next(filter(None, [*telling, *own]), ""))


def said(result: gitcmd.Result) -> str:
    """The first line of git, ssh or the remote that tells what is wrong."""
    lines = [one.strip() for one in _lines(result)]
    telling = [one for one in lines if one and not one.lower().startswith(("warning", "hint:"))]
    return _clean(telling[0]) if telling else f"git ended with exit code {result.code}"


def _lines(result: gitcmd.Result) -> list[str]:
    return result.err.decode("utf-8", "backslashreplace").replace("\r", "\n").split("\n")


def _clean(line: str) -> str:
    """Bounded, in one line that steers no terminal, and without what a URL may carry."""
    return printable(remote_url.without_secrets(line))[: limits.REMOTE_LINE_CHARS]


def _ssh_command(repo: Repository) -> str:
    """What the user has configured, or ssh, with BatchMode: a key that wants a passphrase, or a
    host that is not known, fails at once (entireio/cli#1523: a push hung there).
    """
    names = r"^(core\.sshcommand|ssh\.variant)$"
    command = (repo.option, "config", "--null", "--get-regexp", names)
    result = gitcmd.start(command, env=repo.env).finish(repo.deadline)
    entries = result.out.decode("utf-8", "surrogateescape").split("\0")
    known = {name: value for name, _, value in (one.partition("\n") for one in entries)}
    chosen = known.get("core.sshcommand") or "ssh"
    program = os.path.basename(chosen.split(" ")[0]).lower().removesuffix(".exe")
    if known.get("ssh.variant", program).lower() in _NO_BATCH_MODE:
        return chosen
    return f"{chosen} -o BatchMode=yes"
