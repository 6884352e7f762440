"""`savepoint ledger`: what the ledger says, who pays, coins for a test, a program to deploy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from savepoint.cli import ledger_config, options, place, terminal
from savepoint.core import accounts, limits, spelling
from savepoint.core.errors import LedgerRefusedError, MalformedError, SavepointError, UsageError
from savepoint.store import config, index
from savepoint.store.locks import Lock

if TYPE_CHECKING:
    from anchor_service.wallet import Wallet
    from savepoint.core.entry import Account
    from savepoint.core.ledger import Ledger
    from savepoint.core.strict_json import Json

app = typer.Typer(
    help="Ask the ledger, fund it, put the program on it.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)

_SOL = 1_000_000_000  # lamports
_OFF = "`savepoint config ledger NAME` chooses one"


class _Desk(NamedTuple):
    """A ledger that was chosen, and what is known without asking it."""

    at: place.Place
    ledger: Ledger
    program: bytes | None  # its id; None: not known yet
    payer: Wallet

    @classmethod
    def open(cls, at: place.Place) -> _Desk:
        """Raises UsageError (no ledger), KeyFileError, DiskError."""
        from anchor_service import desk, ledgers

        if at.config.ledger is None:
            raise UsageError("no ledger is configured", hint=_OFF)
        try:
            program = desk.program_of(at.config)
        except LedgerRefusedError:
            program = None
        deadline = time.monotonic() + limits.COMMAND_SECONDS
        ledger = ledgers.open_ledger(
            at.config.ledger, store=at.store, program=program, deadline=deadline
        )
        return cls(at, ledger, program, desk.payer_of(at.store, at.config))

    def account(self) -> tuple[bytes, Account | None]:
        """Of the instance, finalized. Raises SavepointError."""
        import hashlib

        from anchor_service import recovery

        birth = index.birth(self.at.paths)
        if birth is None or self.program is None:
            return b"", None
        instance = hashlib.sha256(birth.instance.encode("utf-8")).digest()
        address, _ = accounts.address(instance, birth.signer, self.program)
        state = self.ledger.account(address, "finalized")
        return address, recovery.read(state, self.program)

    def cost(self, *, is_first: bool) -> int:
        from anchor_service import costs

        return costs.of_entry(self.ledger, is_first=is_first)


@app.command("status")
def status(
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Show what the ledger says of the instance, its program and its payer."""
    from savepoint.cli import layer3

    desk = _Desk.open(place.find(project, instance))
    with terminal.busy(f"asking {desk.ledger.name}"):
        genesis = spelling.base58(desk.ledger.genesis())
        address, account = desk.account()
        value: dict[str, Json] = {
            "ledger": desk.ledger.name,
            "genesis": genesis,
            "public": desk.ledger.is_public,
            "endpoints": desk.ledger.endpoints,
            "program": _program(desk),
            "account": spelling.base58(address) if address else None,
            "entry": _entry(account),
            **_funds(desk, account),
            "cost": layer3.cost(desk.at.paths, desk.at.config),
        }
    _show(value, as_json=as_json, shape="LedgerStatus")


@app.command("balance")
def balance(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Show who pays, how much there is, and what the next entry costs."""
    desk = _Desk.open(place.find(project))
    with terminal.busy(f"asking {desk.ledger.name}"):
        _, account = desk.account()
        value: dict[str, Json] = {"ledger": desk.ledger.name, **_funds(desk, account)}
    _show(value, as_json=as_json, shape="LedgerBalance")


@app.command("airdrop")
def airdrop(
    lamports: Annotated[
        int, typer.Argument(metavar="LAMPORTS", help="10^9 are 1 SOL.", min=1, max=10 * _SOL)
    ] = _SOL,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Ask for coins, on a cluster that gives some away. They may come some seconds later."""
    at = place.find(project)
    desk = _Desk.open(at)
    with terminal.busy(f"asking {desk.ledger.name}"):
        desk.ledger.airdrop(desk.payer.public, lamports)
        _retry(at)
        value: dict[str, Json] = {
            "ledger": desk.ledger.name,
            "payer": spelling.base58(desk.payer.public),
            "asked": lamports,
            "balance": desk.ledger.balance(desk.payer.public),
        }
    _show(value, as_json=as_json, shape="LedgerAirdrop")


@app.command("deploy")
def deploy(
    finalise: Annotated[
        bool,
        typer.Option("--finalise", help="Nobody may change it any more. Cannot be taken back."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Real money may be spent: ledger mainnet-beta.")
    ] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Put the program on the ledger, and use it from now on. What was broken off goes on."""
    from anchor_service import deploy as deployment
    from anchor_service.program import instructions

    at = place.find(project)
    desk = _Desk.open(at)
    choice = at.config.ledger or ""
    if choice != config.EMBEDDED:
        ledger_config.agreed(at, "ledger", [choice], yes=yes)
    elf = instructions.elf()
    if choice != config.EMBEDDED:
        terminal.note(f"it takes some {deployment.price(desk.ledger, elf)} lamports")
    deadline = time.monotonic() + limits.COMMAND_SECONDS
    with terminal.busy("deploying"):
        program = deployment.deploy(
            desk.ledger, desk.payer, elf, finalise=finalise, deadline=deadline
        )
    _use(at, spelling.base58(program))
    value: dict[str, Json] = {
        "ledger": desk.ledger.name,
        "program": spelling.base58(program),
        "upgrade_authority": None if finalise else spelling.base58(desk.payer.public),
    }
    _show(value, as_json=as_json, shape="LedgerDeployment")


def _use(at: place.Place, program: str) -> None:
    """The config names it, and what the old one refused is tried again."""
    with Lock(at.store.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
        after = config.load(at.store)._replace(program=program)
        ledger_config.leave(at, after)
        after.save(at.store)


def _retry(at: place.Place) -> None:
    """What lacked funds is due at once."""
    with Lock(at.store.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
        ledger_config.leave(at, config.load(at.store))


def _program(desk: _Desk) -> dict[str, Json]:
    """Which one, is it ours byte for byte, and who may change it."""
    if desk.program is None:
        return _unknown(None, "no id is known: `savepoint ledger deploy` deploys it")
    from anchor_service import deploy
    from anchor_service.program import instructions
    from savepoint.core import deployed

    shown = spelling.base58(desk.program)
    try:
        found = deploy.deployed_bytes(desk.ledger, desk.program)
    except MalformedError as failure:
        return _unknown(shown, failure.message)
    authority = found.upgrade_authority
    is_ours = found.elf == deployed.trimmed(instructions.elf())
    return {
        "id": shown,
        "shipped": is_ours,
        "upgrade_authority": spelling.base58(authority) if authority else None,
        "problem": None if is_ours else "its bytes are not those that ship with savepoint",
    }


def _unknown(shown: str | None, problem: str) -> dict[str, Json]:
    return {"id": shown, "shipped": False, "upgrade_authority": None, "problem": problem}


def _entry(account: Account | None) -> Json:
    if account is None:
        return None
    from savepoint.core import entry

    try:
        record: int | None = account.metadata.seq
    except SavepointError:
        record = None
    return {
        "seq": account.seq,
        "kind": entry.KINDS[account.claim.kind],
        "record": record,
        "slot": account.slot,
        "hash": account.hash,
        "retired": account.retired,
    }


def _funds(desk: _Desk, account: Account | None) -> dict[str, Json]:
    lamports = desk.ledger.balance(desk.payer.public)
    return {
        "payer": spelling.base58(desk.payer.public),
        "payer_file": desk.at.config.payer or place.home().payer,
        "balance": lamports,
        "next_entry": desk.cost(is_first=account is None),
    }


def _show(value: dict[str, Any], *, as_json: bool, shape: str) -> None:
    if as_json:
        from savepoint.cli import shapes

        terminal.document(shapes.checked(getattr(shapes, shape), value))
        return
    for name, one in value.items():
        label = name.replace("_", " ")
        for key, part in one.items() if isinstance(one, dict) else [("", one)]:
            if part is not None:
                terminal.say(f"  {label:16} {key + ' ' if key else ''}{part}")
