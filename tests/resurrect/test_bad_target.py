"""Links, folders, rights and full disks in the place where a savepoint is brought back to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from savepoint.resurrect.apply import Apply
from tests.cli.scene import COMMAND, without_privileges
from tests.resurrect.refusing import everything, loaded, paths_of, refused, saved
from tests.resurrect.talk import Talk

if TYPE_CHECKING:
    from tests.cli.scene import Scene

__all__ = ["saved"]


def test_a_link_in_the_project_leads_nowhere(saved: Scene, tmp_path: Path) -> None:
    """hackmyagent#318: the path was tested, the copy followed the link."""
    outside = tmp_path / "outside"
    outside.mkdir()
    loaded("src/a.py")(paths_of(saved))
    (saved.project / "src").symlink_to(outside)
    for force in ((), ("--force",)):
        ran = saved("resurrect", "--apply", *force, "--instance", "Gabriel #215")
        assert ran.code != 0
        assert list(outside.iterdir()) == []


def test_a_link_in_the_place_of_a_file_is_not_followed(saved: Scene, tmp_path: Path) -> None:
    outside = tmp_path / "precious"
    outside.write_text("mine")
    (saved.project / "a.py").unlink()
    (saved.project / "a.py").symlink_to(outside)
    assert saved("resurrect", "--only", "files", "--apply").code == 1
    assert saved("resurrect", "--only", "files", "--apply", "--force").code != 0
    assert outside.read_text() == "mine"


def test_a_link_in_the_agents_folder_is_not_followed(saved: Scene, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    saved.transcript.parent.rename(outside)
    saved.transcript.parent.symlink_to(outside)
    before = sorted(os.listdir(outside))
    ran = saved("resurrect")
    assert (ran.code, "is a link" in ran.err) == (1, True)
    assert sorted(os.listdir(outside)) == before


def test_links_that_appear_meanwhile_lead_nowhere(saved: Scene, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    loaded("src/a.py")(paths_of(saved))
    back = saved.good("resurrect", "--only", "files", "--json").json
    source, place = saved.project / "src", saved.project / "other"
    ended = threading.Event()

    def toggle() -> None:
        while not ended.is_set():
            for step in (
                lambda: source.rename(place),
                lambda: source.symlink_to(outside),
                source.unlink,
                lambda: place.rename(source),
            ):
                with suppress(OSError):  # the other one was faster
                    step()
            shutil.rmtree(place, ignore_errors=True)

    toggler = threading.Thread(target=toggle)
    toggler.start()
    try:
        for _ in range(300):
            over = Apply(back["folder"], "files", str(saved.project), force=True)
            try:
                over.run()
            except Exception as failure:  # noqa: BLE001  # whatever it meets, it must not follow
                assert type(failure).__name__ == "DiskError"  # noqa: PT017
    finally:
        ended.set()
        toggler.join()
    assert list(outside.iterdir()) == []


def test_a_folder_that_exists_is_not_written_into(saved: Scene, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    assert refused(saved, "-o", str(there)).code == 1
    assert refused(saved, "-o", str(tmp_path / "no/where")).code == 2
    assert refused(saved, "-o", str(Path(saved.home.path, "stores/x"))).code == 2


def test_arguments_that_do_not_go_together(saved: Scene) -> None:
    assert refused(saved, "--force").code == 2
    assert refused(saved, "--apply", "--only", "state").code == 2
    assert refused(saved, "1", "--session", "x").code == 2
    assert refused(saved, "--only", "nothing").code == 2
    assert refused(saved, "99").code == 1


def test_no_key_no_successor_but_parts(saved: Scene) -> None:
    paths = paths_of(saved)
    Path(paths.authority).unlink()
    assert refused(saved).code == 12
    assert saved.good("resurrect", "--only", "files", "--json").json["instance"] is None


def _documents(scene: Scene) -> list[Any]:
    return [one.name for one in Path(scene.home.path).rglob("BOOTSTRAP_VERIFICATION.json")]


def test_a_read_only_target_is_40_and_nothing_is_born(saved: Scene, tmp_path: Path) -> None:
    saved.transcript.parent.chmod(0o500)
    try:
        ran = without_privileges("resurrect", cwd=saved.project)
    finally:
        saved.transcript.parent.chmod(0o700)
    assert ran.returncode == 40, ran.stderr
    assert _documents(saved) == []


def test_no_space_is_40_and_nothing_is_born(saved: Scene) -> None:
    """A file may not grow beyond a limit: the kernel's answer is that of a full disk."""
    saved.write(b"".join(Talk().user("x" * 5000).data for _ in range(40)))
    saved.created()
    code = "import resource,os,sys; resource.setrlimit(resource.RLIMIT_FSIZE,(100000,100000)); "
    code += "os.execv(sys.argv[1], sys.argv[1:])"
    before = everything(saved)
    ran = subprocess.run(
        [sys.executable, "-c", code, *COMMAND, "resurrect"],
        cwd=saved.project,
        capture_output=True,
        check=False,
        timeout=180,
    )
    assert ran.returncode == 40, ran.stderr
    assert everything(saved) == before
