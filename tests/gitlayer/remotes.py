"""Real bare remotes, good ones and others, and a store that is pushed to them."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from savepoint.capture import surroundings
from savepoint.gitlayer.remote import push, pushed, remote_url
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.repository import Repository
from savepoint.store import config, trusted
from tests.gitlayer.layer import Layer

if TYPE_CHECKING:
    from savepoint.core.record import Record
    from savepoint.store.trusted import TrustedHead

SECONDS = 30


class Bare(NamedTuple):
    """A bare repository that somebody serves."""

    path: Path

    @classmethod
    def new(cls, path: Path, *options: str) -> Bare:
        git("init", "--quiet", "--bare", *options, str(path))
        return cls(path)

    def git(self, *args: str, stdin: bytes = b"") -> str:
        return git(f"--git-dir={self.path}", *args, stdin=stdin)

    def tip(self, slug: str) -> str:
        """Of an instance's branch; nothing where there is none."""
        return self.git("for-each-ref", "--format=%(objectname)", f"refs/heads/savepoints/{slug}")

    def hook(self, name: str, script: str) -> None:
        path = self.path / "hooks" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def record_pushes(self) -> Path:
        """A file with a line for each commit that a push brings."""
        log = self.path / "pushes"
        log.touch()
        script = f'while read -r old new ref; do echo "$old $new" >> "{log}"; done'
        self.hook("post-receive", script)
        return log

    def put(self, slug: str, commit: str) -> None:
        """Somebody moves the branch, wherever to."""
        self.git("update-ref", f"refs/heads/savepoints/{slug}", commit)

    def foreign_commit(
        self, parent: str | None, path: str = "note.txt", mode: str = "100644"
    ) -> str:
        """A commit that is no savepoint, on top of `parent` or of nothing."""
        blob = self.git("hash-object", "-w", "--stdin", stdin=b"/etc/passwd")
        listing = self.git("ls-tree", "-r", "-z", parent) if parent else ""
        entry = f"{mode} blob {blob}\t{path}\0"
        env = {"GIT_INDEX_FILE": str(self.path / "foreign.index")}
        (self.path / "foreign.index").unlink(missing_ok=True)
        git(
            f"--git-dir={self.path}",
            "update-index",
            "-z",
            "--index-info",
            stdin=(listing + entry).encode(),
            env=env,
        )
        tree = git(f"--git-dir={self.path}", "write-tree", env=env)
        parents = ["-p", parent] if parent else []
        return self.git("commit-tree", tree, *parents, "-m", "not a savepoint")


class Pushing(NamedTuple):
    """A store whose remote is `bare`."""

    layer: Layer
    bare: Bare

    @classmethod
    def new(cls, folder: Path) -> Pushing:
        """Nothing is saved, committed or pushed yet."""
        one = cls(Layer.new(folder), Bare.new(folder / "remote.git"))
        one.use(str(one.bare.path))
        return one

    def use(self, url: str) -> None:
        """The owner chooses a remote."""
        store = self.layer.paths.store
        config.load(store)._replace(remote=url).save(store)

    @property
    def slug(self) -> str:
        return self.layer.paths.slug

    def remote(self, *, seconds: float = SECONDS) -> Remote:
        """As the worker has it: with the allow-listed environment."""
        store = self.layer.paths.store
        env = surroundings.for_children(os.environ)
        repo = Repository.of(store, env, time.monotonic() + seconds)
        url = config.load(store).remote
        assert url is not None
        return Remote.of(repo, remote_url.parse(url, "/"))

    def saved(self, count: int = 1) -> list[Record]:
        """So many more savepoints, committed."""
        for _ in range(count):
            number = len(self.layer.built.lines)
            self.layer.saved(b"%d\n" % number * number)
        return self.layer.built.records()[-count:]

    def push(self, *, seconds: float = SECONDS) -> bool:
        return push.push(self.remote(seconds=seconds), self.layer.paths, lambda _done, _all: None)

    def tracking(self) -> str | None:
        """What the store believes that the remote has."""
        return pushed.commit(self.remote().repo, self.slug)

    def head(self) -> TrustedHead:
        found = trusted.load(self.layer.paths)
        assert found is not None
        return found

    def check_pushed(self) -> None:
        """Remote, remote-tracking ref and trusted head are where the store's own ref is."""
        tip = self.layer.tip()
        assert self.bare.tip(self.slug) == tip
        assert self.tracking() == tip
        assert self.head().remote_tip == tip


def git(*args: str, stdin: bytes = b"", env: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        ["git", *args],
        input=stdin,
        capture_output=True,
        check=True,
        timeout=SECONDS,
        env={**os.environ, **(env or {})},
    )
    return done.stdout.decode().strip("\n")


def is_gone(pid: int) -> bool:
    """Has that process ended, or does it soon? One that init has not reaped has."""
    stat = Path(f"/proc/{pid}/stat")
    end = time.monotonic() + 120
    while time.monotonic() < end:
        try:
            if stat.read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False
