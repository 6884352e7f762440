"""The index read by hand says what git says of it, in every format."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.capture.git import gitindex
from savepoint.core.errors import MalformedError
from tests.capture.gitrepo import Repo

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ["a", "b" * 250, "folder/c", "folder/cd", "ü/\n", "x" * 7, "x" * 8, "x" * 9, "z" + "y" * 62]


def shared_of(repo: Repo) -> dict[str, bytes]:
    files = (repo.path / ".git").glob("sharedindex.*")
    return {file.name.removeprefix("sharedindex."): file.read_bytes() for file in files}


def nothing(_id: str) -> None:
    """No shared index."""


def entries(repo: Repo, since: int = 0, id_bytes: int = 20) -> list[gitindex.Entry]:
    data = (repo.path / ".git/index").read_bytes()
    return gitindex.read(data, id_bytes, since, shared_of(repo).get).suspects


def told_by_git(repo: Repo) -> list[tuple[str, str, str, tuple[int, ...]]]:
    """Name, mode, id, and the stat of each entry."""
    staged = [line for line in repo.git("ls-files", "-s", "-z").split("\0") if line]
    debug = repo.git("ls-files", "--debug", "-z")
    number = r"(\d+)"
    stat = re.compile(
        rf"  ctime: {number}:{number}\n  mtime: {number}:{number}\n"
        rf"  dev: \d+\tino: {number}\n  uid: \d+\tgid: \d+\n  size: {number}\t"
    )
    stats = [tuple(map(int, found)) for found in stat.findall(debug)]
    told = []
    for line, seen in zip(staged, stats, strict=True):
        facts, name = line.split("\t", 1)
        mode, oid, _stage = facts.split(" ")
        told.append((name, mode, oid, seen))
    return told


def as_told(found: list[gitindex.Entry]) -> list[tuple[str, str, str, tuple[int, ...]]]:
    return [(os.fsdecode(e.path), f"{e.mode:06o}", e.oid, e.stat) for e in found]


def fill(repo: Repo) -> None:
    for name in NAMES:
        repo.write(name, name[:3])
    (repo.path / "link").symlink_to("a")
    (repo.path / "a").chmod(0o755)
    repo.git("add", ".")


@pytest.mark.parametrize("version", ["2", "3", "4"])
@pytest.mark.parametrize("id_format", ["sha1", "sha256"])
def test_every_version_and_id_format(tmp_path: Path, version: str, id_format: str) -> None:
    repo = Repo.make(tmp_path / "p", f"--object-format={id_format}")
    fill(repo)
    repo.write("intended", "x")
    repo.git("add", "-N", "intended")  # an extended flag: git then writes version 3 for 2
    repo.git("update-index", "--index-version", version)
    id_bytes = 20 if id_format == "sha1" else 32
    assert as_told(entries(repo, id_bytes=id_bytes)) == told_by_git(repo)
    assert len(told_by_git(repo)) == len(NAMES) + 2


def test_name_longer_than_its_length_field(tmp_path: Path) -> None:
    repo = Repo.make(tmp_path / "p")
    oid = repo.git("hash-object", "-w", "--stdin")
    name = "/".join(["n" * 200] * 25)
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{oid},{name}")
    repo.git("update-index", "--add", "--cacheinfo", f"100644,{oid},z")
    assert [os.fsdecode(entry.path) for entry in entries(repo)] == [name, "z"]


@pytest.mark.parametrize("young", [False, True])
def test_split_index(tmp_path: Path, young: bool) -> None:
    """Of young files every entry is replaced (runs of bits), of settled ones those that changed."""
    repo = Repo.make(tmp_path / "p")
    repo.git("config", "splitIndex.maxPercentChange", "100")
    for number in range(200):
        repo.write(f"f{number:03}", f"{number}")
    repo.git("add", ".")
    if not young:
        repo.settle()
    repo.git("update-index", "--split-index")
    for number in (3, 64, 65, 127, 199):
        repo.write(f"f{number:03}", "changed")
    for number in (0, 66, 128):
        (repo.path / f"f{number:03}").unlink()
    repo.write("f0000", "added between")
    repo.write("zz", "added at the end")
    repo.git("add", ".")
    assert len(shared_of(repo)) == 1
    assert young or len((repo.path / ".git/index").read_bytes()) < 2000
    assert sorted(as_told(entries(repo))) == told_by_git(repo)


def test_split_index_right_after_the_split(tmp_path: Path) -> None:
    repo = Repo.make(tmp_path / "p")
    fill(repo)
    repo.git("update-index", "--split-index")
    assert sorted(as_told(entries(repo))) == sorted(told_by_git(repo))


def test_split_index_without_its_shared_part(tmp_path: Path) -> None:
    repo = Repo.make(tmp_path / "p")
    fill(repo)
    repo.git("update-index", "--split-index")
    data = (repo.path / ".git/index").read_bytes()
    with pytest.raises(MalformedError, match="shared index"):
        gitindex.read(data, 20, 0, nothing)


def test_only_suspects_are_given(tmp_path: Path) -> None:
    repo = Repo.make(tmp_path / "p")
    for name in ("old", "young", "assumed", "skipped"):
        repo.write(name, name)
    os.utime(repo.path / "young", (2_000_000_000, 2_000_000_000))
    repo.git("add", ".")
    repo.git("update-index", "--assume-unchanged", "assumed")
    repo.git("update-index", "--skip-worktree", "skipped")
    head = "1" * 40
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{head},module")
    found = {entry.path: entry for entry in entries(repo, since=1_999_999_999)}
    assert set(found) == {b"young", b"assumed", b"skipped", b"module"}
    assert found[b"assumed"].hidden
    assert found[b"skipped"].hidden
    assert not found[b"young"].hidden
    assert found[b"young"].written == (2_000_000_000, 0)


@pytest.mark.parametrize("version", ["2", "4"])
def test_which_paths_are_tracked(tmp_path: Path, version: str) -> None:
    """Only whole names of files that git itself would count: it asks .gitignore of the others."""
    repo = Repo.make(tmp_path / "repo")
    fill(repo)
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},module")
    repo.git("update-index", "--skip-worktree", "a")
    repo.git("update-index", "--index-version", version)
    data = (repo.path / ".git/index").read_bytes()
    asked = {b"a", b"folder/c", b"folder/cd", b"c", b"folder", b"folder/", b"module", b"x" * 7}
    found = gitindex.read(data, 20, 2**32, nothing, asked)
    assert found.tracked == {b"folder/c", b"folder/cd", b"x" * 7}
    assert gitindex.read(data, 20, 2**32, nothing).tracked == set()
    repo.git("update-index", "--split-index")
    repo.write("later", "later")
    repo.git("add", "later")
    data = (repo.path / ".git/index").read_bytes()
    assert gitindex.read(data, 20, 2**32, shared_of(repo).get, asked | {b"later"}).tracked == set()


@pytest.mark.parametrize("data", [b"", b"DIRC", b"DIRC\0\0\0\x05\0\0\0\0", b"x" * 100])
def test_garbage(data: bytes) -> None:
    with pytest.raises(MalformedError):
        gitindex.read(data, 20, 0, nothing)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[bytes, dict[str, bytes]]]:
    made: list[tuple[bytes, dict[str, bytes]]] = []
    for number, options in enumerate((["--index-version", "2"], ["--index-version", "4"])):
        repo = Repo.make(tmp_path_factory.mktemp(f"sample{number}"))
        fill(repo)
        repo.git("update-index", *options)
        made.append(((repo.path / ".git/index").read_bytes(), {}))
        repo.git("update-index", "--split-index")
        repo.write("a", "other")
        repo.git("add", "a")
        made.append(((repo.path / ".git/index").read_bytes(), shared_of(repo)))
    return made


@given(data=st.data())
def test_damage_is_an_error_or_entries_never_anything_else(
    samples: list[tuple[bytes, dict[str, bytes]]], data: st.DataObject
) -> None:
    index, shared = data.draw(st.sampled_from(samples))
    at = data.draw(st.integers(0, len(index) - 1))
    damaged = bytearray(index)
    damaged[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(index)))
    for broken in (bytes(damaged), index[:cut]):
        try:
            gitindex.read(broken, 20, 0, shared.get)
        except MalformedError:
            continue


def test_bitmap_that_claims_more_than_there_is() -> None:
    """A marker word of eight bytes can claim 2**38 set bits: as much memory as one wants."""
    entry = b"\0" * 40 + b"\x11" * 20 + b"\0\x01" + b"a" + b"\0" * 9
    base = b"DIRC\0\0\0\x02\0\0\0\x01" + entry
    everything = (1 | (0xFFFFFFFF << 1)).to_bytes(8, "big")
    bitmap = b"\xff\xff\xff\xff" + b"\0\0\0\x01" + everything + b"\0" * 4
    nothing = b"\0" * 12
    link = b"\x22" * 20 + bitmap + nothing
    front = b"DIRC\0\0\0\x02\0\0\0\0" + b"link" + len(link).to_bytes(4, "big") + link + b"\0" * 20
    assert gitindex.read(front, 20, 0, {"22" * 20: base}.get).suspects == []


def test_names_that_expand_without_end() -> None:
    """Version 4 names share their start: a small file can ask for any amount of memory."""
    first = b"\0" * 40 + b"\x11" * 20 + b"\0\0" + b"\0" + b"n" * 1_000_000 + b"\0"
    more = (b"\0" * 40 + b"\x11" * 20 + b"\0\0" + b"\0" + b"m\0") * 1000
    data = b"DIRC\0\0\0\x04" + (1001).to_bytes(4, "big") + first + more
    with pytest.raises(MalformedError, match="too long"):
        gitindex.read(data, 20, 2**33, nothing)
