"""`verify --lineage` walks a line back; whatever is forged in it is refused. The tree is drawn."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import bootstrap_document, keys, spelling
from savepoint.core.bootstrap_document import Holder
from savepoint.core.errors import TamperedError
from savepoint.resurrect import lineage
from savepoint.store import config, durable, index, registry, savepoints
from savepoint.store.keys import keyring
from tests.fault.scene import remove
from tests.resurrect.talk import Talk

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.bootstrap_document import Bootstrap
    from savepoint.store.layout import InstancePaths
    from tests.cli.scene import Scene


@pytest.fixture
def dynasty(cli: Scene) -> Scene:
    """#215 saves, #216 is born of it, #217 of #216, #218 of #215: a sibling of #216."""
    cli.transcript.unlink()
    cli.write(Talk().say(2, "A").data)
    cli.created()
    for _ in range(2):
        back = cli.good("resurrect", "--json").json
        with Path(back["session"]["file"]).open("ab") as file:
            file.write(Talk(back["session"]["id"]).user("more").data)
        cli.created("--transcript", back["session"]["file"])
    cli.good("resurrect", "--instance", "Gabriel #215")
    return cli


def of(scene: Scene, name: str) -> InstancePaths:
    return savepoints.instance_named(registry.find(scene.home, str(scene.project)), name)


def verdict(scene: Scene, name: str) -> tuple[int, list[str]]:
    ran = scene("verify", "--lineage", "--instance", name, "--json")
    found = [finding for one in ran.json["lineage"] for finding in one["findings"]]
    faults = [one for one in found if one["result"] != "pass"]
    return ran.code, [one["rule"] for one in faults if "does not count" not in one["detail"]]


def test_the_line_is_walked_to_its_first(dynasty: Scene) -> None:
    ran = dynasty.good("verify", "--lineage", "--instance", "Gabriel #217", "--json").json
    assert [one["instance"] for one in ran["lineage"]] == [
        "Gabriel #217",
        "Gabriel #216",
        "Gabriel #215",
    ]
    assert [one["from"] and one["from"]["instance"] for one in ran["lineage"]] == [
        "Gabriel #216",
        "Gabriel #215",
        None,
    ]
    assert ran["verdict"] == "VERIFIED"
    shown = dynasty.good("verify", "--lineage").text
    assert "modulo zero holds: Gabriel #215 → Gabriel #218" in shown
    assert "VERIFIED: 2 instances of one line" in shown


def test_the_tree_of_all_instances_is_drawn(dynasty: Scene) -> None:
    drawn = dynasty.good("list", "--graph").text.splitlines()
    told = [line.partition(" (key")[0] for line in drawn]
    assert told == [
        "●    Gabriel #215",
        "├─╮",
        "│ ●  Gabriel #216",
        "│ ●  Gabriel #217",
        "●    Gabriel #218",
    ]
    assert "restore" in drawn[-1]  # it has no savepoint of its own yet


def test_the_graph_of_one_instance_is_its_own(dynasty: Scene) -> None:
    drawn = dynasty.good("list", "--graph", "--instance", "Gabriel #215").text.splitlines()
    assert len(drawn) == 1


def resigned(scene: Scene, name: str, change: Callable[[Bootstrap], Bootstrap]) -> None:
    """The document of an instance, changed, and signed anew by the predecessor's own key."""
    paths = of(scene, name)
    before = bootstrap_document.parse(Path(paths.bootstrap).read_bytes())
    after = change(before)
    parent = of(scene, before.predecessor.instance)
    origin = savepoints.records(parent).saves[-1]
    made = bootstrap_document.make(
        keyring.authority(parent),
        after.timestamp,
        origin,
        after.savepoint.commit,
        after.successor,
        after.nonce,
        after.between,
    )
    durable.replace(paths.bootstrap, made.data)


def test_lineage_1_a_skipped_number_that_nobody_holds(dynasty: Scene) -> None:
    resigned(dynasty, "Gabriel #218", lambda one: one._replace(between=one.between[:1]))
    assert verdict(dynasty, "Gabriel #218") == (20, ["LINEAGE-1"])
    ran = dynasty.created()
    assert ran["instance"] == "Gabriel #218"
    shown = dynasty.good("show", "--json").json
    assert shown["checkpoint_verification"]["modulo_zero"] is False


def test_lineage_1_another_key(dynasty: Scene) -> None:
    other = Holder("Gabriel #218", keys.public_key(bytes(range(32))))
    resigned(dynasty, "Gabriel #218", lambda one: one._replace(successor=other))
    assert verdict(dynasty, "Gabriel #218") == (20, ["LINEAGE-1"])


@pytest.mark.parametrize(
    "forge",
    [
        lambda text: text.replace("Gabriel #215", "Gabriel #214", 1),
        lambda text: text.replace('"seq":2', '"seq":3', 1),
        lambda text: text[:-8] + ("0" if text[-8] != "0" else "1") + text[-7:],
        lambda text: text.replace('"v":1', '"v": 1'),
        lambda _: "",
        lambda _: "{}\n",
    ],
    ids=["predecessor", "savepoint", "signature", "spelling", "empty", "no-document"],
)
def test_lineage_1_a_forged_document(dynasty: Scene, forge: Callable[[str], str]) -> None:
    path = Path(of(dynasty, "Gabriel #218").bootstrap)
    path.write_text(forge(path.read_text()))
    code, rules = verdict(dynasty, "Gabriel #218")
    assert (code, rules[:1]) == (20, ["LINEAGE-1"])
    refused = dynasty("resurrect", "--instance", "Gabriel #218")
    assert refused.code in (1, 20)


def test_lineage_1_a_forged_predecessor_is_not_resurrected_from(dynasty: Scene) -> None:
    """Step 1 refuses, and nothing is born."""
    path = Path(of(dynasty, "Gabriel #216").bootstrap)
    path.write_text(path.read_text().replace("Gabriel #215", "Gabriel #214", 1))
    before = sorted(os.listdir(registry.find(dynasty.home, str(dynasty.project)).instances))
    ran = dynasty("resurrect", "--instance", "Gabriel #216")
    assert ran.code == 20
    assert "step 1, Bootstrap" in ran.err or "step 3" in ran.err
    after = sorted(os.listdir(registry.find(dynasty.home, str(dynasty.project)).instances))
    assert after == before


def test_lineage_2_the_predecessor_is_not_here(dynasty: Scene) -> None:
    remove(of(dynasty, "Gabriel #215").path)
    assert verdict(dynasty, "Gabriel #216") == (21, ["LINEAGE-2"])


def test_lineage_2_the_savepoint_was_never_made(dynasty: Scene) -> None:
    parent = of(dynasty, "Gabriel #215")
    lines = Path(parent.index_file).read_bytes().splitlines(keepends=True)
    Path(parent.index_file).write_bytes(lines[0])
    code, rules = verdict(dynasty, "Gabriel #216")
    assert code == 20
    assert "LINEAGE-2" in rules


def test_lineage_3_the_restore_record_names_another_savepoint(dynasty: Scene) -> None:
    """The document of #218 beside #216's index would name its key: so the index is #216's own."""
    parent, paths = of(dynasty, "Gabriel #215"), of(dynasty, "Gabriel #218")
    dynasty.created("--transcript", str(dynasty.transcript))
    made = savepoints.records(parent).saves
    assert len(made) == 2
    resigned(dynasty, "Gabriel #218", lambda one: one)
    assert verdict(dynasty, "Gabriel #218")[0] == 20
    assert "LINEAGE-3" in verdict(dynasty, "Gabriel #218")[1]
    assert index.birth(paths) is not None


def test_lineage_4_the_first_commit_has_another_document(dynasty: Scene) -> None:
    path = Path(of(dynasty, "Gabriel #218").bootstrap)
    value = json.loads(path.read_text())
    paths = of(dynasty, "Gabriel #215")
    document = bootstrap_document.parse(path.read_bytes())
    made = bootstrap_document.make(
        keyring.authority(paths),
        document.timestamp + 1,
        savepoints.records(paths).saves[-1],
        document.savepoint.commit,
        document.successor,
        document.nonce,
        document.between,
    )
    path.write_bytes(made.data)
    assert verdict(dynasty, "Gabriel #218") == (20, ["LINEAGE-4"])
    assert value["timestamp"] != spelling.time_text(document.timestamp + 1)


def test_lineage_4_the_birth_is_not_committed_yet(dynasty: Scene) -> None:
    store = registry.find(dynasty.home, str(dynasty.project))
    remove(store.repository)
    assert verdict(dynasty, "Gabriel #218") == (3, ["LINEAGE-4"])


def test_earlier_history_is_kept_as_a_text(bare: Scene) -> None:
    """Unverified: what came before there were keys."""
    bare.good("init", "--instance", "Gabriel #215", "--lineage", "Gabriel #1 … #214")
    bare.say("hello")
    bare.created()
    state = bare.good("show", "--only", "state").json
    assert state["lineage"] == "Gabriel #1 … #214 → Gabriel #215"
    bare.good("resurrect")
    told = Path(of(bare, "Gabriel #216").lineage).read_text(encoding="utf-8")
    assert told == "Gabriel #1 … #214 → Gabriel #215 → Gabriel #216\n"
    bare.good("init", "--instance", "Gabriel #215", "--lineage", "Gabriel #1 … #214")
    refused = bare("init", "--lineage", "another")
    assert (refused.code, "exists and differs" in refused.err) == (1, True)


def test_lineage_5_the_successor_is_anchored_and_names_its_predecessor(cli: Scene) -> None:
    store = registry.find(cli.home, str(cli.project))
    config.load(store)._replace(ledger="embedded").save(store)
    cli.created()
    cli.good("sync", "--wait", "--timeout", "50")
    cli.good("resurrect")
    cli.good("sync", "--wait", "--timeout", "50")
    shown = cli.good("verify", "--lineage").text
    assert "LINEAGE-5 pass: the SUCCESSOR entry names this document and the predecessor" in shown
    session = cli.say("and on", session="99999999-2222-4333-8444-555555555555")
    cli.created("--transcript", str(session))
    cli.good("sync", "--wait", "--timeout", "50")
    assert cli.good("verify").code == 0
    again = cli.good("verify", "--lineage").text
    assert "LINEAGE-5 pass: entry 2 goes on from the SUCCESSOR entry" in again
    Path(store.ledger_db).unlink()
    assert cli("verify", "--lineage").code == 0  # a ledger that is gone does not count


def test_lineage_5_a_birth_that_is_not_anchored_yet_is_pending(cli: Scene) -> None:
    store = registry.find(cli.home, str(cli.project))
    config.load(store)._replace(ledger="embedded").save(store)
    cli.created()
    cli.good("sync", "--wait", "--timeout", "50")
    config.load(store)._replace(ledger=None).save(store)
    cli.good("resurrect")
    config.load(store)._replace(ledger="embedded").save(store)
    assert verdict(cli, "Gabriel #216") == (3, ["LINEAGE-5"])


def test_lineage_1_a_first_instance_is_verified(bare: Scene) -> None:
    bare.good("init", "--instance", "Gabriel #215")
    ran = bare.good("verify", "--lineage")
    assert "LINEAGE-1 pass: it is the first of its line" in ran.text
    assert ran.text.endswith("VERIFIED: 1 instance of one line\n")


def test_lineage_1_a_successor_without_its_document_is_not_the_first(dynasty: Scene) -> None:
    paths = of(dynasty, "Gabriel #217")
    held = Path(paths.bootstrap).read_bytes()
    Path(paths.bootstrap).unlink()
    assert verdict(dynasty, "Gabriel #217") == (20, ["LINEAGE-1"])
    found = dynasty("fsck")
    assert found.code == 20
    assert f"instances/{paths.slug}/BOOTSTRAP_VERIFICATION.json is missing" in found.text
    assert dynasty("resurrect", "--instance", "Gabriel #217").code == 20
    with pytest.raises(TamperedError, match="comes from another"):
        lineage.check_own(paths)
    store = registry.find(dynasty.home, str(dynasty.project))
    config.load(store)._replace(instance=paths.slug).save(store)
    session = dynasty.say("on", session="99999999-2222-4333-8444-555555555555")
    dynasty.created("--transcript", str(session))
    newest = savepoints.open_snapshot(paths, savepoints.records(paths).saves[-1])
    checked = newest.document["checkpoint_verification"]
    assert isinstance(checked, dict)
    assert checked["modulo_zero"] is False
    repaired = dynasty.good("fsck", "--repair")
    assert "BOOTSTRAP_VERIFICATION.json came back from git" in repaired.text
    assert Path(paths.bootstrap).read_bytes() == held
    assert verdict(dynasty, "Gabriel #217") == (0, [])
    assert dynasty.good("verify", "--all").code == 0


def test_lineage_1_a_damaged_document_is_brought_back(dynasty: Scene) -> None:
    paths = of(dynasty, "Gabriel #217")
    held = Path(paths.bootstrap).read_bytes()
    Path(paths.bootstrap).write_bytes(held[:-40])
    assert verdict(dynasty, "Gabriel #217") == (20, ["LINEAGE-1"])
    dynasty.good("fsck", "--repair")
    assert Path(paths.bootstrap).read_bytes() == held


def test_lineage_5_a_ledger_that_does_not_count_is_named(dynasty: Scene) -> None:
    shown = dynasty.good("verify", "--lineage", "--instance", "Gabriel #216").text
    assert "LINEAGE-5 skipped: it does not count: no ledger is configured" in shown
    store = registry.find(dynasty.home, str(dynasty.project))
    config.load(store)._replace(ledger="embedded").save(store)
    shown = dynasty.good("verify", "--lineage", "--instance", "Gabriel #216").text
    assert "LINEAGE-5 skipped: it does not count: the embedded ledger is not on this" in shown
