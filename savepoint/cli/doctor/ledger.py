"""What `doctor` checks of the ledger: who pays, how much there is, the program, the last entry."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from savepoint.cli import place, terminal
from savepoint.cli.doctor.checks import Check, fail, good, tried, warn
from savepoint.cli.ledger import config
from savepoint.core.errors import SavepointError
from savepoint.store import index, outbox_file
from savepoint.store.config import EMBEDDED

if TYPE_CHECKING:
    from savepoint.cli.ledger.ledger import Asked

_DEPLOY = "`savepoint ledger deploy`, or `savepoint config program ID` names one that is there"
_ASIDE = "keep it elsewhere; where there is a cap, nothing is spent within a day while it is here"
_REPAIR = "run `savepoint fsck --repair`"
_ENTRIES = 10  # warned of when the payer has less than so many entries cost


def run(at: place.Place) -> list[Check]:
    """All of them, for a folder that has a store. Asks the ledger, with a deadline."""
    aside = _set_aside(at)
    if at.config.ledger is None:
        return [good("ledger", "off: savepoints are not anchored"), *aside]
    from savepoint.cli.ledger.ledger import Asked

    found = [tried("anchor", lambda: _last(at)), *aside]
    try:
        asked = Asked.of(at)
        name = config.name_of(at.config.ledger)
        genesis = asked.ledger.genesis()
    except SavepointError as failure:
        return [warn("ledger", failure.message, failure.hint), *found]
    note = ", no independent witness" if at.config.ledger == EMBEDDED else ""
    return [
        good("ledger", f"{name} answers{note}; genesis {genesis.hex()[:8]}"),
        tried("program", lambda: _program(asked)),
        tried("payer", lambda: _payer(asked)),
        *found,
    ]


def _set_aside(at: place.Place) -> list[Check]:
    """What was signed and paid stands in the outbox, also in one that was torn."""
    return [
        warn("outbox", f"{path} was torn, and set aside: it tells what was sent and paid", _ASIDE)
        for path, _ in outbox_file.set_aside(at.store)
    ]


def _last(at: place.Place) -> Check:
    """How old is the newest entry, and what waits for one?"""
    from anchor_service import queue

    rows = queue.rows(at.store, at.paths.slug)
    choice = at.config.ledger or ""
    last = queue.newest_verified(rows, choice, at.config.program)
    under_way = queue.open_row(rows, choice, at.config.program)
    if under_way is not None and under_way.state == queue.CONFLICT:
        from savepoint.core.errors import ConflictError

        return fail("anchor", under_way.error, ConflictError.default_hint)
    if last is None:
        return good("anchor", "no entry yet")
    age = terminal.span(max(0, int(time.time()) - last.changed))
    told = f"entry {last.entry_seq} names record {last.record_seq}, {age} ago"
    if last.record not in index.hashes(at.paths):
        return fail("anchor", f"{told}; the index has not that record", _REPAIR)
    return good("anchor", told)


def _program(asked: Asked) -> Check:
    """It is ours, byte for byte; who may change it is said."""
    found = asked.program_state()
    if found["problem"]:
        return fail("program", f"{found['id'] or 'none'}: {found['problem']}", _DEPLOY)
    who = found["upgrade_authority"]
    told = f"{who} may change it" if who else "nobody can change it"
    return good("program", f"{found['id']}, as it ships; {told}")


def _payer(asked: Asked) -> Check:
    """The keypair file may be used, and there is enough to go on for a while."""
    funds = asked.funds(asked.account()[1])
    path, lamports = str(funds["payer_file"]), int(str(funds["balance"]))
    told = f"{funds['payer']} ({os.path.basename(path)}) has {lamports} lamports"
    if lamports < _ENTRIES * int(str(funds["next_entry"])):
        todo = f"send some to {funds['payer']}; `savepoint ledger airdrop` where it is a test"
        return warn("payer", f"{told}; the next entry costs {funds['next_entry']}", todo)
    return good("payer", told)
