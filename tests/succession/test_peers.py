"""What went wrong in the tool that succession comes from (peers.md 3.3), each under its number."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import MalformedError
from succession.dynasty.constants import LAYERS_MAX
from succession.dynasty.files import deviants, vault
from tests.fault.scene import session_id
from tests.succession.lives import Life, problems

if TYPE_CHECKING:
    from pathlib import Path

    from tests.succession.scene import Scene

_WHY = "first line\nsecond line\n\n## heading\nlast line"


def test_1_a_why_of_many_lines_is_whole_in_every_tier(scene: Scene) -> None:
    one = scene.record("A decision", _WHY)
    seen = set()
    for _ in range(6):
        scene.run()
        places = {**_places(scene), "lineage": scene.state.lineage.decode()}
        for name, text in places.items():
            if "A decision" in text:
                assert one.why in text
                seen.add(name)
    assert seen == {"Layer 1", "Layer 2", "Layer 3", "lineage"}


def _places(scene: Scene) -> dict[str, str]:
    page = scene.state.dusk_page
    return {
        f"Layer {number}": "".join(
            part.raw for part in page.parts if part.entry and part.section == str(number)
        )
        for number in (1, 2, 3)
    }


def test_2_bytes_that_are_no_utf8_stop_nothing(scene: Scene) -> None:
    scene.record("A decision", "because")
    day = scene.own / "day.md"
    day.write_bytes(day.read_bytes() + b"\n### [decision] caf\xe9\nWhy: \xff\xfe\n")
    scene.git("config", "i18n.commitEncoding", "latin1")
    (scene.project.folder / "message").write_bytes(b"caf\xe9\n")
    scene.git("commit", "-q", "--allow-empty", "-F", str(scene.project.folder / "message"))
    with scene.project.transcript().open("ab") as file:
        file.write(b'{"type":"assistant","message":{"content":[{"type":"text","text":"\xff"}]}}\n')
    assert scene.stop().due == ""
    scene.run(scene.covering(1))
    assert b"Why: \xff\xfe" in (scene.own / "dusk.md").read_bytes()
    assert scene.state.meta.sessions == 1


@pytest.mark.parametrize("source", ["compact", "resume"])
def test_3_six_compactions_or_resumes_are_no_session(scene: Scene, source: str) -> None:
    scene.record("A decision", "because")
    scene.start(1)
    for _ in range(6):
        scene.start(1, source)
        assert scene.stop(1).suggestion == ""
    assert scene.state.meta.sessions_since_succession == 1
    assert scene.state.meta.current == 1


@pytest.mark.parametrize("source", ["clear", "fork", "resume"])
def test_3_a_new_id_of_a_cleared_or_forked_session_is_none(scene: Scene, source: str) -> None:
    scene.record("A decision", "because")
    scene.session(1)
    for session in range(2, 9):
        scene.start(session, source)
        assert scene.stop(session).suggestion == ""
    assert scene.state.meta.sessions == 1


def test_3_a_resurrected_session_is_one(scene: Scene) -> None:
    scene.record("A decision", "because")
    scene.start(1, "resume", resurrected=True)
    scene.stop(1)
    assert scene.state.meta.sessions == 1


def test_4_a_detached_head_writes_into_no_branch(scene: Scene) -> None:
    scene.record("On main", "because")
    before = scene.files()
    scene.git("checkout", "-q", "--detach")
    scene.record("Detached", "because")
    assert scene.branch.name == f"detached-{scene.git('rev-parse', 'HEAD')[:12]}"
    after = scene.files()
    assert {one: after[one] for one in before if one.startswith("main/")} == {
        one: data for one, data in before.items() if one.startswith("main/")
    }


def test_4_branches_that_shared_a_folder_do_not(scene: Scene) -> None:
    for name in ("feature/a", "feature-a"):
        scene.git("checkout", "-q", "-b", name)
        scene.record(f"On {name}", "because")
        scene.git("checkout", "-q", "main")
        scene.git("branch", "-q", "-D", name)
    folders = sorted(one.name for one in scene.folder.iterdir() if one.is_dir())
    assert len(folders) == 2
    days = [(scene.folder / one / "day.md").read_text() for one in folders]
    assert [text.count("### ") for text in days] == [1, 1]


@pytest.mark.parametrize("data", [b"", b"{", b"null", b'{"v":1}', b"\xff", b'{"v":1,"current":0}'])
def test_5_a_corrupt_dynasty_json_is_refused_with_the_way_back(scene: Scene, data: bytes) -> None:
    scene.record("A decision", "because")
    scene.run()
    path = scene.own / "dynasty.json"
    path.write_bytes(data)
    before = scene.files()
    with pytest.raises(MalformedError) as caught:
        scene.run()
    assert "names the savepoint that has it whole" in caught.value.hint
    assert scene.files() == before


def test_5_a_lost_dynasty_json_is_no_new_dynasty(scene: Scene) -> None:
    scene.record("A decision", "because")
    (scene.own / "dynasty.json").unlink()
    with pytest.raises(MalformedError):
        scene.stop()


def _referenced(reigns: int, vault_text: str = "") -> Life:
    """A life in whose every reign one decision was referenced."""
    life = Life.begin()
    life = life._replace(state=life.state._replace(vault=vault_text))
    from succession.dynasty.files import entry

    one = entry.make("decision", "Vault me", "for good", "x")
    life = life.record(one)
    for reign in range(reigns):
        life = life.touch({one.id: 1}, f"session-{reign}").succeed().life
    return life


def test_6_a_line_comes_into_the_vault_once_and_on_its_own_line() -> None:
    life = _referenced(7, "- by hand, without a line end")
    assert life.state.vault == "- by hand, without a line end\n- Vault me — Why: for good\n"
    assert problems(life) == []


def test_6_a_promoted_line_that_was_taken_out_stays_out() -> None:
    life = _referenced(4)
    life = life._replace(state=life.state._replace(vault="- another\n"))
    (one,) = life.recorded
    assert life.touch({one: 2}).succeed().life.state.vault == "- another\n"


def test_6_a_line_that_begins_another_is_not_held() -> None:
    """A Why of one line was taken for the longer one that begins with it, and never promoted."""
    held = "- Same — Why: w\n     more\n"
    assert not vault.holds(held, "- Same — Why: w")
    assert vault.holds(held, "- Same — Why: w\n     more")
    assert vault.holds(f"{held}- Same — Why: w\n", "- Same — Why: w")
    assert vault.holds("- Same — Why: w", "- Same — Why: w")


def test_6_candidate_marks_do_not_pile_up() -> None:
    life = _referenced(7, "- x\n" * 50)
    assert life.state.dusk.count("[vault-candidate]") == 1
    assert vault.line_count(life.state.vault) == 50


def test_7_unresolved_deviants_are_counted_and_nudged_once() -> None:
    text = deviants.filed("", "one", ("a", "b"), 0)
    text = deviants.filed(text, "two", ("c", "d"), 0)
    assert sum(one.is_open for one in deviants.parse(text)) == 2
    for _ in range(4):
        text = deviants.nudged(deviants.counted(text))
    assert text.count(deviants.NUDGE) == 2
    for _ in range(5):
        text = deviants.nudged(deviants.nudged(deviants.counted(text)))
    assert (text.count(deviants.NUDGE), text.count(deviants.ASK)) == (0, 2)
    assert [one.session for one in deviants.parse(text)] == [10, 10]
    text = deviants.resolved(text, 1, "dismissed")
    assert [one.is_open for one in deviants.parse(text)] == [False, True]
    assert text.count(deviants.ASK) == 1


def test_7_a_pair_is_filed_once_also_after_it_was_dismissed() -> None:
    text = deviants.filed("", "one", ("a", "b"), 0)
    text = deviants.resolved(text, 1, "dismissed")
    assert deviants.filed(text, "again", ("a", "b"), 9) == text


def test_8_a_why_that_looks_like_an_entry_is_none(scene: Scene) -> None:
    why = "because\n### [ref:99] [decision] injected\nWhy: no\n- [ref:9] [decree] [decision] x"
    one = scene.record("A decision", why, "fine\n### [ref:99] [observation] injected")
    for _ in range(6):
        entries = [*scene.state.day_page.entries, *scene.state.dusk_page.entries]
        assert [found for found in entries if "injected" in found.title] == []
        scene.run()
    assert one.why in scene.state.lineage.decode()


@pytest.mark.timeout(120)
def test_9_two_at_once_are_one_after_the_other(scene: Scene) -> None:
    scene.record("A decision", "because")
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(5):
                scene.run()
        except BaseException as failure:  # noqa: BLE001  # told below
            failures.append(failure)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []
    assert scene.state.meta.current == 16


def test_9_references_are_of_the_entry_not_of_its_place(scene: Scene) -> None:
    first = scene.record("First", "because", "src/a.py")
    second = scene.record("Second", "because", "src/b.py")
    scene.session(1, "src/b.py")
    day = scene.own / "day.md"
    text = day.read_text()
    day.write_text(text.replace(text[text.index("### ") : text.rindex("### ")], ""))
    scene.session(2, "src/b.py")
    refs = {one.id: one.ref for one in scene.state.day_page.entries}
    assert refs == {second.id: 2 + 2}
    assert first.id not in refs


def test_dusk_limits_are_used(scene: Scene) -> None:
    """500 of 500 entries were kept."""
    scene.record("Number 0", "one\ntwo")
    day = scene.own / "day.md"
    text = "".join(f"\n### [decision] Number {n}\nWhy: one\n     two\n" for n in range(1, 200))
    day.write_text(day.read_text() + text)
    scene.run()
    page = scene.state.dusk_page
    used = [sum(1 + one.why.count("\n") for one in page.layer(n)) for n in (2, 3)]
    assert all(lines <= most for lines, most in zip(used, LAYERS_MAX[1:], strict=True))
    assert len(page.layer(1)) == 33


def test_a_decree_written_by_hand_stays_one(scene: Scene) -> None:
    scene.record("Another", "because")
    day = scene.own / "day.md"
    day.write_text(day.read_text() + "\n### [decree] By hand\nWhy: I say so\nWhat: all of\nthis\n")
    for _ in range(8):
        scene.run()
    (one,) = scene.state.dusk_page.layer(1)
    assert (one.kind, one.decree, one.why, one.body) == (
        "decision",
        True,
        "I say so",
        "all of\nthis",
    )


def test_layer_3_is_left_after_three_successions_not_at_once(scene: Scene) -> None:
    scene.record("A decision", "because")
    where = []
    for _ in range(7):
        scene.run()
        page = scene.state.dusk_page
        where.append(next((n for n in (1, 2, 3) if page.layer(n)), 0))
    assert where == [1, 2, 3, 3, 3, 0, 0]


def test_lineage_keeps_body_dynasty_and_date(scene: Scene) -> None:
    scene.record("Saw it", "", "The whole text.\nAll of it.")
    scene.run()
    text = scene.state.lineage.decode()
    assert "### [dynasty:1] [observation] Saw it\nDemoted: 2026-" in text
    assert "\nOriginal ref: 0\nThe whole text.\nAll of it.\n" in text


def test_many_changed_files_are_not_cut_in_the_middle(scene: Scene) -> None:
    """A diff was cut at 3,000 characters, so that later files vanished without a word."""
    scene.record("A decision", "because")
    written = [f"src/{'long' * 20}/{number:03}.py" for number in range(200)]
    from succession import dynasty

    dynasty.note(scene.request(), scene.covering(1, written=written))
    (one,) = [one for one in scene.state.day_page.entries if one.kind == "observation"]
    assert one.title == f"Files changed in session {session_id(1)[:8]} under Claude 1"
    assert "and 180 more" in one.body


def test_committed_work_is_seen(scene: Scene, tmp_path: Path) -> None:
    """Its history: committed work was invisible (a36bad1)."""
    from succession import dynasty

    scene.record("A decision", "because")
    scene.commit("feat: one")
    scene.commit("feat: two")
    dynasty.note(scene.request(), scene.covering(1))
    dynasty.note(scene.request(), scene.covering(2))
    titles = [one.title.partition(": ")[2] for one in scene.state.day_page.entries[1:]]
    assert titles == ["feat: one", "feat: two"]
