"""Drivers: a row is re-pointed, everything else keeps its bytes, and only a read-back counts."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.cli.handoff import place as handoff_place
from savepoint.core import limits
from savepoint.core.errors import HandoffError, SavepointError
from succession.handoff import drivers
from succession.handoff.ledger import Binding
from succession.handoff.owner import Pair
from tests.handoff.threads import Nobody

if TYPE_CHECKING:
    from collections.abc import Mapping

    from succession.handoff.drivers import Driver

ROWS = b"# name\tthread\r\nbot\told one\r\nbotany\told two\nlast\tx"
CRON = b"# m h\n*/5 * * * * run --session old # poll\n@daily  tidy up\t# tidy\n5 4 * * * other\n"


@pytest.fixture
def known(tmp_path: Path) -> Mapping[str, Driver]:
    return drivers.all_of(str(tmp_path), Nobody(), Nobody())


@pytest.mark.parametrize(
    ("driver", "before", "key", "old", "after"),
    [
        ("registry", ROWS, "bot", "old one", ROWS.replace(b"old one", b"NEW \xc3\xa4")),
        ("registry", ROWS, "last", "x", ROWS[:-1] + b"NEW \xc3\xa4"),
        ("registry", b"\xff\nk\tv\n", "k", "v", b"\xff\nk\tNEW \xc3\xa4\n"),
        (
            "schedule",
            CRON,
            "poll",
            "run --session old",
            CRON.replace(b"run --session old", b"NEW \xc3\xa4"),
        ),
        ("schedule", CRON, "tidy", "tidy up", CRON.replace(b"tidy up", b"NEW \xc3\xa4")),
    ],
)
def test_row(  # the columns of the table
    tmp_path: Path,
    known: Mapping[str, Driver],
    driver: str,
    before: bytes,
    key: str,
    old: str,
    after: bytes,
) -> None:
    file = tmp_path / "rows"
    file.write_bytes(before)
    file.chmod(0o640)
    assert known[driver].read("rows", key) == old
    binding = Binding(driver, "rows", key, "", "")
    assert drivers.move(known, binding, [old], "NEW ä") == ("NEW ä", "")
    assert file.read_bytes() == after
    assert file.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("driver", "content", "key", "reason"),
    [
        ("registry", b"bot\tx\n", "bo", "says nothing"),
        ("registry", b"bot\tx\nbot\ty\n", "bot", "2 rows"),
        ("registry", b"b.t\tx\n", "bot", "says nothing"),
        ("schedule", b"* * * * run # k\n", "k", "says nothing"),
        ("schedule", b"# * * * * * run # k\n", "k", "says nothing"),
        ("registry", None, "bot", "is not there"),
    ],
)
def test_row_that_cannot_be_set(  # the columns of the table
    tmp_path: Path,
    known: Mapping[str, Driver],
    driver: str,
    content: bytes | None,
    key: str,
    reason: str,
) -> None:
    if content is not None:
        (tmp_path / "rows").write_bytes(content)
    found, why = drivers.move(known, Binding(driver, "rows", key, "", ""), ["x"], "new")
    assert found is None
    assert reason in why
    assert content is None or (tmp_path / "rows").read_bytes() == content


def test_a_link_is_followed_and_stays(tmp_path: Path, known: Mapping[str, Driver]) -> None:
    (tmp_path / "real").write_bytes(b"bot\tx\n")
    (tmp_path / "rows").symlink_to("real")
    row = Binding("registry", "rows", "bot", "", "")
    assert drivers.move(known, row, ["x"], "y") == ("y", "")
    assert (tmp_path / "rows").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"bot\ty\n"


def test_a_fifo_is_no_file(tmp_path: Path, known: Mapping[str, Driver]) -> None:
    os.mkfifo(tmp_path / "rows")
    found, why = drivers.move(known, Binding("registry", "rows", "bot", "", ""), ["x"], "y")
    assert (found, "regular file" in why) == (None, True)


class Liar:
    """Sets nothing, and says something else from then on."""

    says = "old"

    def read(self, place: str, key: str) -> str | None:  # noqa: ARG002  # as a driver's
        return self.says

    def write(self, place: str, key: str, value: str) -> None:  # noqa: ARG002  # as a driver's
        self.says = "something else"


def test_a_read_back_that_lies_did_not_move() -> None:
    pair = Binding("command", "x", "k", "", "")
    found, why = drivers.move({"command": Liar()}, pair, ["old"], "new")
    assert found is None
    assert why == "the read-back says 'something else', not 'new'"


def script(tmp_path: Path, name: str, body: str) -> tuple[str, ...]:
    path = tmp_path / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return (str(path),)


@pytest.fixture
def pairs(tmp_path: Path) -> dict[str, Pair]:
    store = tmp_path / "value"
    store.write_text("old one", encoding="utf-8")
    good = (
        script(tmp_path, "set", f'printf %s "$2" > {store}'),
        script(tmp_path, "read", f"cat {store}"),
    )
    return {
        "good": Pair(*good),
        "lies": Pair(good[0], script(tmp_path, "lies", "echo other")),
        "fails": Pair(script(tmp_path, "fails", "exit 3"), good[1]),
        "hangs": Pair(
            good[0], script(tmp_path, "hangs", f"sleep 600 & echo $! > {tmp_path}/pid; wait")
        ),
        "leaks": Pair(good[0], script(tmp_path, "leaks", "sleep 600 & echo hello")),
        "talks": Pair(good[0], script(tmp_path, "talks", "yes")),
        "absent": Pair((str(tmp_path / "nowhere"),), good[1]),
        "secret": Pair(good[0], script(tmp_path, "secret", 'echo "[$TOKEN]"')),
    }


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("good", ""),
        ("lies", "it was changed meanwhile: it says 'other', not 'old one'"),
        ("fails", "it may have moved, or not: fails failed with exit code 3"),
        ("hangs", "no answer within"),
        ("leaks", "no answer within"),  # a child of it holds its output open
        ("talks", "no answer within"),
        ("absent", "cannot be run"),
        ("unknown", "no pair of commands unknown"),
        ("secret", "it says '[]'"),
    ],
)
def test_command(
    tmp_path: Path,
    pairs: dict[str, Pair],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    reason: str,
) -> None:
    monkeypatch.setattr(limits, "HANDOFF_COMMAND_SECONDS", 1.0 if "no answer" in reason else 20.0)
    monkeypatch.setenv("TOKEN", "s3cret")
    known: dict[str, Driver] = {"command": handoff_place._Command(pairs)}
    pair = Binding("command", name, "key", "", "")
    found, why = drivers.move(known, pair, ["old one"], "new one")
    assert (found == "new one") == (not reason)
    assert reason in why
    pid = tmp_path / "pid"
    end = time.monotonic() + 120
    while pid.exists() and _lives(int(pid.read_text(encoding="ascii"))):  # of its group
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_command_that_fails_is_named_with_what_it_was_given(pairs: dict[str, Pair]) -> None:
    driver = handoff_place._Command(pairs)
    with pytest.raises(HandoffError) as told:
        driver.write("fails", "a key", "v")
    assert told.value.hint.endswith(f"{pairs['fails'].set[0]} 'a key' v")


def _lives(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_upstream(tmp_path: Path) -> None:
    from tests.handoff.test_gather import _git

    project = tmp_path / "p"
    project.mkdir()
    _git(project, "init", "-q")
    _git(project, "commit", "-q", "--allow-empty", "-m", "1")
    for name in ("v1", "v2"):
        _git(project, "update-ref", f"refs/remotes/origin/{name}", "HEAD")
    _git(project, "remote", "add", "origin", str(tmp_path / "nowhere"))
    _git(project, "branch", "-q", "--set-upstream-to=origin/v1", "main")
    driver = handoff_place._Upstream(str(project))
    assert driver.read("main", "") == "origin/v1"
    known: dict[str, Driver] = {"upstream": driver}
    binding = Binding("upstream", "main", "", "", "")
    assert drivers.move(known, binding, ["origin/v1"], "origin/v2") == ("origin/v2", "")
    found, why = drivers.move(known, binding, ["origin/v2"], "origin/v3")
    assert (found, "origin/v3" in why) == (None, True)
    assert driver.read("main", "") == "origin/v2"
    for place in ("absent", "m*", "mai", "mai?", "[m]ain"):
        assert driver.read(place, "") is None
    _git(project, "branch", "-q", "-m", "main", "main/x")
    assert driver.read("main", "") is None
    _git(project, "branch", "-q", "-m", "main/x", "main")
    with pytest.raises(SavepointError):
        driver.write("--help", "", "origin/v1")


def test_a_binding_is_written_down_as_it_is(tmp_path: Path, known: Mapping[str, Driver]) -> None:
    from tests.handoff.threads import Threads

    threads = Threads(tmp_path)
    thread = threads.ledger_thread()
    (tmp_path / "rows").write_bytes(b"bot\t" + (thread.session or "").encode() + b"\n")
    drivers.refuse_unlike(known, Binding("registry", "rows", "bot", "{session}", ""), thread)
    for value in ("{title}", "x", "{session}\n"):
        with pytest.raises(HandoffError):
            drivers.refuse_unlike(known, Binding("registry", "rows", "bot", value, ""), thread)
