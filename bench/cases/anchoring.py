"""What anchoring costs: a save, an entry on the embedded ledger and on a real cluster, `verify`."""

from __future__ import annotations

import base64
import json
import os
import statistics
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, ParamSpec

from anchor_service.ledgers.embedded import PROGRAM
from bench.forwarder import Forwarder
from bench.grow import grow
from bench.measure import Series
from bench.report import Row, bound, passed_over, shown
from bench.scale import megabytes
from bench.world import ROOT, settle
from savepoint.core import limits
from savepoint.core.spelling import base58
from savepoint.store import config
from tests.ledger.validator import Validator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bench.scale import Scale
    from bench.world import Home, Transcript, World

P = ParamSpec("P")

_POLL_SECONDS = 0.02
_PATIENCE_SECONDS = 120.0  # for what takes 14 s on an idle machine
_TICK_SECONDS = 0.00625
_SOL = 10**9  # lamports
_SMALL_STEP = 3000  # bytes


def anchor(world: World, scale: Scale) -> list[Row]:
    """The same save with the embedded ledger and without any, in turn; and how long the entry
    takes, which is made when the hook has ended.
    """
    homes = {"plain": world.new_home(), "anchored": world.new_home(anchors=True)}
    session = world.new_session(scale.session)
    for home in homes.values():
        home.savepoint("create", "--transcript", session.path).seconds()
    series = Series()
    order = ["plain", "anchored"]
    for round_of in series.rounds(scale.rounds):
        session.grow(scale.new)
        settle(scale.rest, *homes.values())
        order.reverse()  # neither is always the first
        for name in order:
            home, seen = homes[name], _entries(homes[name])
            round_of.add(name, home.timed(home.hook(session)))
            if name == "anchored":
                round_of.add("entry", _seconds_until(_has_entry_above, home, seen))
            home.rest()
    what = f"{megabytes(scale.session)} + {megabytes(scale.new)} new"
    return [
        bound(
            f"{what}, a store that anchors",
            series,
            "anchored",
            "plain",
            "one that does not",
            1.05,
        ),
        shown("acknowledged to VERIFIED on the embedded ledger", series, "entry"),
    ]


def cluster(world: World, scale: Scale) -> list[Row]:
    """The real `solana-test-validator`, with slots as long as those of a public cluster."""
    program = _validator_program()
    if program is None:
        return [passed_over("an entry on a cluster", "there is no `solana-test-validator`")]
    folder = os.path.join(world.folder, "validator")
    with (
        _running(program, folder, scale.ticks) as validator,
        Forwarder(validator.url) as forwarder,
    ):
        there = _There(validator, forwarder, _funded(world, forwarder.url))
        return [*_verifications(world, scale, there), *_entries_there(world, scale, there)]


class _There(NamedTuple):
    """A cluster, what counts our calls to it, and a home that anchors there."""

    validator: Validator
    forwarder: Forwarder
    home: Home

    def account(self) -> str:
        """Of the instance, once it has an entry."""
        status = self.home.savepoint("ledger", "status", "--json").output()
        return str(json.loads(status)["account"])

    def entry(self, session: Transcript, account: str) -> dict[str, float]:
        """A savepoint, and the seconds from when its hook had ended to what became of its entry.
        The cluster is asked beside us for what it calls finalized.
        """
        seen = _entries(self.home)
        self.forwarder.calls.clear()
        self.home.timed(self.home.hook(session))
        begun = time.perf_counter()
        finalized = _seconds_until(_is_final_above, self.validator, account, seen)
        verified = finalized + _seconds_until(_has_entry_above, self.home, seen)
        self.home.rest()
        confirmed = next(one.at for one in self.forwarder.calls if one.is_confirmed) - begun
        final = finalized + limits.ANCHOR_POLL_SECONDS
        return {"confirmed": confirmed, "final": final, "verified": verified}


def _verifications(world: World, scale: Scale, there: _There) -> list[Row]:
    """What `verify` asks the ledger, by how many savepoints there are."""
    session = world.new_session(0)
    grow(world, there.home, session, scale.chain, _SMALL_STEP, commits=True)
    there.home.savepoint("sync", "--wait").seconds()
    counts = []
    for command in (("verify", "latest"), ("verify", "--all")):
        there.forwarder.calls.clear()
        there.home.savepoint(*command).seconds()
        counts.append(len(there.forwarder.calls))
    one, every = counts
    name = f"`verify --all` of {scale.chain} anchored savepoints, RPC calls"
    return [Row(name, f"{every}", f"`verify` of one: {one}", every / one, 1)]


def _entries_there(world: World, scale: Scale, there: _There) -> list[Row]:
    session = world.new_session(scale.typical)
    account = there.account()
    series, calls = Series(), list[int]()
    for round_of in series.rounds(scale.entries):
        session.grow(_SMALL_STEP)
        settle(scale.rest, there.home)
        for name, seconds in there.entry(session, account).items():
            round_of.add(name, seconds)
        if round_of is series:
            calls.append(there.forwarder.besides_finality())
    slot = scale.ticks * _TICK_SECONDS
    confirmed, most = series.median("confirmed"), max(calls)
    return [
        Row(
            f"acknowledged to confirmed on a cluster with slots of {slot * 1000:.0f} ms, seconds",
            f"{confirmed:.2f} s (least {series.least('confirmed'):.2f})",
            "two slots and the first poll",
            confirmed,
            2 * slot + limits.ANCHOR_POLLS_SECONDS[0],
        ),
        bound(
            "acknowledged to VERIFIED there",
            series,
            "verified",
            "final",
            "the cluster's own finality, asked beside us, and one poll",
            1,
        ),
        Row(
            "RPC calls of an entry, but those that await finality",
            f"{statistics.median(calls):g} (most {most})",
            "",
            most,
            6,
        ),
    ]


def _funded(world: World, url: str) -> Home:
    """A home that anchors there, with coins."""
    home = world.new_home()
    chosen = config.load(home.store)._replace(ledger=url, program=base58(PROGRAM))
    chosen.save(home.store)
    home.savepoint("ledger", "airdrop", str(_SOL)).seconds()
    _seconds_until(_has_coins, home)
    return home


def _entries(home: Home) -> int:
    """Sequence of the newest entry that the home's trusted head has seen at finalized."""
    newest = 0
    for path in Path(home.path, "trusted").glob("*/*.json"):
        ledgers = json.loads(path.read_bytes())["ledgers"]
        newest = max([newest, *(one["seq"] for one in ledgers.values())])
    return newest


def _has_entry_above(home: Home, seen: int) -> bool:
    return _entries(home) > seen


def _is_final_above(validator: Validator, account: str, seen: int) -> bool:
    """As the cluster itself tells it."""
    options = {"commitment": "finalized", "encoding": "base64"}
    value = validator.ask("getAccountInfo", account, options)["value"]
    data = base64.b64decode(value["data"][0]) if value else b""
    return int.from_bytes(data[4:12], "little") > seen


def _has_coins(home: Home) -> bool:
    return bool(json.loads(home.savepoint("ledger", "balance", "--json").output())["balance"])


def _seconds_until(holds: Callable[P, bool], *args: P.args, **more: P.kwargs) -> float:
    begun = time.perf_counter()
    while not holds(*args, **more):
        if time.perf_counter() - begun > _PATIENCE_SECONDS:
            raise SystemExit("bench: error: an entry was awaited, and did not come")
        time.sleep(_POLL_SECONDS)
    return time.perf_counter() - begun


def _validator_program() -> Path | None:
    """Where the tests look for it: SOLANA_TEST_VALIDATOR, PATH, ../shared/bin."""
    named = os.environ.get("SOLANA_TEST_VALIDATOR", "")
    folders = [*os.environ["PATH"].split(os.pathsep), os.path.join(ROOT, "..", "shared", "bin")]
    found = [os.path.join(one, "solana-test-validator") for one in folders]
    wanted = [os.path.join(ROOT, named)] if named else found
    return next((Path(one) for one in wanted if os.access(one, os.X_OK)), None)


@contextmanager
def _running(program: Path, folder: str, ticks: int) -> Iterator[Validator]:
    os.makedirs(folder)
    one = Validator(program, Path(folder), ticks)
    try:
        one.start(reset=True)
        yield one
    finally:
        one.kill()
