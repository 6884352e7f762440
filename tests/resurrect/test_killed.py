"""A resurrection that is killed anywhere leaves the target without it, or with all of it; the next
run finishes, and nothing is to be cleaned up by hand.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import config, registry, savepoints
from tests.resurrect.talk import Talk
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from tests.cli.scene import Scene

# Counts what changes names on the disk, and dies without a word before number N of it.
_DIES = f"""
import os, sys
sys.path.insert(0, {str(PROJECT)!r})
left = int(sys.argv.pop(1))
def dying(real):
    def call(*args, **more):
        global left
        left -= 1
        if left == 0:
            os._exit(137)
        return real(*args, **more)
    return call
for name in ("rename", "link", "mkdir", "unlink", "rmdir"):
    setattr(os, name, dying(getattr(os, name)))
from savepoint.cli import main
code = main.run(sys.argv[1:])
sys.stdout.flush()
print(10**6 - left, file=sys.stderr)
os._exit(code)
"""


def run(scene: Scene, number: int, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-c", _DIES, str(number), *arguments],
        cwd=scene.project,
        capture_output=True,
        check=False,
        timeout=180,
    )


def prepared(scene: Scene) -> None:
    (scene.project / "a.py").write_text("one\n")
    scene.transcript.unlink()
    scene.write(Talk().say(2, "T").data)
    scene.read_file("a.py")
    folder = scene.transcript.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    (folder / "agent-1.jsonl").write_text("{}\n")
    scene.created()
    (scene.project / "a.py").unlink()


def sessions(scene: Scene) -> list[Path]:
    found = scene.transcript.parent.glob("*.jsonl")
    return [one for one in found if one != scene.transcript]


def born(scene: Scene) -> list[str]:
    store = registry.find(scene.home, str(scene.project))
    return [savepoints.name_of(one) for one in savepoints.instances(store)][1:]


def steps() -> list[int]:
    """Of the some seventy changes, a sample that is the same every time."""
    return sorted(random.Random(6).sample(range(1, 75), 16))


@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", steps())
def test_killed_anywhere_the_next_run_finishes(cli: Scene, number: int) -> None:
    prepared(cli)
    died = run(cli, number, "resurrect", "--apply", "--json")
    assert died.returncode in (0, 137), died.stderr
    was_born = born(cli)
    assert len(sessions(cli)) <= len(was_born)
    if sessions(cli):
        (session,) = sessions(cli)
        assert session.read_bytes()[-1:] == b"\n"
        assert (session.with_suffix("") / "subagents/agent-1.jsonl").exists()
    store = registry.find(cli.home, str(cli.project))
    waiting = [one for one in savepoints.instances(store) if os.path.lexists(one.arrival)]
    if was_born and not waiting:  # it was done, and died at what a worker does as well
        assert len(sessions(cli)) == 1
        assert config.load(store).instance.startswith("gabriel-216-")
        return
    again = run(cli, 10**6, "resurrect", "--apply", "--json", "--instance", "Gabriel #215")
    assert again.returncode == 0, again.stderr
    back = json.loads(again.stdout)
    assert born(cli) == [back["instance"]] == ["Gabriel #216"]
    assert config.load(store).instance.startswith("gabriel-216-")
    assert [str(one) for one in sessions(cli)] == [back["session"]["file"]]
    assert (cli.project / "a.py").read_text() == "one\n"
    assert Path(back["folder"], "files/a.py").exists()
    assert not [one for one in savepoints.instances(store) if os.path.lexists(one.arrival)]
    assert cli.good("verify", "--instance", "Gabriel #215").code == 0
    assert cli("fsck").code == 0


def test_the_sample_reaches_the_end(cli: Scene) -> None:
    prepared(cli)
    done = run(cli, 10**6, "resurrect", "--apply", "--json")
    assert done.returncode == 0, done.stderr
    count = int(done.stderr.split()[-1])
    assert 40 < count < 120
