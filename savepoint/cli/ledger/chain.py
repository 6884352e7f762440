"""The chain witness of a command: which ledger is asked, and when none is."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

from savepoint.cli import terminal
from savepoint.cli.ledger import config as ledger_config
from savepoint.core import limits, spelling
from savepoint.core.errors import MalformedError, SavepointError, UsageError
from savepoint.core.verdicts import Verdict
from savepoint.store import config as stored
from savepoint.store import trusted
from savepoint.store.config import EMBEDDED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from savepoint.core.ledger import Ledger
    from savepoint.core.verdicts import Report
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.config import Config
    from savepoint.store.fsck.items import Item
    from savepoint.store.layout import InstancePaths, Store

_AWAY = "the embedded ledger stays on its machine, which is not this one"
_ONLINE = "verify again without --offline"
NO_PROGRAM = "name its id with --program, or run `savepoint ledger deploy`"


class Wanted(NamedTuple):
    """Where to look, as the command line says it; empty: as the config says it."""

    ledger: str = ""
    program: str = ""
    account: str = ""
    offline: bool = False


def verify(
    config: Config, repo: Repository, paths: InstancePaths, report: Report, wanted: Wanted
) -> Report:
    """`report` with what the ledger says. Raises UsageError, DiskError."""
    from anchor_service import witness

    choice = wanted.ledger or config.ledger
    known = program_of(config, choice)
    program = key("--program", wanted.program) or known
    account = key("--account", wanted.account)
    if choice is None:
        return witness.off(report, None, "not configured")
    if choice == EMBEDDED and not os.path.exists(paths.store.ledger_db):
        return _without_ledger(report, paths)
    if wanted.offline and choice != EMBEDDED:
        shown = ledger_config.name_of(choice) or ""
        reason = f"{shown} was not asked: {witness.last_contact(paths, choice)}"
        return witness.skipped(report, shown, reason, _ONLINE)
    ledger = opened(choice, paths.store, program)
    if program is None:
        reason = f"no id of a program at {ledger.name} is known"
        return witness.skipped(report, ledger.name, reason, NO_PROGRAM)
    sought = witness.Sought(program, account, knows=program == known)
    with terminal.busy(f"asking {ledger.name}"):
        return witness.verify(ledger, sought, repo, paths, report)


def fsck(repo: Repository, store: Store, instances: Iterable[str]) -> tuple[Item, ...]:
    """What the embedded ledger says of all savepoints; no other is asked by who checks a disk.

    Raises DiskError.
    """
    try:
        chosen = stored.load(store)
    except SavepointError:  # fsck tells of a damaged config by itself
        return ()
    if chosen.ledger != EMBEDDED or not os.path.exists(store.ledger_db):
        return ()
    from anchor_service import findings

    program = program_of(chosen, EMBEDDED)
    assert program is not None  # noqa: S101  # embedded has one; for the type checker
    ledger = opened(EMBEDDED, store, program)
    return findings.find(ledger, program, repo, store, instances)


def program_of(config: Config, choice: str | None) -> bytes | None:
    """The id of the program at that ledger, as the config tells it: its own is of one cluster, but
    another endpoint may be asked of the same one.
    """
    is_embedded = choice == EMBEDDED
    if config.program is not None and is_embedded == (config.ledger == EMBEDDED):
        return key("program", config.program)
    if not is_embedded:
        return None
    from anchor_service.ledgers.embedded import PROGRAM

    return PROGRAM


def opened(choice: str, store: Store | None, program: bytes | None) -> Ledger:
    """The ledger of that name, with a deadline for all that a command asks it."""
    from anchor_service.ledgers import open_ledger

    deadline = time.monotonic() + limits.LEDGER_VERIFY_SECONDS
    return open_ledger(choice, store=store, program=program, deadline=deadline)


def key(option: str, text: str) -> bytes | None:
    """The 32 bytes that an option names in base58, if it does. Raises UsageError."""
    try:
        return spelling.key_bytes(text) if text else None
    except MalformedError:
        raise UsageError(
            f"{option} {text} is no key", hint="write its 32 bytes in base58"
        ) from None


def tell(report: Report, remote: str | None) -> None:
    """What the chain's word is worth, and what was not asked at all, for people."""
    found = [one.witnesses["chain"] for one in report.savepoints]
    if not found or found[0].off:
        reason = found[0].off if found else "not asked"
        alone = "git has no remote, and chain is OFF: only this disk was asked"
        terminal.say(f"chain is OFF: {reason}" if remote else alone)
        return
    if remote is None:
        terminal.say("git has no remote")
    worth = next((one for one in found[0].findings if one.rule == "VERIFY-28"), None)
    if worth is not None and any(one.verdict is Verdict.VERIFIED for one in found):
        terminal.say(f"chain is {worth.detail}")


def _without_ledger(report: Report, paths: InstancePaths) -> Report:
    """The embedded ledger is not here: why, and whether it should be."""
    from anchor_service import witness

    try:
        reason = _missing(paths)
    except SavepointError as failure:
        return witness.skipped(report, EMBEDDED, failure.message, failure.hint)
    if reason == _AWAY:
        return witness.off(report, EMBEDDED, reason)
    return witness.waiting(report, EMBEDDED, reason)


def _missing(paths: InstancePaths) -> str:
    """Why there is no embedded ledger here."""
    from anchor_service import witness

    if witness.was_anchored(paths, EMBEDDED):
        return "ledger.db is gone: to be anchored again"
    head = trusted.load(paths)  # none: a repository alone
    return _AWAY if head is None or head.ledgers else "nothing is anchored yet"
