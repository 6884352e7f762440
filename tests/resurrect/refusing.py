"""A saved session, and a resurrection that must be refused and leave every byte as it was."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.store import registry, savepoints
from tests.resurrect import forge
from tests.resurrect.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.store.layout import InstancePaths
    from tests.cli.scene import Ran, Scene


@pytest.fixture
def saved(cli: Scene) -> Scene:
    """Two savepoints of a session with a loaded file."""
    (cli.project / "a.py").write_text("one\n")
    cli.transcript.unlink()
    cli.write(Talk().say(1, "T").data)
    cli.read_file("a.py")
    cli.created()
    cli.say("more")
    cli.created()
    return cli


EVIL = os.path.join(tempfile.gettempdir(), "evil")  # where a name leads that is followed


def paths_of(scene: Scene) -> InstancePaths:
    store = registry.find(scene.home, str(scene.project))
    return savepoints.instance_named(store, "Gabriel #215")


def snapshot_of(paths: InstancePaths) -> Path:
    return Path(paths.path, savepoints.records(paths).saves[-1].snapshot_file)


def everything(scene: Scene) -> dict[str, str]:
    """Path → SHA-256 of all that a resurrection could touch, but locks and git's own."""
    tops = [scene.home.path, os.environ["CLAUDE_CONFIG_DIR"], str(scene.project)]
    files = [path for top in tops for path in Path(top).rglob("*") if path.is_file()]
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
        if not path.name.endswith(".lock") and "repo.git" not in path.parts
    }


def refused(scene: Scene, *arguments: str) -> Ran:
    """Resurrect: it must be refused, and nothing be changed or left anywhere."""
    before = everything(scene)
    ran = scene("resurrect", *arguments)
    assert ran.code != 0
    assert everything(scene) == before
    assert [path for path in Path(scene.home.path).rglob("*.tmp-*") if path.is_dir()] == []
    return ran


def loaded(name: str) -> Callable[[InstancePaths], None]:
    def make(paths: InstancePaths) -> None:
        entry = forge.loaded_of(forge.store_bytes(paths, b"evil\n"))
        forge.savepoint(paths, lambda document: document["loaded_files"].update({name: entry}))

    return make
