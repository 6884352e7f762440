"""Real git repositories for the tests, and what savepoint says of them."""

from __future__ import annotations

import hashlib
import os
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from savepoint.capture.exclusion import Exclusion
from savepoint.capture.git import repository
from savepoint.capture.request import Request

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from savepoint.capture.git.repository import Repository
    from savepoint.core.strict_json import Json


class Repo(NamedTuple):
    """A repository of the user."""

    path: Path

    @classmethod
    def make(cls, path: Path, *options: str) -> Repo:
        """An empty one."""
        path.mkdir(parents=True, exist_ok=True)
        repo = cls(path)
        repo.git("init", "-q", *options)
        return repo

    @classmethod
    def with_commit(cls, path: Path, *options: str) -> Repo:
        """One with the files `a`, `b` and `folder/c` committed, long ago by the index's clock."""
        repo = cls.make(path, *options)
        for name in ("a", "b", "folder/c"):
            repo.write(name, f"{name} as committed\n")
        repo.git("add", ".")
        repo.git("commit", "-qm", "first")
        repo.settle()
        return repo

    def git(self, *args: str) -> str:
        """Run git in it; its output without the last LF."""
        done = subprocess.run(
            ["git", *args], cwd=self.path, check=True, capture_output=True, text=True, timeout=180
        )
        return done.stdout.removesuffix("\n")

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file of the worktree."""
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    def settle(self, age: int = 100) -> None:
        """Make every tracked file older than the index: no entry is racily clean any more."""
        past = time.time() - age
        for name in self.git("ls-files", "-z").split("\0")[:-1]:
            os.utime(self.path / name, (past, past), follow_symlinks=False)
        self.git("update-index", "-q", "--refresh")


def environment() -> dict[str, str]:
    """What savepoint lets git see."""
    return {name: os.environ[name] for name in ("PATH", "HOME")}


def look(
    project: Path,
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
    seconds: float = 10,
) -> Repository:
    """What savepoint finds in the repository of `project`."""
    home = Path(os.environ["SAVEPOINT_HOME"])
    scratch = home / "scratch"
    scratch.mkdir(parents=True, exist_ok=True)
    wanted = request(project, cwd or project, env)
    with repository.begin(wanted, str(scratch)) as pending:
        exclusion = Exclusion(os.path.realpath(project), exclude, os.path.realpath(home))
        found = pending.collect(time.monotonic() + seconds, exclusion)
    assert list(scratch.iterdir()) == [], "what was made in the scratch folder is removed"
    return found


def request(project: Path, cwd: Path, env: Mapping[str, str] | None = None) -> Request:
    """A save of that project."""
    return Request(
        home=os.environ["SAVEPOINT_HOME"],
        project=str(project),
        cwd=str(cwd),
        config_dir="/nowhere",
        session_id="",
        transcript="",
        trigger="manual",
        now=0,
        deadline=0.0,
        environment=environment() if env is None else env,
    )


def contents(found: Repository) -> dict[tuple[str, Json], bytes]:
    """Kind and path → bytes of each change."""
    return {(one.kind, str(one.to_json()["path"])): one.data for one in found.changes}


def fingerprint(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Everything below a folder: mode, mtime and content (what a link leads to) of each name."""
    found = {}
    for root, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(root) / name
            seen = path.lstat()
            if path.is_symlink():
                data = os.fsencode(path.readlink())
            else:
                data = path.read_bytes() if path.is_file() else b""
            digest = hashlib.sha256(data).hexdigest()
            found[str(path)] = (seen.st_mode, seen.st_mtime_ns, digest)
    return found
