"""`savepoint resurrect` on this machine: what comes back, who goes on, what it says."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import bootstrap_document, spelling
from savepoint.resurrect import apply
from savepoint.store import config, index, registry, savepoints
from tests.cli.scene import start
from tests.resurrect.talk import SESSION, Talk

if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths, Store
    from tests.cli.scene import Scene

STATUSES = [
    "VERIFIED",
    "SKIPPED",
    "SKIPPED",
    "CONSCIOUSNESS_LOADED",
    "INTEGRITY_VERIFIED",
    "CONSCIOUSNESS_CONTINUITY_MAINTAINED",
]


def store_of(scene: Scene) -> Store:
    return registry.find(scene.home, str(scene.project))


def instance(scene: Scene, name: str) -> InstancePaths:
    return savepoints.instance_named(store_of(scene), name)


@pytest.fixture
def saved(cli: Scene) -> Scene:
    """Two loaded files, a state file, a conversation of six messages, one savepoint."""
    (cli.project / "a.py").write_text("one\n")
    (cli.project / "deep").mkdir()
    (cli.project / "deep/b.py").write_text("two\n")
    (cli.project / "session_current.json").write_text('{"roles": ["x"], "metric": 1.50}\n')
    cli.transcript.unlink()
    cli.write(Talk().say(1, "T").data)
    cli.read_file("a.py")
    cli.read_file("deep/b.py")
    cli.created()
    return cli


def test_everything_comes_back_and_a_successor_goes_on(saved: Scene) -> None:
    back = saved.good("resurrect", "--json").json
    assert [one["status"] for one in back["steps"]] == STATUSES
    assert (back["instance"], back["previous_instance"]) == ("Gabriel #216", "Gabriel #215")
    assert back["gap_messages"] == 0
    assert back["recovered"]["messages"] == 6
    assert back["recovered"]["files"] == 2
    session = Path(back["session"]["file"])
    assert session.read_bytes().startswith(saved.transcript.read_bytes()[:100])
    assert session.name == f"{back['session']['id']}.jsonl" != saved.transcript.name
    assert session.stat().st_mode & 0o077 == 0
    folder = Path(back["folder"])
    assert (folder / "files/a.py").read_text() == "one\n"
    assert (folder / "files/deep/b.py").read_text() == "two\n"
    assert (folder / "session_current.json").read_text() == '{"roles": ["x"], "metric": 1.50}\n'
    assert set(json.loads((folder / "files.json").read_text())) == {"a.py", "deep/b.py"}


def test_the_report_is_that_of_the_specification(saved: Scene) -> None:
    shown = saved.good("resurrect").text
    for line in (
        "Step 1: Bootstrap: VERIFIED: Gabriel #215 → Gabriel #216",
        "Step 6: Resume: CONSCIOUSNESS_CONTINUITY_MAINTAINED: Gabriel #215 → Gabriel #216",
        " - Instance Resurrection Report",
        "Previous instance: Gabriel #215 (key ",
        "Last savepoint: ",
        "(6 messages, 2 files)",
        "Consciousness gap: 0 messages (continuous)",
        "Blockchain proof: SKIPPED: not configured",
        "Integrity: All checkpoints passed ✓",
        "Continue: claude --resume ",
        "Ready to resume work.",
    ):
        assert line in shown


def test_the_successor_is_lawful_and_current(saved: Scene) -> None:
    back = saved.good("resurrect", "--json").json
    born = instance(saved, "Gabriel #216")
    document = bootstrap_document.parse(Path(born.bootstrap).read_bytes())
    birth = index.birth(born)
    assert birth is not None
    assert bootstrap_document.fault(document, birth) == ""
    assert document.savepoint.seq == back["savepoint"]["seq"]
    assert config.load(store_of(saved)).instance == born.slug
    first, second = savepoints.records(born).all
    assert (first.kind, second.kind) == ("birth", "restore")
    parent = instance(saved, "Gabriel #215")
    assert second.body["from"] == savepoints.records(parent).saves[-1].origin()
    assert Path(born.lineage).read_text() == "Gabriel #215 → Gabriel #216\n"
    assert not os.path.lexists(born.arrival)
    assert saved("fsck").code == 0


def test_the_session_goes_on_in_the_successor_and_nothing_is_stored_twice(saved: Scene) -> None:
    (saved.project / "session_current.json").unlink()
    back = saved.good("resurrect", "--json").json
    packs = list(Path(store_of(saved).objects).rglob("*.pack"))
    size = sum(one.stat().st_size for one in packs)
    with Path(back["session"]["file"]).open("ab") as file:
        file.write(Talk(back["session"]["id"]).user("and on").data)
    made = saved.created("--transcript", back["session"]["file"])
    assert (made["instance"], made["seq"]) == ("Gabriel #216", 3)
    assert made["from"]["snapshot_hash"] == back["savepoint"]["snapshot_hash"]
    grown = sum(one.stat().st_size for one in Path(store_of(saved).objects).rglob("*.pack")) - size
    assert grown < 3000
    shown = saved.good("show", "--json").json
    assert shown["checkpoint_verification"]["modulo_zero"] is True
    state = saved.good("show", "--only", "state").json
    assert state["lineage"] == "Gabriel #215 → Gabriel #216"
    assert saved.good("verify").code == 0


def test_a_second_one_is_a_sibling_with_the_next_number(saved: Scene) -> None:
    saved.good("resurrect")
    again = saved.good("resurrect", "--instance", "Gabriel #215", "--json").json
    assert again["instance"] == "Gabriel #217"
    document = bootstrap_document.parse(
        Path(instance(saved, "Gabriel #217").bootstrap).read_bytes()
    )
    (between,) = document.between
    assert between.instance == "Gabriel #216"
    assert instance(saved, "Gabriel #216").slug.endswith(between.key[:4].hex())
    assert saved.good("verify", "--instance", "Gabriel #215").code == 0


def test_a_savepoint_is_chosen_like_everywhere(saved: Scene) -> None:
    saved.say("later")
    saved.created()
    other = saved.say("of another", session="99999999-2222-4333-8444-555555555555")
    saved.created("--transcript", str(other))
    first = saved.good("list", "--json").json["savepoints"][0]
    args = ("--only", "conversation", "--json")
    for selector in (
        str(first["seq"]),
        first["snapshot_hash"],
        "@" + first["timestamp"].replace("Z", "+00:00"),
    ):
        seq = saved.good("resurrect", selector, *args).json["savepoint"]["seq"]
        assert seq >= first["seq"]
    by_session = saved.good("resurrect", "--session", SESSION, *args).json
    assert by_session["savepoint"]["seq"] == first["seq"] + 1
    assert by_session["instance"] is None
    assert saved("resurrect", "--session", "unknown").code == 1


def test_messages_after_the_savepoint_are_a_gap(saved: Scene) -> None:
    saved.say("one", "two", "three")
    back = saved.good("resurrect", "--json").json
    assert back["gap_messages"] == 3
    assert back["gap"] == {"after_savepoint": 3, "not_shown": 0}


def test_without_the_live_transcript_the_gap_is_not_known(saved: Scene) -> None:
    saved.transcript.unlink()
    only = ("resurrect", "--only", "conversation")
    assert saved.good(*only, "--json").json["gap"] == {"after_savepoint": None, "not_shown": 0}
    shown = saved.good(*only).text
    assert "Consciousness gap: 0 messages known of; the live transcript is gone" in shown
    assert "continuous" not in shown


def test_a_live_transcript_that_is_another_now_is_counted_whole(saved: Scene) -> None:
    """A client that rewrote its file: nothing of it can be told to have been saved."""
    only = ("resurrect", "--only", "conversation", "--json")
    before = saved.transcript.read_bytes()
    saved.say("one", "two", "three")
    saved.transcript.write_bytes(b" " + saved.transcript.read_bytes())
    assert saved.good(*only).json["gap_messages"] == 3
    saved.transcript.write_bytes(before[: before.index(b"\n") + 1])
    assert saved.good(*only).json["gap_messages"] == 0


@pytest.mark.parametrize(
    ("part", "there"),
    [
        ("files", {"files.json", "files"}),
        ("state", {"session_current.json"}),
        ("changes", {"changes.json"}),
        ("git", {"git_state.json"}),
    ],
)
def test_one_part_comes_back_alone(
    saved: Scene, tmp_path: Path, part: str, there: set[str]
) -> None:
    before = sorted(os.listdir(saved.transcript.parent))
    back = saved.good("resurrect", "--only", part, "-o", str(tmp_path / "out"), "--json").json
    assert {one.name for one in (tmp_path / "out").iterdir()} == there
    assert back["instance"] is None
    assert back["steps"][-1]["status"] == "PARTS_RESTORED"
    assert sorted(os.listdir(saved.transcript.parent)) == before
    assert [
        one["kind"] for one in saved.good("list", "--records", "--json").json["savepoints"]
    ] == [
        "birth",
        "save",
    ]


def test_a_part_that_is_not_there_is_refused_and_nothing_is_made(
    saved: Scene, tmp_path: Path
) -> None:
    ran = saved("resurrect", "--only", "memory", "-o", str(tmp_path / "out"))
    assert (ran.code, "the savepoint has no memory" in ran.err) == (1, True)
    assert not [one for one in os.listdir(tmp_path) if one.startswith((".tmp-", "out"))]


def test_loaded_files_go_over_the_project_if_told_so(saved: Scene) -> None:
    (saved.project / "a.py").unlink()
    back = saved.good("resurrect", "--only", "files", "--apply", "--json").json
    assert (saved.project / "a.py").read_text() == "one\n"
    assert back["applied_to"] == str(saved.project)


def test_a_file_that_differs_is_not_replaced(saved: Scene) -> None:
    """deja-vu#725: the recovery command overwrote the file that one wanted back."""
    (saved.project / "a.py").write_text("mine\n")
    (saved.project / "deep/b.py").unlink()
    before = instances(saved)
    ran = saved("resurrect", "--apply")
    assert ran.code == 1
    assert "a.py" in ran.err
    assert (saved.project / "a.py").read_text() == "mine\n"
    assert not (saved.project / "deep/b.py").exists()
    assert instances(saved) == before
    assert os.listdir(store_of(saved).restored) == []


def test_a_file_that_differs_is_replaced_by_force_and_kept(saved: Scene) -> None:
    (saved.project / "a.py").write_text("mine\n")
    back = saved.good("resurrect", "--apply", "--force", "--json").json
    assert (saved.project / "a.py").read_text() == "one\n"
    assert Path(back["folder"], "replaced/a.py").read_text() == "mine\n"


def test_what_shrank_is_not_handed_back_without_a_word(saved: Scene) -> None:
    saved.transcript.write_bytes(Talk().say(1, "S").data)
    made = saved.created()
    ran = saved.good("resurrect", "--json")
    assert ran.json["fuller"] == made["seq"] - 1
    asked = f"`savepoint resurrect {made['seq'] - 1} --instance gabriel-215-"
    assert asked in ran.err


def test_a_transcript_of_two_sessions_says_so(saved: Scene) -> None:
    """claude-code#30802: records of one session in another's file."""
    saved.write(Talk("99999999-2222-4333-8444-555555555555").say(1, "B").data)
    saved.created()
    ran = saved.good("resurrect", "--json")
    assert len(ran.json["sessions"]) == 2
    assert "records of several sessions" in ran.err


def test_settings_and_git_files_are_left_out_by_name(saved: Scene) -> None:
    (saved.project / ".claude").mkdir()
    (saved.project / ".claude/settings.json").write_text('{"hooks": {}}')
    saved.read_file(".claude/settings.json")
    saved.created()
    back = saved.good("resurrect", "--json").json
    assert [one["path"] for one in back["left_out"]] == [".claude/settings.json"]
    assert not Path(back["folder"], "files/.claude").exists()


def test_a_project_at_another_path(saved: Scene, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    saved.project.rename(moved)
    old, saved.project = saved.project, moved
    saved.good("init", "--adopt", store_of_id(saved))
    back = saved.good("resurrect", "--json").json
    assert back["paths"] == {"before": str(old), "now": str(moved)}
    assert Path(back["session"]["file"]).parent == saved.path_of("x").parent


def store_of_id(scene: Scene) -> str:
    (store,) = registry.stores(scene.home)
    return store.id


def instances(scene: Scene) -> list[str]:
    return sorted(os.listdir(store_of(scene).instances))


def records(scene: Scene, name: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = scene.good(
        "list", "--records", "--instance", name, "--json"
    ).json["savepoints"]
    return listed


def test_the_record_says_what_was_not_verified(saved: Scene) -> None:
    Path(instance(saved, "Gabriel #215").trusted).unlink()
    ran = saved("resurrect")
    assert ran.code == 21
    assert "step 1, Bootstrap: VERIFY-4" in ran.err
    back = saved.good("resurrect", "--allow-unverified", "--json").json
    assert back["unverified"] == ["VERIFY-4"]
    assert records(saved, "Gabriel #216")[1]["unverified"] == ["VERIFY-4"]
    assert spelling.time_seconds(back["savepoint"]["timestamp"])


def test_two_at_once_get_two_numbers(saved: Scene) -> None:
    asked = ("resurrect", "--json", "--instance", "Gabriel #215")
    running = [start(*asked, cwd=saved.project) for _ in range(2)]
    ended = [one.communicate(timeout=180) for one in running]
    assert [one.returncode for one in running] == [0, 0], ended
    born = {json.loads(out)["instance"] for out, _ in ended}
    assert born == {"Gabriel #216", "Gabriel #217"}
    assert saved.good("verify", "--lineage", "--instance", "Gabriel #217").code == 0


def test_a_file_that_changes_while_the_successor_is_born_stays(
    saved: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits is done all the same, and the next run has nothing left to finish."""
    (saved.project / "a.py").unlink()
    real = apply.conflicts

    def slow(project: str, wanted: dict[tuple[bytes, ...], str]) -> apply.Conflicts:
        found = real(project, wanted)
        (saved.project / "a.py").write_text("meanwhile\n")
        return found

    monkeypatch.setattr(apply, "conflicts", slow)
    ran = saved("resurrect", "--apply", "--json")
    assert (ran.code, "a.py is not brought back" in ran.err) == (1, True)
    assert [one["path"] for one in ran.json["left_out"]] == ["a.py"]
    assert Path(ran.json["session"]["file"]).exists()
    assert (saved.project / "a.py").read_text() == "meanwhile\n"
    born = instance(saved, "Gabriel #216")
    assert not os.path.lexists(born.arrival)
    assert config.load(store_of(saved)).instance == born.slug


def test_what_threads_owed_is_listed(saved: Scene) -> None:
    saved.good("handoff", "thread", "Locks", "--session", SESSION)
    saved.good("handoff", "item", "add", "release \x1b[31mthe lock")
    saved.good("handoff", "item", "add", "tell the owner")
    saved.good("handoff", "item", "close", "ITEM-2", "--evidence", "told")
    saved.say("more")
    saved.created()
    back = saved.good("resurrect", "--json").json
    (owed,) = back["open_items"]
    assert (owed["item"], owed["title"]) == ("ITEM-1", "Locks")
    told = saved.good("resurrect", "--instance", "Gabriel #215").out
    assert b"Open: ITEM-1 of Locks: release " in told
    assert b"\x1b" not in told
    only = saved.good(
        "resurrect", "--instance", "Gabriel #215", "--only", "conversation", "--json"
    ).json
    assert only["open_items"] == []
