"""What a run that died has left: the next one finishes it, or gives it up with its reason, and goes
on. Nothing that is not there is said to be there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import limits
from savepoint.core.errors import DiskError
from savepoint.resurrect import arrival, successor
from savepoint.resurrect.arrival import Arrival
from savepoint.store import durable, registry, savepoints
from tests.resurrect.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.strict_json import Json
    from savepoint.store.durable import Folder
    from savepoint.store.layout import InstancePaths
    from tests.cli.scene import Scene

PARENT = ("--instance", "Gabriel #215")


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def saved(cli: Scene) -> Scene:
    """One loaded file, a conversation of six messages, one savepoint."""
    (cli.project / "a.py").write_text("one\n")
    cli.transcript.unlink()
    cli.write(Talk().say(1, "T").data)
    cli.read_file("a.py")
    cli.created()
    return cli


def born(scene: Scene) -> list[InstancePaths]:
    store = registry.find(scene.home, str(scene.project))
    return savepoints.instances(store)[1:]


def die(scene: Scene, owner: object, name: str, *arguments: str) -> InstancePaths:
    """Resurrect, and be killed as `owner.name` is called; whose resurrection is left."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, _killed)
        assert "internal error: Killed" in scene("resurrect", *arguments).err
    (left,) = born(scene)
    assert os.path.lexists(left.arrival)
    return left


def _killed(*_: object, **__: object) -> None:
    raise Killed


def test_an_edit_between_a_kill_and_the_next_run_is_kept(saved: Scene) -> None:
    """The copy of a dead run was taken for one of what is there: the edit after it was lost."""
    file, real = saved.project / "a.py", durable.Folder.put

    def put(self: Folder, name: bytes, *rest: Any, over: bool) -> bool:  # noqa: ANN401  # as it is
        if over:
            raise Killed
        return real(self, name, *rest, over=over)

    file.write_text("MINE v1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(durable.Folder, "put", put)
        assert "internal error: Killed" in saved("resurrect", "--apply", "--force").err
    file.write_text("MINE v2\n")
    folder = Path(saved.good("resurrect", "--json").json["folder"])
    assert file.read_text() == "one\n"
    assert (folder / "replaced/a.py").read_text() == "MINE v1\n"
    assert (folder / "replaced.2/a.py").read_text() == "MINE v2\n"


def test_the_list_of_what_waits_is_as_short_with_many_files(saved: Scene) -> None:
    """9000 long names made it longer than what reads it takes, and no run could go on."""
    for number in range(20):
        name = f"{'n' * 200}{number}"
        (saved.project / name).write_text("x")
        saved.read_file(name)
    saved.created()
    left = die(saved, arrival, "finish", "--apply")
    assert b"nnnn" not in Path(left.arrival).read_bytes()
    assert b"nnnn".hex().encode() not in Path(left.arrival).read_bytes()
    for one in saved.project.glob("n*"):
        one.unlink()
    assert saved.good("resurrect", "--json").json["recovered"]["files"] == 21
    assert len(list(saved.project.glob("n*"))) == 20


def test_a_list_that_no_run_would_read_is_refused_before_the_birth(
    saved: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: dict[str, Json] = {"left_out": ["x" * 100] * 50_000}
    assert Arrival.parse(Arrival((), None, None, told).data()).report == told
    monkeypatch.setattr(limits, "ARRIVAL_BYTES", 500)
    ran = saved("resurrect")
    assert (ran.code, "can be finished after a crash" in ran.err) == (1, True)
    assert born(saved) == []
    assert sorted(os.listdir(saved.transcript.parent)) == [saved.transcript.name]


def test_a_session_that_is_gone_is_not_said_to_be_there(saved: Scene) -> None:
    left = die(saved, successor, "settle")
    for one in saved.transcript.parent.glob(".tmp-*"):
        one.unlink()
    ran = saved.good("resurrect", "--json")
    assert "is given up: " in ran.err
    assert "what waited for this name, under another, is gone" in ran.err
    assert ran.json["instance"] == "Gabriel #217"
    assert Path(ran.json["session"]["file"]).exists()
    assert not os.path.lexists(left.arrival)
    assert saved("fsck").code == 0


def test_what_was_put_into_its_place_already_may_have_grown(
    saved: Scene,
) -> None:
    left = die(saved, arrival, "put_over")
    file = Path(Arrival.parse(Path(left.arrival).read_bytes()).moves[-1].path)
    grown = file.read_bytes() + Talk().user("and on").data
    file.write_bytes(grown)
    assert saved.good("resurrect", "--json").json["session"]["file"] == str(file)
    assert file.read_bytes() == grown


def _changed(**members: object) -> Callable[[bytes], bytes]:
    def change(data: bytes) -> bytes:
        value = json.loads(data)
        value["waits"].update(members)
        return json.dumps(value).encode()

    return change


@pytest.mark.parametrize(
    "damage",
    [
        lambda _: b"",
        lambda data: data[: len(data) // 2],
        lambda _: b'{"v":1}\n',
        lambda _: b"[]\n",
        lambda data: data.replace(b'"v":1', b'"v":9', 1),
        _changed(report={}),
        _changed(apply={"names": ["zz"]}),
        _changed(session=None),
        _changed(moves=[]),
    ],
    ids=["empty", "torn", "bare", "no-object", "version", "report", "apply", "session", "moves"],
)
def test_a_damaged_list_of_what_waits_is_given_up(
    saved: Scene, damage: Callable[[bytes], bytes]
) -> None:
    """Else no run could ever bring anything back in this store again, or one said that it had."""
    left = die(saved, successor, "settle")
    note = Path(left.arrival)
    assert "a resurrection that was not finished" in saved("fsck").text
    note.write_bytes(damage(note.read_bytes()))
    checked = saved("fsck").text
    assert f"warning   instances/{left.slug}/arrival.json " in checked
    assert "a resurrection that was not finished" not in checked
    ran = saved.good("resurrect", "--json")
    assert f"the list of what waited for {left.slug} is damaged" in ran.err
    assert ran.json["instance"] == "Gabriel #217"
    assert Path(ran.json["session"]["file"]).exists()
    assert os.path.lexists(left.trusted)
    assert "arrival.json" not in saved.good("fsck").text


def test_a_place_that_is_taken_keeps_nothing_else_from_its_own(
    saved: Scene, tmp_path: Path
) -> None:
    target = tmp_path / "out"
    die(saved, arrival, "finish", "-o", str(target))
    target.mkdir()
    (target / "mine").write_text("x")
    only = tmp_path / "only"
    ran = saved.good("resurrect", "2", "--only", "files", "-o", str(only), *PARENT)
    assert f"is given up: {target} is there already" in ran.err
    assert (only / "files/a.py").read_text() == "one\n"
    assert sorted(os.listdir(target)) == ["mine"]
    assert not list(tmp_path.glob(".tmp-*"))


def test_of_two_runs_to_one_folder_the_second_is_told_that_it_exists(
    saved: Scene, tmp_path: Path
) -> None:
    target, real = tmp_path / "out", successor.publish

    def publish(*given: Any) -> None:  # noqa: ANN401  # as it is
        real(*given)
        target.mkdir()
        (target / "theirs").write_text("x")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(successor, "publish", publish)
        ran = saved("resurrect", "-o", str(target))
    assert (ran.code, f"{target} is there already" in ran.err) == (1, True)
    assert saved.good("resurrect", "--json").json["instance"] == "Gabriel #217"


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_link_in_the_place_of_a_file_is_refused_before_the_birth(
    saved: Scene, tmp_path: Path, force: tuple[str, ...]
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine\n")
    (saved.project / "a.py").unlink()
    (saved.project / "a.py").symlink_to(elsewhere)
    ran = saved("resurrect", "--apply", *force)
    assert (ran.code, "a.py cannot be put over" in ran.err) == (1, True)
    assert born(saved) == []
    assert elsewhere.read_text() == "mine\n"


def test_a_disk_that_fails_over_the_project_hides_not_who_goes_on(
    saved: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> list[str]:
        raise DiskError("no space left")

    monkeypatch.setattr("savepoint.resurrect.apply.Apply.run", full)
    ran = saved("resurrect", "--apply", "--json")
    assert (ran.code, "stays out of the project: no space left" in ran.err) == (1, True)
    assert Path(ran.json["session"]["file"]).exists()
    (left,) = born(saved)
    assert not os.path.lexists(left.arrival)
