"""A store with savepoints and its repository, looked at with the real git and without our code."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyrage  # type: ignore[import-untyped]  # it ships no types

from savepoint.core import snapshot
from savepoint.gitlayer.commits import commit as gitlayer
from savepoint.gitlayer.commits.plan import New
from savepoint.gitlayer.repository import Repository
from savepoint.store.keys import agekeys
from savepoint.store.locks import Lock
from tests.verify import builder

if TYPE_CHECKING:
    from collections.abc import Mapping

    from savepoint.core.record import Record
    from savepoint.gitlayer.commits.commit import Committed
    from savepoint.store.layout import InstancePaths
    from tests.verify.builder import Built

SECONDS = 30


class Layer(NamedTuple):
    """A store, and what the maker of its next savepoint knows."""

    built: Built
    blobs: dict[str, str]

    @classmethod
    def new(cls, folder: Path) -> Layer:
        return cls(builder.new(folder / "home", folder / "project"), {})

    @property
    def paths(self) -> InstancePaths:
        return self.built.paths

    @property
    def git_dir(self) -> Path:
        return Path(self.paths.store.repository)

    @property
    def ref(self) -> str:
        return f"refs/heads/savepoints/{self.paths.slug}"

    @property
    def ref_file(self) -> Path:
        return self.git_dir / self.ref

    def save(self, transcript: bytes, **more: object) -> New:
        """A savepoint that is not committed yet."""
        before = {path.stem for path in self.built.packs()}
        one = builder.save(self.built, transcript, **more)  # type: ignore[arg-type]
        written = {path.stem for path in self.built.packs()} - before
        found = snapshot.parse(self.built.snapshot(one).read_bytes())
        return New(one, found, frozenset(written), dict(self.blobs))

    def commit(
        self, newest: New | None = None, *, seconds: float = SECONDS, env: Mapping[str, str] = {}
    ) -> Committed | None:
        """As a save does it; `env` is put over the environment."""
        with Lock(self.paths.store.lock, time.monotonic() + SECONDS):
            done = gitlayer.commit(
                self.paths, {**os.environ, **env}, time.monotonic() + seconds, newest
            )
        self.blobs.update(done.blobs if done else {})
        return done

    def saved(self, transcript: bytes, **more: object) -> Committed:
        """A savepoint and its commit."""
        done = self.commit(self.save(transcript, **more))
        assert done is not None
        assert (done.left, done.skipped, done.warnings) == (0, (), ())
        return done

    def forget(self) -> None:
        """The cache beside the ref is lost."""
        (self.git_dir / "savepoint" / self.paths.slug).unlink()

    # what git says

    def git(self, *args: str) -> bytes:
        command = ["git", f"--git-dir={self.git_dir}", *args]
        return subprocess.run(command, check=True, capture_output=True, timeout=SECONDS).stdout

    def lines(self, *args: str) -> list[str]:
        return self.git(*args).decode().splitlines()

    def tip(self) -> str:
        return self.git("rev-parse", self.ref).decode().strip()

    def history(self) -> list[str]:
        """Commits, oldest first."""
        return self.lines("rev-list", "--reverse", self.ref)

    def holds_newest(self) -> bool:
        """Is the tip the commit of the newest record?"""
        newest = self.built.records()[-1]
        return f"Savepoint-Record: {newest.hash}" in self.lines(
            "log", "-1", "--format=%B", self.ref
        )

    def tree(self, commit: str) -> dict[str, str]:
        """Path → blob."""
        entries = self.git("ls-tree", "-r", "-z", commit).decode().split("\0")[:-1]
        return {path: kind.split(" ")[2] for kind, _, path in (e.partition("\t") for e in entries)}

    def blob(self, blob: str) -> bytes:
        return self.git("cat-file", "blob", blob)

    def opened(self, blob: str) -> bytes:
        """A blob without its encryption."""
        opened: bytes = pyrage.decrypt(self.blob(blob), agekeys.identities(self.paths.store))
        return opened

    def index_in(self, commit: str) -> bytes:
        """The index that a commit holds, put together by the names of its chunks."""
        tree = self.tree(commit)
        closed = [path for path in tree if path.startswith("logs/precompact-savepoint/")]
        closed.sort(key=lambda path: int(Path(path).stem))
        return b"".join(self.blob(tree[p]) for p in [*closed, "logs/precompact-savepoint.jsonl"])

    def fsck(self) -> str:
        """What git finds wrong, or nothing."""
        command = [
            "git",
            f"--git-dir={self.git_dir}",
            "fsck",
            "--full",
            "--strict",
            "--no-dangling",
        ]
        done = subprocess.run(command, check=False, capture_output=True, timeout=SECONDS)
        said = (done.stdout + done.stderr).decode().replace(_UNBORN, "")
        return said if done.returncode == 0 else f"{done.returncode}: {said}"

    def check_whole(self, commit: str, one: Record) -> None:
        """Is `commit` the savepoint of this record, and all of it?"""
        tree = self.tree(commit)
        found = snapshot.parse(self.built.snapshot(one).read_bytes())
        name = f"{one.snapshot_file}.zst.age"
        packs = {
            path: self.opened(blob)
            for path, blob in tree.items()
            if "/" in path and path[:7] == "objects"
        }
        needed = {s.pack for f in snapshot.files(found.document, self._read) for s in f.segments}
        needed |= {s.pack for listed in snapshot.spilled_lists(found.document) for s in listed}
        assert set(packs) == {f"objects/{one[:2]}/{one}.pack.age" for one in needed}
        for path, data in packs.items():
            pack = Path(path).name.removesuffix(".pack.age")
            assert data == Path(self.paths.store.pack(pack)).read_bytes()
        unzipped = subprocess.run(
            ["zstd", "-dq"], input=self.opened(tree[name]), check=True, capture_output=True
        ).stdout
        assert unzipped == found.data
        index = self.built.index_file.read_bytes()
        assert self.index_in(commit) == index[: index.index(one.line) + len(one.line) + 1]

    def forge(
        self,
        changes: Mapping[str, str | None],
        *,
        message: str | None = None,
        parent: str | None = None,
        mode: str = "100644",
    ) -> str:
        """Let the ref name a commit like its tip, but with other blobs at some paths (None: with
        nothing there), after another parent ("": after none), or with another message.
        """
        tip = self.tip()
        env = {**os.environ, "GIT_INDEX_FILE": str(self.git_dir / "forged-index")}

        def run(*args: str, data: bytes = b"") -> str:
            command = ["git", f"--git-dir={self.git_dir}", "-c", "user.name=e", *args]
            done = subprocess.run(command, env=env, input=data, check=True, capture_output=True)
            return done.stdout.decode().strip()

        run("read-tree", tip)
        for path, blob in changes.items():
            if blob is None:
                run("update-index", "--index-info", data=f"0 {'0' * 40}\t{path}\n".encode())
            else:
                run("update-index", "--add", "--cacheinfo", f"{mode},{blob},{path}")
        made = run("cat-file", "commit", tip) if message is None else ""
        text = (message or made.partition("\n\n")[2]).encode()
        before = self.lines("rev-parse", f"{tip}^@") if parent is None else parent.split()
        parents = [part for one in before for part in ("-p", one)]
        config = ("-c", "user.email=e@e")
        commit = run(*config, "commit-tree", run("write-tree"), *parents, data=text)
        run("update-ref", self.ref, commit)
        (self.git_dir / "forged-index").unlink()
        return commit

    def store_blob(self, data: bytes) -> str:
        """The id of a new blob."""
        command = ["git", f"--git-dir={self.git_dir}", "hash-object", "-w", "--stdin"]
        done = subprocess.run(command, input=data, check=True, capture_output=True)
        return done.stdout.decode().strip()

    def seal(self, data: bytes) -> str:
        """The id of a new blob that is encrypted to the store."""
        return self.store_blob(pyrage.encrypt(data, agekeys.recipients(self.paths.store)))

    def _read(self, segment: object) -> bytes:
        from savepoint.core.segments import Segment
        from savepoint.store.packs import read_segment

        assert isinstance(segment, Segment)
        return read_segment(self.paths.store, segment)


_UNBORN = "notice: HEAD points to an unborn branch (none)\n"


def shim(folder: Path, script: str) -> dict[str, str]:
    """An environment whose git is this shell script; `$REAL` is the real one."""
    folder.mkdir()
    real = subprocess.run(["which", "git"], check=True, capture_output=True, text=True).stdout
    program = folder / "git"
    program.write_text(f"#!/bin/sh\nREAL={real}\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


def repo_of(layer: Layer, **env: str) -> Repository:
    store = layer.paths.store
    return Repository.of(store, {**os.environ, **env}, time.monotonic() + SECONDS)
