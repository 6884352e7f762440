"""A line of instances on the real validator, and a machine that is lost with it all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.conftest import fund
from tests.e2e.test_anchored import settle
from tests.fault.scene import settle as settle_workers
from tests.resurrect.talk import Talk

if TYPE_CHECKING:
    from tests.cli.scene import Scene

pytestmark = [pytest.mark.xdist_group("validator"), pytest.mark.timeout(400)]


def go_on(scene: Scene, back: dict[str, dict[str, str]]) -> None:
    """The session that came back says something, and is saved and anchored."""
    with Path(back["session"]["file"]).open("ab") as file:
        file.write(Talk(back["session"]["id"]).user("more").data)
    scene.created("--transcript", back["session"]["file"])
    settle(scene)


def test_four_instances_of_one_line(anchored: Scene) -> None:
    """#215 saves, #216 is born of it, #217 of #216, #218 of #215."""
    anchored.good("ledger", "deploy")
    anchored.write(Talk().say(2, "A").data)
    anchored.created()
    settle(anchored)
    for _ in range(2):
        go_on(anchored, anchored.good("resurrect", "--json").json)
    anchored.good("resurrect", "--instance", "Gabriel #215")
    settle(anchored)
    for name, length in (("Gabriel #217", 3), ("Gabriel #218", 2)):
        ran = anchored.good("verify", "--lineage", "--instance", name, "--json").json
        assert (ran["verdict"], len(ran["lineage"])) == ("VERIFIED", length)
        born = [one for one in ran["lineage"] if one["from"]]
        rules = [{find["rule"]: find["result"] for find in one["findings"]} for one in born]
        assert {one["LINEAGE-5"] for one in rules} == {"pass"}


def test_all_is_lost_but_the_remote_the_keys_and_the_ledger(
    anchored: Scene, tmp_path: Path
) -> None:
    anchored.good("ledger", "deploy")
    anchored.write(Talk().say(3, "T").data)
    said = anchored.transcript.read_bytes()
    anchored.created()
    settle(anchored)
    words, backup = tmp_path / "words", tmp_path / "keys.age"
    words.write_text("correct horse")
    words.chmod(0o600)
    key = ("--passphrase-file", str(words))
    anchored.good("keys", "backup", "-o", str(backup), *key)
    settle_workers(os.environ["SAVEPOINT_HOME"])
    for lost in (os.environ["SAVEPOINT_HOME"], os.environ["CLAUDE_CONFIG_DIR"], anchored.project):
        shutil.rmtree(lost)
    anchored.project.mkdir()

    remote = ("--remote", str(tmp_path / "remote.git"))
    back = anchored.good("bootstrap", *remote, "--keys", str(backup), *key, "--json").json
    assert Path(back["session"]["file"]).read_bytes() == said
    ran = anchored.good("verify", "--instance", "Gabriel #215", "--json").json
    (one,) = ran["savepoints"]
    assert {name: it["verdict"] for name, it in one["witnesses"].items()} == {
        "local": "VERIFIED",
        "git": "VERIFIED",
        "chain": "VERIFIED",
    }
    fund(anchored)
    settle(anchored)
    assert anchored.good("verify", "--lineage").code == 0
