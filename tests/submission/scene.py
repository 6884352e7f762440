"""A store with committed savepoints, a cluster whose time a test drives, and one step of anchoring.

The cluster runs the real program; what is made up is time: when a transaction gets into a block,
how far finality trails, what an endpoint drops, and how it fails.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from solders.pubkey import Pubkey
from solders.system_program import TransferParams, transfer

from anchor_service import queue, submission
from anchor_service.desk import Desk, payer_of
from anchor_service.ledgers.embedded import PROGRAM, EmbeddedLedger
from anchor_service.queue import Queue
from anchor_service.transaction import signature_of, signed
from anchor_service.wallet import Wallet
from savepoint.core import entry, limits, spelling
from savepoint.core.errors import RejectedError
from savepoint.core.ledger import Blockhash, Failure, Landing
from savepoint.store import config, index, trusted
from tests.gitlayer.layer import Layer
from tests.work.scene import around

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from anchor_service.queue import Submission
    from savepoint.core.entry import Account
    from savepoint.core.ledger import AccountState
    from savepoint.core.record import Record
    from savepoint.store.layout import InstancePaths, Store

SECONDS = 30
_SOMEBODY = Wallet(bytes(31) + b"\1")
LEDGER = "http://127.0.0.1:1"  # as the owner chose it: nobody listens there


class Landed(NamedTuple):
    """Of a transaction that got into a block."""

    height: int
    error: Failure | None


class Chain:
    """A cluster. Slots and heights are the same; a transaction that was taken gets into the next
    block. Finality trails by `lag` blocks.
    """

    name = "chain"
    is_public = False
    endpoints = 1

    def __init__(self, folder: Path, lag: int = 32) -> None:
        self._folder = folder
        self._inner = EmbeddedLedger(str(folder / "chain-0.db"))
        self.lag = lag
        self.now = 1000  # block height
        self.drops = 0  # so many transactions are taken, and never forwarded
        self.refuses: Failure | None = None  # what a simulation says of the next transactions
        self.fails: Callable[[str], None] = lambda _call: None  # raises what a call shall raise
        self.sent: list[bytes] = []  # everything that was handed in
        self.calls: list[str] = []
        self._waiting: list[tuple[bytes, int]] = []  # with the last height that they can land at
        self._landed: dict[bytes, Landed] = {}
        self._states: list[tuple[int, dict[bytes, AccountState | None]]] = []
        self._addresses: set[bytes] = set()
        self.lives = 0

    def reset(self) -> None:
        """Begins anew, with another genesis hash."""
        self.lives += 1
        self._inner = EmbeddedLedger(str(self._folder / f"chain-{self.lives}.db"))
        self._waiting, self._landed, self._states, self.now = [], {}, [], 1000

    def tick(self, blocks: int = 1) -> None:
        """Blocks are made; what waits lands in the first of them, unless it came too late."""
        self.now += 1
        waiting, self._waiting = self._waiting, []
        for transaction, last in waiting:
            if self.now <= last:
                self._execute(transaction)
        self._renew_blockhash()
        self._remember()
        self.now += blocks - 1

    def _renew_blockhash(self) -> None:
        """Somebody else's transaction; else the next blockhash, and so the next transaction, would
        be the same as the one before.
        """
        self._inner.airdrop(_SOMEBODY.public, 10**9)
        key = Pubkey(_SOMEBODY.public)
        paid = transfer(TransferParams(from_pubkey=key, to_pubkey=key, lamports=1))
        raw, _ = signed([paid], _SOMEBODY, [], self._inner.blockhash().hash, units=1000)
        self._inner.send(raw, self._inner.blockhash())

    def _execute(self, transaction: bytes) -> None:
        error = None
        try:
            self._inner.send(transaction, self._inner.blockhash())
        except RejectedError as failure:
            error = failure.failure
            if error is not None and error.kind == "duplicate":
                return
        self._landed[signature_of(transaction)] = Landed(self.now, error)

    def write(self, transaction: bytes) -> None:
        """Another client's transaction gets into a block."""
        self._inner.send(transaction, self._inner.blockhash())
        self._remember()
        self.tick()

    def _remember(self) -> None:
        found = self._inner.accounts(sorted(self._addresses), "finalized")
        self._states.append((self.now, dict(zip(sorted(self._addresses), found, strict=True))))

    # the protocol

    def bound(self, deadline: float) -> None:
        """It answers at once."""

    def genesis(self) -> bytes:
        self._called("genesis")
        return self._inner.genesis()

    def account(self, address: bytes, level: str, _not_before: int = 0) -> AccountState | None:
        return self.accounts([address], level)[0]

    def accounts(self, addresses: Sequence[bytes], level: str) -> list[AccountState | None]:
        self._called("accounts")
        slot = self.now - (self.lag if level == "finalized" else 0)
        self._addresses |= set(addresses)
        states = self._states or [(0, {})]
        known = [one for height, one in states if height <= slot]
        found = [known[-1].get(address) if known else None for address in addresses]
        if not known:
            found = [None for _ in addresses]
        payer = self._inner.account(addresses[-1], level)
        if len(addresses) > 1 and payer is None:
            self._inner.airdrop(addresses[-1], limits.EMBEDDED_LAMPORTS)
            payer = self._inner.account(addresses[-1], level)
        if len(addresses) > 1:
            found[-1] = payer
        return [one and one._replace(slot=slot) for one in found]

    def blockhash(self) -> Blockhash:
        self._called("blockhash")
        return Blockhash(self._inner.blockhash().hash, self.now + 150, self.now)

    def height(self) -> int:
        self._called("height")
        return self.now

    def rent(self, size: int) -> int:
        self._called("rent")
        return self._inner.rent(size)

    def balance(self, _address: bytes) -> int:
        self._called("balance")
        return limits.EMBEDDED_LAMPORTS

    def send(self, transaction: bytes, blockhash: Blockhash) -> None:
        self._called("send")
        self.sent.append(transaction)
        if self.refuses is not None:
            raise _rejected(self.refuses)
        if signature_of(transaction) in self._landed:
            raise _rejected(Failure("duplicate", None, "AlreadyProcessed"))
        if self.now > blockhash.last_valid_height:
            raise _rejected(Failure("blockhash", None, "BlockhashNotFound"))
        if self.drops:
            self.drops -= 1
            return
        if transaction not in [one for one, _ in self._waiting]:
            self._waiting.append((transaction, blockhash.last_valid_height))

    def landing(self, signature: bytes, *, history: bool) -> Landing | None:
        self._called("landing, history" if history else "landing")
        landed = self._landed.get(signature)
        if landed is None:
            return None
        age = self.now - landed.height
        level = "finalized" if age >= self.lag else "confirmed" if age >= 1 else "processed"
        return Landing(landed.height, level, landed.error)

    def airdrop(self, _address: bytes, _lamports: int) -> None:
        self._called("airdrop")

    def _called(self, call: str) -> None:
        self.calls.append(call)
        self.fails(call)


def _rejected(failure: Failure) -> RejectedError:
    return RejectedError(f"refused: {failure.detail}", failure)


class Anchoring:
    """A store whose savepoints are anchored on a Chain."""

    def __init__(self, folder: Path, lag: int = 32) -> None:
        self.layer = Layer.new(folder)
        self.chain = Chain(folder, lag)
        self.choose(ledger=LEDGER, program=spelling.base58(PROGRAM))
        self._transcript = b""
        self._looks: dict[bytes, int] = {}

    @property
    def paths(self) -> InstancePaths:
        return self.layer.paths

    @property
    def store(self) -> Store:
        return self.paths.store

    def choose(self, **members: object) -> None:
        """Change the config."""
        config.load(self.store)._replace(**members).save(self.store)  # type: ignore[arg-type]  # members of a config

    def save(self) -> Record:
        """A savepoint and its commit."""
        self._transcript += b'{"message": 1}\n'
        new = self.layer.save(self._transcript)
        self.layer.commit(new)
        return new.record

    @contextmanager
    def desk(self) -> Iterator[Desk]:
        chosen = config.load(self.store)
        with Queue(self.store) as box:
            yield Desk(
                store=self.store,
                chosen=chosen,
                ledger=self.chain,
                program=PROGRAM,
                payer=payer_of(self.store, chosen),
                repo=around().repository(self.store),
                queue=box,
                looks=self._looks,
            )

    def step(self) -> float | None:
        """One step of anchoring. Raises what it raises."""
        with self.desk() as desk:
            return submission.advance(desk, self.paths, time.monotonic() + SECONDS)

    def restart(self) -> None:
        """Another process takes over: it remembers no looks."""
        self._looks.clear()

    def finish(self, rounds: int = 60, blocks: int = 5) -> None:
        """Steps and blocks until nothing is owed."""
        for _ in range(rounds):
            if self.step() is None:
                return
            self.chain.tick(blocks)
        raise AssertionError(f"not anchored: {self.rows()}")

    def rows(self) -> list[Submission]:
        return queue.rows(self.store, self.paths.slug)

    def row(self) -> Submission:
        """The newest."""
        return self.rows()[-1]

    def states(self) -> list[tuple[int, str]]:
        return [(one.record_seq, one.state) for one in self.rows()]

    def force(self, state: str, **members: object) -> Submission:
        """The newest row in another state, as a death or a rare answer would leave it."""
        with Queue(self.store) as box:
            return box.put(self.row()._replace(state=state, **members))  # type: ignore[arg-type]  # members of a row

    def account(self) -> Account:
        """What the cluster holds, confirmed."""
        state = self.chain.account(spelling.key_bytes(self.row().account), "confirmed")
        assert state is not None
        return entry.parse(state.data)

    def seen(self) -> object:
        """Of the trusted head: the entry at this genesis."""
        head = trusted.load(self.paths)
        assert head is not None
        return head.ledgers.get(spelling.base58(self.chain.genesis()))

    def authority(self) -> bytes:
        birth = index.birth(self.paths)
        assert birth is not None
        return birth.signer

    def check_covered(self, one: Record) -> None:
        """The account names that record, finalized, and only one entry was ever made of it."""
        account = self.account()
        assert account.metadata.rec == one.hash
        assert self.seen() == {"seq": account.seq, "entry": account.hash}
        mine = [row for row in self.rows() if row.record == one.hash]
        assert [row.state for row in mine if row.state != queue.ORPHANED] == [queue.VERIFIED]
