"""`savepoint ledger`: what the ledger says, who pays, coins for a test, a program to deploy."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from savepoint.cli import options, place, terminal
from savepoint.cli.ledger import config as ledger_config
from savepoint.core import accounts, limits, spelling
from savepoint.core.errors import LedgerRefusedError, MalformedError, SavepointError, UsageError
from savepoint.core.verify_chain import FINALIZED
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
_CLUSTER = "`savepoint config ledger devnet` chooses a cluster, which needs one"
_OFF = "`savepoint config ledger NAME` chooses one"


class Asked(NamedTuple):
    """The ledger that was chosen, to be asked."""

    at: place.Place
    ledger: Ledger
    program: bytes | None  # its id; None: not known yet
    payer: Wallet

    @classmethod
    def of(cls, at: place.Place) -> Asked:
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
        state = self.ledger.account(address, FINALIZED)
        return address, recovery.read(state, self.program)

    def program_state(self) -> dict[str, Json]:
        """Which program, is it ours byte for byte, and who may change it. Raises SavepointError."""
        if self.program is None:
            return _unknown(None, "no id is known: `savepoint ledger deploy` deploys it")
        from anchor_service import deploy
        from anchor_service.program import instructions
        from savepoint.core import deployed

        shown = spelling.base58(self.program)
        try:
            found = deploy.deployed_bytes(self.ledger, self.program)
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

    def funds(self, account: Account | None) -> dict[str, Json]:
        """Who pays, what there is, and what the entry after `account` costs."""
        from anchor_service import costs

        return {
            "payer": spelling.base58(self.payer.public),
            "payer_file": self.at.config.payer or place.home().payer,
            "balance": self.ledger.balance(self.payer.public),
            "next_entry": costs.of_entry(self.ledger, is_first=account is None),
        }


@app.command("status")
def status(
    instance: options.InstanceName = "",
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Show what the ledger says of the instance."""
    from savepoint.cli.ledger import layer3

    asked = Asked.of(place.find(project, instance))
    with terminal.busy(f"asking {asked.ledger.name}"):
        genesis = spelling.base58(asked.ledger.genesis())
        address, account = asked.account()
        value: dict[str, Json] = {
            "ledger": asked.ledger.name,
            "genesis": genesis,
            "public": asked.ledger.is_public,
            "endpoints": asked.ledger.endpoints,
            "program": asked.program_state(),
            "account": spelling.base58(address) if address else None,
            "entry": _entry(account),
            **asked.funds(account),
            "cost": layer3.cost(asked.at.paths, asked.at.config),
        }
    _show(value, as_json=as_json, shape="LedgerStatus")


@app.command("balance")
def balance(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Show who pays, how much there is, and what the next entry costs."""
    asked = Asked.of(place.find(project))
    with terminal.busy(f"asking {asked.ledger.name}"):
        _, account = asked.account()
        value: dict[str, Json] = {"ledger": asked.ledger.name, **asked.funds(account)}
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
    asked = Asked.of(at)
    with terminal.busy(f"asking {asked.ledger.name}"):
        asked.ledger.airdrop(asked.payer.public, lamports)
        _retry(at)
        value: dict[str, Json] = {
            "ledger": asked.ledger.name,
            "payer": spelling.base58(asked.payer.public),
            "asked": lamports,
            "balance": asked.ledger.balance(asked.payer.public),
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
    if at.config.ledger == config.EMBEDDED:
        raise UsageError("the embedded ledger has the program already", hint=_CLUSTER)
    asked = Asked.of(at)
    ledger_config.agreed(at, "ledger", [asked.at.config.ledger or ""], yes=yes)
    elf = instructions.elf()
    terminal.note(f"it takes some {deployment.price(asked.ledger, elf)} lamports")
    deadline = time.monotonic() + limits.COMMAND_SECONDS
    with terminal.busy("deploying"):
        program = deployment.deploy(
            asked.ledger, asked.payer, elf, finalise=finalise, deadline=deadline
        )
    _use(at, spelling.base58(program))
    value: dict[str, Json] = {
        "ledger": asked.ledger.name,
        "program": spelling.base58(program),
        "upgrade_authority": None if finalise else spelling.base58(asked.payer.public),
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


def _show(value: dict[str, Any], *, as_json: bool, shape: str) -> None:
    if as_json:
        from savepoint.cli.shapes import ledger as shapes
        from savepoint.cli.shapes.shape import shaped

        terminal.document(shaped(getattr(shapes, shape), value))
        return
    for name, one in value.items():
        label = name.replace("_", " ")
        for key, part in one.items() if isinstance(one, dict) else [("", one)]:
            if part is not None:
                terminal.say(f"  {label:16} {key + ' ' if key else ''}{_shown(part)}")


def _shown(value: object) -> str:
    """For people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
