"""`savepoint succession …` as a person and as an agent types it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.store import config, registry
from tests.cli.scene import Ran, Scene, program

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def cli(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Scene:
    """A project with a commit, a store, and a session."""
    project = tmp_path / "project"
    project.mkdir()
    for command in (("init", "-q", "-b", "main"), ("commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *command], cwd=project, check=True, timeout=180)
    scene = Scene(project, capsysbinary)
    scene.good("init", "--instance", "Gabriel #215")
    scene.say("hello", "world")
    return scene


@pytest.fixture
def says(cli: Scene) -> Callable[..., Ran]:
    """`savepoint succession`, which must succeed."""

    def run(*arguments: str) -> Ran:
        return cli.good("succession", *arguments)

    return run


def _decide(says: Callable[..., Ran], title: str = "Chose tabs", why: str = "of width") -> str:
    made = says("record", "decision", "--title", title, "--why", why, "--what", "in a.py", "--json")
    return str(made.json["id"])


def test_record_and_show(says: Callable[..., Ran]) -> None:
    one = _decide(says, why="of\nwidth")
    says("record", "observation", "--title", "Seen", "--what", "it works")
    text = says("day").text
    assert "### [ref:0] [decision] Chose tabs\nWhy: of\n     width\nWhat: in a.py\n" in text
    entries = says("day", "--json").json["entries"]
    assert [(entry["type"], entry["where"]) for entry in entries] == [
        ("decision", "day"),
        ("observation", "day"),
    ]
    assert entries[0]["id"] == one
    assert "- Chose tabs — Why: of\n     width" in says("briefing").text


def test_record_from_stdin(cli: Scene) -> None:
    text = b"Why: first\nsecond\n\n### [ref:9] [decision] no\nWhat: done\nfully\n"
    ran = program(
        *("succession", "record", "decision", "--title", "Piped"), cwd=cli.project, stdin=text
    )
    assert ran.returncode == 0, ran.stderr
    (one,) = cli.good("succession", "day", "--json").json["entries"]
    assert one["why"] == "first\n     second\n     \n     ### [ref:9] [decision] no"
    assert one["text"] == "done\nfully"
    ran = program(
        *("succession", "record", "observation", "--title", "Seen"),
        cwd=cli.project,
        stdin=b"all\nof it\n",
    )
    assert ran.returncode == 0, ran.stderr
    assert cli.good("succession", "day", "--json").json["entries"][1]["text"] == "all\nof it"


@pytest.mark.parametrize(
    "arguments",
    [
        ("record", "decision", "--title", "no reason", "--what", "x"),
        ("record", "decision", "--title", "a — Why: b", "--why", "c"),
        ("record", "decision", "--title", "two\nlines", "--why", "c"),
        ("record", "decision", "--title", "[decree] x", "--why", "c"),
        ("record", "decision", "--title", "x" * 201, "--why", "c"),
        ("record", "observation", "--title", "x", "--why", "lost"),
        ("record", "opinion", "--title", "x"),
        ("decree", "nothing"),
        ("vault", "promote", "nothing"),
        ("deviants", "resolve", "1", "--as", "fixed"),
        ("deviants", "resolve", "1", "--as", "forgotten"),
        ("decline",),
        ("import", "."),
    ],
)
def test_wrong_use(cli: Scene, arguments: tuple[str, ...]) -> None:
    ran = cli("succession", *arguments)
    assert ran.code in {1, 2}
    assert ran.err.startswith("savepoint: error: ")
    assert "internal" not in ran.err
    assert "Value error" not in ran.err


def test_a_text_too_long_for_an_entry_is_refused(cli: Scene) -> None:
    told = ("succession", "record", "decision", "--title", "Long")
    text = b"Why: " + b"x" * limits.DYNASTY_ENTRY_BYTES
    ran = program(*told, cwd=cli.project, stdin=text)
    assert ran.returncode == 2
    assert b"stdin has more" in ran.stderr
    assert cli.good("succession", "day", "--json").json["entries"] == []


def test_what_recurs_is_recorded_under_the_title_that_is_told(says: Callable[..., Ran]) -> None:
    for text in ("once", "again"):
        ran = says("record", "observation", "--title", "Seen", "--what", text)
    assert "Seen (2)" in ran.text
    entries = says("day", "--json").json["entries"]
    assert [(one["title"], one["text"]) for one in entries] == [
        ("Seen", "once"),
        ("Seen (2)", "again"),
    ]


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("vault", "the vault"),
        ("deviants", "the list of deviants"),
        ("lineage", "the lineage"),
        ("dusk", "Dusk"),
        ("briefing", "the briefing"),
    ],
)
def test_what_is_empty_says_so(says: Callable[..., Ran], command: str, name: str) -> None:
    ran = says(command)
    assert (ran.text, f"{name} is empty" in ran.err) == ("", True)


def test_the_same_entry_twice_is_refused(cli: Scene, says: Callable[..., Ran]) -> None:
    _decide(says)
    ran = cli("succession", "record", "decision", "--title", "Chose tabs", "--why", "of width")
    assert ran.code == 2
    assert "Day has an entry of that title" in ran.err
    says("record", "observation", "--title", "Seen", "--what", "x")
    says("run")
    ran = cli("succession", "record", "observation", "--title", "Seen", "--what", "x")
    assert ran.code == 2
    assert "the lineage has an entry of that title and text" in ran.err


def test_run_is_covered_by_a_savepoint(cli: Scene, says: Callable[..., Ran]) -> None:
    _decide(says)
    ran = says("run", "--json")
    told = ran.json
    assert (told["ruler"], told["reason"], told["dry_run"]) == ("Claude 2", "manual trigger", False)
    assert told["savepoint"] == 2
    assert [(one["title"], one["to"]) for one in told["moves"]] == [("Chose tabs", "Layer 1")]
    assert "SUCCESSION OF CLAUDE 2" in told["report"]
    held = cli.good("verify", "--all", "--offline", "--json")
    assert held.json["verdict"] in {"VERIFIED", "PENDING"}
    assert cli.good("fsck").code == 0


def test_a_worker_is_started_for_what_covers_a_succession(
    cli: Scene, says: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stayed QUEUED_FOR_PUSH until the next `create`."""
    store = cli.paths.store
    chosen = config.load(store)._replace(remote=str(tmp_path / "remote.git"), push_wait=0)
    chosen.save(store)
    started: list[str] = []
    monkeypatch.setattr("savepoint.work.start.start", lambda one, _: started.append(one.id))
    _decide(says)
    assert started == []
    says("run")
    assert started == [store.id]


def test_a_run_shows_what_it_moved(says: Callable[..., Ran]) -> None:
    """The banner alone was shown; where each entry went only with --dry-run."""
    assert "No entry moves" in says("run").text, "by hand it always proceeds"
    _decide(says)
    ran = says("run")
    assert "Day → Layer 1: Chose tabs (score 0)" in ran.text
    assert "DRY RUN" not in ran.text
    assert says("status", "--json").json["ruler"] == "Claude 3"


def test_an_import_of_nothing_names_what_can_be_imported(cli: Scene) -> None:
    """The hint led to -C, which names the project."""
    ran = cli("succession", "import", "nodir")
    assert ran.code == 2
    assert "nodir is no folder" in ran.err
    assert "-C" not in ran.err


def test_dry_run_shows_every_move_and_changes_nothing(says: Callable[..., Ran]) -> None:
    _decide(says)
    says("record", "observation", "--title", "Seen", "--what", "x")
    before = says("day").out, says("status", "--json").out
    ran = says("run", "--dry-run")
    assert ran.text.startswith("DRY RUN: nothing is changed\n")
    assert "Day → Layer 1: Chose tabs (score 0)" in ran.text
    assert "Day → lineage: Seen (an observation without a reference)" in ran.text
    assert (says("day").out, says("status", "--json").out) == before


def test_run_from_a_savepoint(cli: Scene, says: Callable[..., Ran]) -> None:
    _decide(says)
    made = cli.created()
    ran = cli("succession", "run", "--from", str(made["seq"]))
    assert ran.code in {0, 21}, ran.err
    if ran.code:
        ran = cli.good("succession", "run", "--from", "latest", "--allow-unverified")
    assert f"savepoint {made['seq']} is " in ran.err
    assert cli("succession", "run", "--from", "99").code == 1


def test_run_from_a_damaged_savepoint_is_refused(cli: Scene, says: Callable[..., Ran]) -> None:
    _decide(says)
    made = cli.created()
    snapshot = Path(cli.paths.path, str(made["snapshot_file"]))
    snapshot.write_bytes(snapshot.read_bytes().replace(b"Gabriel", b"Gabriol"))
    ran = cli("succession", "run", "--from", str(made["seq"]), "--allow-unverified")
    assert ran.code == 20, ran.err
    assert says("status", "--json").json["ruler"] == "Claude 1"


def test_status(says: Callable[..., Ran]) -> None:
    empty = says("status", "--json").json
    assert (empty["ruler"], empty["branch"], empty["exists"]) == ("Claude 1", "main", False)
    _decide(says)
    says("run")
    told = says("status", "--json").json
    assert told["dusk"][0] == {"entries": 1, "decrees": 0, "lines": 3, "limit": 100}
    assert told["last_reason"] == "manual trigger"
    text = says("status").text
    assert "Dusk 1  3/100 lines, 1 entry, 0 of them decrees" in text
    assert "the last succession ran for this reason: manual trigger" in text


def test_vault(cli: Scene, says: Callable[..., Ran]) -> None:
    one = _decide(says)
    says("run")
    says("vault", "promote", one[:8])
    assert says("vault").text == "- Chose tabs — Why: of width\n"
    says("vault", "promote", "Chose tabs")
    assert says("vault").text == "- Chose tabs — Why: of width\n", "never a line twice"
    vault = Path(cli.paths.store.path, "dynasty/vault.md")
    vault.write_text("- x\n" * 50)
    ran = cli("succession", "vault", "promote", "Chose tabs")
    assert ran.code == 2
    assert "50 of 50 lines" in ran.err


def test_deviants(cli: Scene, says: Callable[..., Ran]) -> None:
    _decide(says)
    says("vault", "promote", "Chose tabs")
    refs = ("--vault", "Chose tabs — Why: of width", "--dusk", "[decision] Chose tabs")
    told = ("deviants", "file", "--description", "two truths")
    for given in (("--vault", "nowhere", *refs[2:]), (*refs[:2], "--dusk", "nowhere")):
        ran = cli("succession", *told, *given)
        assert (ran.code, "has no 'nowhere'" in ran.err) == (2, True), "no text that stands there"
    says(*told, *refs)
    assert says("status", "--json").json["deviants"] == 1
    says("deviants", "resolve", "1", "--as", "accepted")
    (one,) = says("deviants", "--json").json["deviants"]
    assert (one["description"], one["status"], one["session"]) == ("two truths", "accepted", 1)
    assert "### [deviant] two truths\nFiled: " in says("deviants").text
    ran = cli("succession", *told, *refs)
    assert (ran.code, "open it again" in ran.err) == (2, True)


def test_decree(says: Callable[..., Ran]) -> None:
    _decide(says)
    says("run")
    says("decree", "Chose tabs")
    says("run")
    (one,) = says("dusk", "--json").json["entries"]
    assert (one["decree"], one["where"]) == (True, "dusk layer 1")


def test_lineage_and_search(says: Callable[..., Ran]) -> None:
    _decide(says)
    says("record", "observation", "--title", "Seen", "--what", "a needle")
    says("run")
    says("run")
    assert "### [ref:0] [observation] Seen\na needle" in says("lineage").text
    found = says("lineage", "--search", "IN A.PY", "--json").json["entries"]
    assert [(one["title"], one["text"]) for one in found] == [("Chose tabs", "in a.py")]
    assert found[0]["where"].endswith("now in Dusk, layer 2")
    assert "nothing that was ever recorded" in says("lineage", "--search", "xyzzy").err


def test_the_way_back_from_a_corrupt_dynasty_json(
    cli: Scene, says: Callable[..., Ran], tmp_path: Path
) -> None:
    """The hint, word for word."""
    _decide(says)
    made = says("run", "--json").json["savepoint"]
    broken = Path(cli.paths.store.path, "dynasty/main/dynasty.json")
    broken.write_text("{")
    cli.say("and on")
    cli.created()
    ran = cli("succession", "run")
    assert ran.code == 20
    assert f"savepoint: hint: `savepoint resurrect {made} --only memory` writes" in ran.err
    out = tmp_path / "back"
    cli.good("resurrect", str(made), "--only", "memory", "-o", str(out), "--allow-unverified")
    assert cli("succession", "import", str(out)).code == 1
    told = says("import", str(out), "--force").text
    assert "Stays" not in told
    assert Path(told.partition("What was replaced: ")[2].strip(), "main/dynasty.json").is_file()
    assert says("status", "--json").json["ruler"] == "Claude 1"
    assert "Chose tabs" in says("day").text


def test_a_forced_import_names_what_stays(
    cli: Scene, says: Callable[..., Ran], tmp_path: Path
) -> None:
    _decide(says)
    cli.created()
    late = _decide(says, "Chose LF")
    out = tmp_path / "back"
    cli.good("resurrect", "--only", "memory", "-o", str(out), "--allow-unverified")
    before = says("day").text
    told = says("import", str(out), "--force")
    assert f"Stays, in Day, since it is not in that one: {late[:8]} Chose LF" in told.text
    assert says("day").text == before
    (again,) = says("import", str(out), "--json").json["stays"]
    assert (again["id"], again["where"]) == (late, "day")


def test_a_corrupt_dynasty_json_names_the_way_back(cli: Scene, says: Callable[..., Ran]) -> None:
    _decide(says)
    saved = len(cli.good("list", "--json").json["savepoints"])
    Path(cli.paths.store.path, "dynasty/main/dynasty.json").write_text("{")
    for command in ("status", "day", "run"):
        ran = cli("succession", command)
        assert ran.code == 20
        assert "savepoint: hint: no savepoint has it whole: mend it by hand" in ran.err
    assert len(cli.good("list", "--json").json["savepoints"]) == saved, "none covers damage"


def test_the_agents_own_session_is_known(
    cli: Scene, says: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_CODE_SESSION_ID", "11111111-2222-4333-8444-555555555555")
    _decide(says)
    store = registry.find(cli.home, str(cli.project))
    text = Path(store.path, "dynasty/main/dynasty.json").read_text()
    assert '"origin":"11111111-2222-4333-8444-555555555555"' in text


def test_without_a_store(bare: Scene) -> None:
    assert bare("succession", "status").code == 10


@pytest.fixture
def bare(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> Scene:
    """A project without a store."""
    (tmp_path / "bare").mkdir()
    return Scene(tmp_path / "bare", capsysbinary)


def test_a_terminal_is_not_steered(cli: Scene) -> None:
    """On a terminal, control characters of a hand-written file are shown as escapes."""
    import pty

    cli.good("succession", "record", "observation", "--title", "x", "--what", "y")
    day = Path(cli.paths.store.path, "dynasty/main/day.md")
    day.write_text(day.read_text() + "\n\x1b[31mred\x1b[0m\n")
    out: list[bytes] = []

    def read(fd: int) -> bytes:
        data = os.read(fd, 4096)
        out.append(data)
        return data

    from tests.cli.scene import COMMAND

    before = Path.cwd()
    os.chdir(cli.project)
    try:
        pty.spawn([*COMMAND, "succession", "day"], read)
    finally:
        os.chdir(before)
    shown = b"".join(out)
    assert b"\x1b[31m" not in shown
    assert b"\\x1b[31mred" in shown
