"""The keys of `savepoint config` that are about the ledger: what is a good value, and what the
owner must have agreed to.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

import typer

from savepoint.cli import terminal
from savepoint.core import limits, spelling
from savepoint.core.errors import MalformedError, SavepointError, UsageError
from savepoint.store.config import EMBEDDED

if TYPE_CHECKING:
    from savepoint.cli.place import Place
    from savepoint.core.ledger import Ledger
    from savepoint.core.strict_json import Json
    from savepoint.store.config import Config

KEYS = ("ledger", "program", "payer", "spend")
MAINNET = "mainnet-beta"
NAMES = (EMBEDDED, "localnet", "devnet", "testnet", MAINNET)

_KINDS = f"a ledger is {', '.join(NAMES)}, or a URL that starts with http:// or https://"
_URL = re.compile(r"https?://(?:[^/@\s]*@)?[^/@\s?#]+(?:[/?#]\S*)?")
_SECRETS = re.compile(r"(?<=://)[^/@\s]*@|[?#]\S*")
_CAP = "`savepoint config spend LAMPORTS` sets how much may be spent in 24 hours"


def changed(at: Place, before: Config, key: str, value: str, *, agreed: bool) -> Config:
    """The config with another ledger, program, payer or cap. agreed: the owner said so beforehand
    where real money is spent. Raises UsageError, SavepointError (a ledger that must be asked).
    """
    if key == "program":
        return before._replace(program=_program(value))
    if key == "payer":
        return before._replace(payer=_payer(at, value))
    if key == "spend":
        return before._replace(spend=_lamports(value))
    after = before._replace(ledger=_ledger(value))
    if after.ledger != before.ledger:  # a program's id is of one cluster
        after = after._replace(program=None)
    return _confirmed(at, after, agreed=agreed) if after.ledger == MAINNET else after


def without(before: Config, key: str) -> Config:
    """The config with the default of a key; without a ledger nothing is anchored.

    Raises UsageError: what is spent on the mainnet has a cap.
    """
    if key == "spend" and before.ledger == MAINNET:
        raise UsageError(f"what is spent on {MAINNET} has a cap", hint=_CAP)
    return before._replace(**{key: None})  # type: ignore[arg-type]  # each of KEYS may be None


def shown(chosen: Config) -> dict[str, Json]:
    """For `config` and `status`: without what may be a token in a URL."""
    return {
        "ledger": chosen.ledger and without_secrets(chosen.ledger),
        "program": chosen.program,
        "payer": chosen.payer,
        "spend": chosen.spend,
    }


def without_secrets(ledger: str) -> str:
    """URLs without user, password, query and fragment: providers put tokens there."""
    return _SECRETS.sub("", ledger)


def _ledger(text: str) -> str:
    parts = text.split(" ")
    if text in NAMES:
        return text
    if len(text) > limits.REMOTE_URL_CHARS or not text.isprintable():
        raise UsageError("the ledger is too long, or has a control character", hint=_KINDS)
    if not all(_URL.fullmatch(one) for one in parts):
        raise UsageError("that is no ledger", hint=_KINDS)  # not repeated: it may hold a token
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
    wallet.load(path)
    return path


def _lamports(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UsageError("spend is a number of lamports", hint="10^9 lamports are 1 SOL")
    return int(text)


def _confirmed(at: Place, after: Config, *, agreed: bool) -> Config:
    """With the owner's word for the mainnet, given once, after the cost was shown."""
    from anchor_service import ledgers

    if after.spend is None:
        raise UsageError(f"{MAINNET} costs real money, and there is no cap yet", hint=_CAP)
    ledger = ledgers.open_ledger(MAINNET, store=at.store, program=None)
    genesis = spelling.base58(ledger.genesis())
    if after.confirmed == genesis:
        return after
    terminal.note(_cost(ledger, after.spend))
    if not agreed and not _asked():
        raise UsageError(f"{MAINNET} was not confirmed", hint="say --yes, or answer on a terminal")
    return after._replace(confirmed=genesis)


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
