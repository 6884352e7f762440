"""The whole path on the real validator: hook, save, push, anchor, verify, and what may go wrong."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from solders.pubkey import Pubkey

from anchor_service.ledgers import open_ledger
from anchor_service.program import instructions
from anchor_service.transaction import signed
from savepoint.core import entry, spelling
from savepoint.core.errors import RejectedError
from savepoint.store import index
from tests.cli.scene import SESSION
from tests.e2e.conftest import fund as fund_payer
from tests.ledger.entries import Author, fund
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from savepoint.core.ledger import Ledger
    from tests.cli.scene import Scene
    from tests.ledger.validator import Validator

pytestmark = [pytest.mark.xdist_group("validator"), pytest.mark.timeout(300)]

_HOOK = f"import sys; sys.path.insert(0, {str(PROJECT)!r}); from savepoint.hook import main; main()"
_PATIENCE = 120  # seconds: finality takes 3 at 8 ticks a slot on an idle machine


def fire(scene: Scene) -> None:
    """As the agent does before it compacts."""
    payload = {
        "session_id": SESSION,
        "transcript_path": str(scene.transcript),
        "cwd": str(scene.project),
        "hook_event_name": "PreCompact",
        "trigger": "manual",
    }
    ran = subprocess.run(
        [sys.executable, "-I", "-c", _HOOK, "PreCompact"],
        cwd=scene.project,
        input=json.dumps(payload).encode(),
        capture_output=True,
        check=True,
        timeout=180,
    )
    assert (ran.stdout, ran.stderr) == (b"", b"")


def settle(scene: Scene) -> None:
    """Push and anchor everything, as a person who waits for it; a worker may be at it as well."""
    end = time.monotonic() + _PATIENCE
    while (ran := scene("sync", "--wait", "--timeout", "60")).code != 0:
        assert ran.code in {3, 11, 31}, ran.err
        assert time.monotonic() < end, ran.err
        time.sleep(0.5)


def chain(report: dict[str, Any]) -> list[dict[str, Any]]:
    """What the ledger says of each savepoint."""
    return [one["witnesses"]["chain"] for one in report["savepoints"]]


def opened(validator: Validator) -> Ledger:
    return open_ledger(validator.url, store=None, program=None)


def landed(validator: Validator, account: str) -> set[str]:
    """The transactions that did something to the account, asked without any of our code. One that
    was killed lists what stood in a slot that it lost as well, and what landed again once more.
    """
    finalized = {"commitment": "finalized"}
    found = validator.ask("getSignaturesForAddress", account, finalized)
    return {
        one["signature"]
        for one in found
        if one["err"] is None and validator.ask("getBlocks", one["slot"], one["slot"], finalized)
    }


def read(validator: Validator, account: str) -> entry.Account:
    state = opened(validator).account(spelling.key_bytes(account), "finalized")
    assert state is not None
    return entry.parse(state.data)


def test_from_the_hook_to_three_witnesses(anchored: Scene, validator: Validator) -> None:
    program = anchored.good("ledger", "deploy", "--json").json["program"]
    anchored.say("hello", "world")
    fire(anchored)
    settle(anchored)
    said = anchored.good("ledger", "status", "--json").json["program"]
    assert (said["id"], said["shipped"]) == (program, True)

    ran = anchored.good("verify", "--all", "--json")
    (one,) = ran.json["savepoints"]
    witnesses = one["witnesses"]
    assert {name: it["verdict"] for name, it in witnesses.items()} == {
        "local": "VERIFIED",
        "git": "VERIFIED",
        "chain": "VERIFIED",
    }
    assert witnesses["chain"]["independent"] is False
    assert "no known public cluster" in anchored.good("verify").text

    account = witnesses["chain"]["account"]
    refused = _append_with_another_key(anchored, validator, account, program)
    assert refused.failure is not None
    assert instructions.ERRORS[refused.failure.code or 0][0] == "WrongAddress"
    assert read(validator, account).seq == 1


def _append_with_another_key(
    scene: Scene, validator: Validator, account: str, program: str
) -> RejectedError:
    """Somebody else's entry for our account, as well made as it can be."""
    ledger, stranger = opened(validator), Author()
    fund(ledger, stranger)
    before = read(validator, account)
    birth = index.birth(scene.paths)
    assert birth is not None
    body = instructions.Body(
        entry.SAVEPOINT,
        before.claim.client_time,
        hashlib.sha256(birth.instance.encode()).digest(),
        bytes(32),
        b"c" * 40,
        os.urandom(64),
        entry.Metadata(before.hash, "ab" * 32, 3).to_bytes(),
    )
    forged = instructions.append(
        Pubkey.from_string(program),
        Pubkey(stranger.wallet.public),
        Pubkey.from_string(account),
        before.seq,
        bytes.fromhex(before.hash),
        body,
    )
    blockhash = ledger.blockhash()
    made, _ = signed([forged], stranger.wallet, [], blockhash.hash, units=25_000)
    with pytest.raises(RejectedError) as refused:
        ledger.send(made, blockhash)
    return refused.value


def test_the_validator_dies_in_the_middle_of_ten_saves(
    anchored: Scene, validator: Validator
) -> None:
    """All ten are covered, none is there twice, and what comes after is anchored as well."""
    anchored.good("ledger", "deploy")
    try:
        for number in range(10):
            if number == 3:
                validator.kill()
            if number == 6:
                validator.start()
            anchored.say(f"message {number}")
            made = anchored("create", "--json")
            assert made.code == 0, made.err
    finally:
        validator.kill()
        validator.start()
    settle(anchored)
    report = anchored.good("verify", "--all", "--json").json
    assert len(report["savepoints"]) == 10
    assert {one["verdict"] for one in chain(report)} == {"VERIFIED"}
    account = chain(report)[-1]["account"]
    entries = landed(validator, account)
    assert read(validator, account).seq == len(entries) <= 10
    assert anchored.good("fsck").code == 0


def test_a_ledger_that_begins_anew_is_anchored_on_again(
    anchored: Scene, validator: Validator
) -> None:
    anchored.good("ledger", "deploy")
    anchored.say("before")
    anchored.created()
    settle(anchored)
    validator.kill()
    validator.start(reset=True)
    fund_payer(anchored)
    anchored.good("ledger", "deploy")
    anchored.say("after")
    anchored.created()
    settle(anchored)
    report = anchored.good("verify", "--all", "--json").json
    assert [one["verdict"] for one in chain(report)] == ["VERIFIED", "VERIFIED"]
    assert read(validator, chain(report)[-1]["account"]).seq == 1
