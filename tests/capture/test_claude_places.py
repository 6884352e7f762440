"""Where Claude Code keeps what belongs to a session, and what there is not taken for it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.capture.agents import claude, claude_places
from savepoint.capture.agents.claude_scan import Scan
from savepoint.core import limits

if TYPE_CHECKING:
    from collections.abc import Iterable

ID = "cde341db-b80a-44f5-b0f2-94db2ef7a164"
OTHER = "11111111-2222-3333-4444-555555555555"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "work" / "my_project.x"
    folder.mkdir(parents=True)
    return folder


def message(cwd: Path | str, session: str = ID) -> str:
    return json.dumps({"type": "user", "cwd": str(cwd), "sessionId": session, "message": {}})


def folder_of(config: Path, project: Path) -> Path:
    (found,) = claude_places.project_folders(str(config), str(project))
    Path(found).mkdir(parents=True, exist_ok=True)
    return Path(found)


def write(path: Path, *lines: str, mtime: int = 1000) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    os.utime(path, (mtime, mtime))
    return str(path)


# companions


def scan_with(backups: Iterable[str]) -> Scan:
    scan = Scan.empty()
    for name in backups:
        record = {"type": "file-history-delta", "backup": {"backupFileName": name}}
        scan.feed(json.dumps(record).encode() + b"\n")
    return scan


def test_everything_that_belongs_to_a_session(config: Path, project: Path) -> None:
    folder = folder_of(config, project)
    transcript = write(folder / f"{ID}.jsonl")
    mine = (
        "subagents/agent-a1.jsonl", "subagents/agent-a1.meta.json",
        "subagents/workflows/run/journal.jsonl", "tool-results/hook-1.txt", "later/x/y.bin",
    )  # fmt: skip
    for name in mine:
        write(folder / ID / name, "x")
    write(folder / "agent-ab48057.jsonl", message("/p"))
    write(folder / "agent-0123abcd.jsonl", message("/p", OTHER))
    write(folder / "agent-0123abce.jsonl", "not json")
    write(folder / "agent-nothex.jsonl", message("/p"))
    for name in ("1f@v1", "2f@v1", "unused@v1"):
        write(config / "file-history" / ID / name, "x")
    scan = scan_with(["1f@v1", "2f@v1", "gone@v1", "../../secret", ".."])
    found = claude.companions(transcript, str(config), ID, scan)
    labels = sorted((*mine, "agent-ab48057.jsonl", "file-history/1f@v1", "file-history/2f@v1"))
    assert [label for label, _ in found.files] == labels
    assert all(Path(path).is_file() for _, path in found.files)
    assert found.omitted == []


def test_links_and_other_things_are_left_out(config: Path, project: Path) -> None:
    folder = folder_of(config, project)
    transcript = write(folder / f"{ID}.jsonl")
    secret = write(config / "secret", "x")
    write(folder / ID / "a", "x")
    (folder / ID / "link").symlink_to(secret)
    (folder / ID / "folder").symlink_to(config)
    os.mkfifo(folder / ID / "fifo")
    (folder / "agent-ab48057.jsonl").symlink_to(write(config / "theirs", message("/p")))
    history = config / "file-history"
    history.mkdir()
    (history / ID).symlink_to(config)
    found = claude.companions(transcript, str(config), ID, scan_with(["secret"]))
    assert [label for label, _ in found.files] == ["a"]
    assert dict(found.omitted) == {
        "fifo": "not a regular file", "folder": "a link", "link": "a link",
    }  # fmt: skip


def test_a_companion_folder_that_is_a_link(config: Path, project: Path) -> None:
    folder = folder_of(config, project)
    transcript = write(folder / f"{ID}.jsonl")
    (folder / ID).symlink_to(config)
    assert claude.companions(transcript, str(config), ID, Scan.empty()) == ([], [])


def test_companions_are_bounded(
    config: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "COMPANION_FILES", 3)
    monkeypatch.setattr(limits, "COMPANION_DEPTH", 2)
    folder = folder_of(config, project)
    transcript = write(folder / f"{ID}.jsonl")
    write(folder / ID / "1/2/deep-enough", "x")
    write(folder / ID / "1/2/3/too-deep", "x")
    for n in range(5):
        write(folder / ID / f"f{n}", "x")
    found = claude.companions(transcript, str(config), ID, Scan.empty())
    assert [label for label, _ in found.files] == ["1/2/deep-enough", "f0", "f1"]
    assert found.omitted == [("1/2/3/", "too deep"), ("", "more than 3 files")]


def test_a_name_that_is_not_utf8_is_left_out(config: Path, project: Path) -> None:
    folder = folder_of(config, project)
    transcript = write(folder / f"{ID}.jsonl")
    (folder / ID).mkdir()
    path = os.fsencode(folder / ID) + b"/\xff"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
    except OSError:
        pytest.skip("needs a file system with names that are not UTF-8")
    found = claude.companions(transcript, str(config), ID, Scan.empty())
    assert found == ([], [("\ufffd", "its name is not UTF-8")])


def test_no_companions_of_what_is_not_there(config: Path, tmp_path: Path) -> None:
    for transcript, session in ((f"/none/{ID}.jsonl", ID), ("", ""), (str(tmp_path), "../..")):
        assert claude.companions(transcript, str(config), session, Scan.empty()) == ([], [])


# the transcript of a session id


def test_found_in_the_projects_folder_or_any_other(config: Path, project: Path) -> None:
    assert claude.transcript_path(str(config), str(project), ID) is None
    elsewhere = write(config / "projects/-other" / f"{ID}.jsonl", message("/other"))
    assert claude.transcript_path(str(config), str(project), ID) == elsewhere
    here = write(folder_of(config, project) / f"{ID}.jsonl", message(project))
    assert claude.transcript_path(str(config), str(project), ID) == here


def test_a_stub_does_not_hide_the_session(config: Path, project: Path) -> None:
    real = write(config / "projects/-other" / f"{ID}.jsonl", message("/other"))
    stub = json.dumps({"type": "relocated", "sessionId": ID, "relocatedCwd": "x" * 500})
    write(folder_of(config, project) / f"{ID}.jsonl", stub)
    assert claude.transcript_path(str(config), str(project), ID) == real


def test_never_another_session(config: Path, project: Path) -> None:
    folder = folder_of(config, project)
    write(folder / f"{OTHER}.jsonl", message(project, OTHER))
    (folder / f"{ID}.jsonl").mkdir()
    for session in (ID, "", "..", f"../{folder.name}/{OTHER}", "x" * 65, "a\0b"):
        assert claude.transcript_path(str(config), str(project), session) is None


# the newest session of a project


def test_newest_session(config: Path, project: Path) -> None:
    assert next(claude.newest_first(str(config), str(project)), None) is None
    folder = folder_of(config, project)
    write(folder / f"{OTHER}.jsonl", message(project), mtime=10)
    newest = write(folder / f"{ID}.jsonl", message(project), mtime=20)
    write(folder / "agent-ab48057.jsonl", message(project), mtime=30)
    write(folder / f"{OTHER[:-1]}6.jsonl", json.dumps({"type": "mode"}), mtime=40)
    (folder / f"{OTHER[:-1]}7.jsonl").symlink_to(folder / f"{OTHER}.jsonl")
    assert next(claude.newest_first(str(config), str(project)), None) == newest


def test_a_neighbour_with_the_same_folder_name_is_not_taken(config: Path, tmp_path: Path) -> None:
    mine, theirs = tmp_path / "a" / "b-c", tmp_path / "a-b" / "c"
    mine.mkdir(parents=True)
    theirs.mkdir(parents=True)
    folder = folder_of(config, mine)
    assert folder == folder_of(config, theirs)
    ours = write(folder / f"{ID}.jsonl", message(mine), mtime=10)
    write(folder / f"{OTHER}.jsonl", message(theirs), mtime=20)
    assert next(claude.newest_first(str(config), str(mine)), None) == ours


def test_a_session_forked_from_elsewhere_belongs_to_its_folder(config: Path, project: Path) -> None:
    forked = write(folder_of(config, project) / f"{ID}.jsonl", message("/somewhere/else"))
    assert next(claude.newest_first(str(config), str(project)), None) == forked


def test_long_paths_are_found_by_their_beginning(config: Path, tmp_path: Path) -> None:
    project = tmp_path / ("x" * 120) / ("y" * 120)
    sibling = tmp_path / ("x" * 120) / ("y" * 121)
    name = claude_places.folder_name(str(project))[:200]
    write(config / "projects" / f"{name}-abc12" / f"{OTHER}.jsonl", message(sibling), mtime=20)
    mine = write(config / "projects" / f"{name}-zzz99" / f"{ID}.jsonl", message(project), mtime=10)
    write(config / "projects" / name / f"{OTHER}.jsonl", message(project), mtime=30)
    assert next(claude.newest_first(str(config), str(project)), None) == mine
    assert claude.transcript_path(str(config), str(project), ID) == mine


def test_folder_names(tmp_path: Path) -> None:
    real = os.path.realpath(tmp_path)
    plain = real.translate(str.maketrans("/._", "---"))
    (tmp_path / "link").symlink_to(tmp_path / "a_b.c")
    assert claude_places.folder_name(str(tmp_path / "a_b.c")) == plain + "-a-b-c"
    assert claude_places.folder_name(str(tmp_path / "link")) == plain + "-a-b-c"
    assert claude_places.folder_name(str(tmp_path / "e\u0301")) == plain + "--"  # NFC: é
    assert claude_places.folder_name(str(tmp_path / "\U0001f600")) == plain + "---"  # UTF-16


def test_own_folders(config: Path) -> None:
    transcript = str(config / "projects/-p" / f"{ID}.jsonl")
    found = claude.own_folders(str(config), transcript)
    real = Path(os.path.realpath(config))
    assert found == (str(real / "plans"), str(real / "projects/-p/memory"))
    assert claude.own_folders(str(config), "") == (str(real / "plans"),)
