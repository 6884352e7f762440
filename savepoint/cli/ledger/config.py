"""The keys of `savepoint config` that are about the ledger: what is a good value, and what the
owner must have agreed to.
"""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import typer

from savepoint.cli import terminal
from savepoint.cli.ledger import anchoring
from savepoint.core import limits, spelling
from savepoint.core.errors import KeyFileError, MalformedError, SavepointError, UsageError
from savepoint.store import savepoints, trusted
from savepoint.store.config import EMBEDDED, MAINNET
from savepoint.work.jobs import Job
from savepoint.work.outbox import Outbox

if TYPE_CHECKING:
    from savepoint.cli.place import Place
    from savepoint.core.ledger import Ledger
    from savepoint.core.strict_json import Json
    from savepoint.store.config import Config

KEYS = ("ledger", "program", "payer", "spend")

_CAP = "`savepoint config spend LAMPORTS` sets how much may be spent in 24 hours"


def agreed(at: Place, key: str, values: list[str], *, yes: bool) -> str | None:
    """The genesis hash (base58) of the mainnet, if that is what was chosen, and the owner agrees to
    what it costs; None for another choice. A prompt waits for a person, so no lock is held here.

    Raises UsageError (not agreed), SavepointError (the mainnet must be asked what an entry costs).
    """
    if key != "ledger" or len(values) != 1 or not _is_mainnet(at, choice_of(values[0])):
        return None
    if at.config.spend is None:
        raise UsageError(f"{MAINNET} costs real money, and there is no cap yet", hint=_CAP)
    ledger = _opened(at, values[0])
    genesis = spelling.base58(ledger.genesis())
    if at.config.confirmed != genesis:
        terminal.note(_cost(ledger, at.config.spend))
        if not yes and not _asked():
            hint = "say --yes, or answer on a terminal"
            raise UsageError(f"{MAINNET} was not confirmed", hint=hint)
    return genesis


def changed(at: Place, before: Config, key: str, value: str, agreed_to: str | None) -> Config:
    """The config with another ledger, program, payer or cap. agreed_to: what `agreed` gave.

    Raises UsageError, KeyFileError (a payer that may not be used).
    """
    if key == "program":
        return before._replace(program=_program(value))
    if key == "payer":
        return before._replace(payer=_payer(at, value))
    if key == "spend":
        return before._replace(spend=_lamports(value))
    after = before._replace(ledger=choice_of(value), confirmed=agreed_to or before.confirmed)
    # The id of a program is of one cluster, which an endpoint that stays still leads to.
    stays = set((before.ledger or "").split()) & set((after.ledger or "").split())
    return after if stays else after._replace(program=None)


def leave(at: Place, after: Config) -> None:
    """Before another ledger or program is used. The caller holds the store lock. What the old one
    refused is not the new one's; an account of another program begins at 1. Raises DiskError.
    """
    from anchor_service import queue

    with Outbox(at.store) as box:
        for paths in savepoints.instances(at.store):
            box.done(Job(anchoring.NAME, paths.slug, None, 0))
            head = trusted.load(paths)
            others = {
                (one.genesis, one.entry)
                for one in queue.rows(at.store, paths.slug)
                if after.program not in (None, one.program)
            }
            for genesis, entry in others if head else ():
                if head and head.ledgers.get(genesis, {}).get("entry") == entry:  # type: ignore[union-attr]  # its shape
                    head = head.without_ledger(genesis)
                    trusted.save(paths, head)


def without(before: Config, key: str) -> Config:
    """The config with the default of a key; without a ledger nothing is anchored.

    Raises UsageError: what is spent on the mainnet has a cap.
    """
    if key == "spend" and before.confirmed is not None:
        raise UsageError(f"what is spent on {MAINNET} has a cap", hint=_CAP)
    return before._replace(**{key: None})  # type: ignore[arg-type]  # each of KEYS may be None


def shown(chosen: Config) -> dict[str, Json]:
    """For `config`: of a URL only what is no token."""
    return {
        "ledger": name_of(chosen.ledger),
        "program": chosen.program,
        "payer": chosen.payer,
        "spend": chosen.spend,
    }


def name_of(choice: str | None) -> str | None:
    """A chosen ledger as it may be shown: providers put tokens into paths and queries."""
    if choice is None or choice == EMBEDDED:
        return choice
    from anchor_service.ledgers import clusters

    return clusters.cluster(choice).name


def choice_of(text: str) -> str:
    """Raises UsageError."""
    if text != EMBEDDED:
        from anchor_service.ledgers import clusters

        clusters.cluster(text)
    return text


def _program(text: str) -> str:
    try:
        spelling.key_bytes(text)
    except MalformedError:
        raise UsageError(
            f"{text!r} is no id of a program", hint="32 bytes in base58, as `deploy` prints it"
        ) from None
    return text


def _payer(at: Place, text: str) -> str:
    """The path of a keypair file that may be used. Raises UsageError, KeyFileError."""
    from anchor_service import wallet

    path = os.path.abspath(os.path.join(at.folder, os.path.expanduser(text)))
    if not os.path.lexists(path):  # a slip of the hand rather than a key that was lost
        raise KeyFileError(f"{path} is missing", hint="name a Solana keypair file that is there")
    wallet.load(path)
    return path


def _lamports(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError("spend is a number of lamports", hint="10^9 lamports are 1 SOL")
    return int(text)


def _is_mainnet(at: Place, choice: str) -> bool:
    """By what it is, where it answers: a URL can lead there too. One that is silent is asked again
    before anything is sent (anchor_service/beginning.py).
    """
    if "://" not in choice:
        return choice == MAINNET
    from anchor_service.ledgers.clusters import PUBLIC

    try:
        return PUBLIC.get(_opened(at, choice).genesis()) == MAINNET
    except SavepointError as failure:
        terminal.note(f"the ledger does not answer yet: {failure.message}")
        return False


def _opened(at: Place, choice: str) -> Ledger:
    from anchor_service import ledgers

    deadline = time.monotonic() + limits.LEDGER_CALL_SECONDS
    return ledgers.open_ledger(choice, store=at.store, program=None, deadline=deadline)


def _cost(ledger: Ledger, cap: int) -> str:
    """What an entry costs there, and what may be spent at most."""
    from anchor_service import costs

    try:
        first, next_one = (
            costs.of_entry(ledger, is_first=True),
            costs.of_entry(ledger, is_first=False),
        )
    except SavepointError as failure:
        return f"what an entry costs cannot be asked now ({failure.message}); the cap is {cap}"
    return (
        f"the first entry of an instance costs {first} lamports, each further one {next_one}; at "
        f"most {cap} lamports are spent in 24 hours"
    )


def _asked() -> bool:
    if not (sys.stdin and sys.stdin.isatty()):
        return False
    return typer.confirm(f"Anchor savepoints on {MAINNET}?", err=True)
