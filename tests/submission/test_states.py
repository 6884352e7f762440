"""Every state, and every answer that it can get: what becomes of it in one step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from anchor_service import queue
from anchor_service.queue import Queue
from savepoint.core import spelling
from savepoint.core.errors import (
    ConflictError,
    FundsError,
    LedgerUnreachableError,
    RejectedError,
    SavepointError,
)
from savepoint.core.ledger import AccountState, Failure, Landing
from savepoint.store import durable
from tests.submission.scene import Anchoring

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anchor_service.queue import Submission

_TOO_LATE = Failure("program", 1018, "WrongSequence")
_POOR = Failure("funds", None, "InsufficientFundsForFee")
_BROKEN = Failure("other", None, "InstructionError")


class Answer(NamedTuple):
    """What the ledger says to whatever it is asked."""

    landing: Landing | None = None
    entry: str = ""  # in the finalized account: "", ours, foreign
    expired: bool = False
    refuses: Failure | None = None  # of what is handed in
    silent: bool = False


def _at(level: str, error: Failure | None = None) -> Landing:
    return Landing(900, level, error)


ANSWERS = {
    "silence": Answer(silent=True),
    "nothing": Answer(),
    "processed": Answer(_at("processed")),
    "confirmed": Answer(_at("confirmed")),
    "finalized": Answer(_at("finalized"), entry="ours"),
    "finalized, not there": Answer(_at("finalized")),
    "finalized, another there": Answer(_at("finalized"), entry="foreign"),
    "ours, landing forgotten": Answer(entry="ours", expired=True),
    "another there": Answer(entry="foreign", expired=True),
    "expired": Answer(expired=True),
    "refused, moved": Answer(refuses=_TOO_LATE),
    "refused, funds": Answer(refuses=_POOR),
    "refused, other": Answer(refuses=_BROKEN),
    "failed, not final": Answer(_at("confirmed", _TOO_LATE)),
    "failed, moved": Answer(_at("finalized", _TOO_LATE)),
    "failed, funds": Answer(_at("finalized", _POOR)),
    "failed, other": Answer(_at("finalized", _BROKEN)),
}

# Answer → state → the state behind the step, and what it raises. LOOKING stands for SENT, SEEN and
# LANDED; "=" for the state as it was.
LOOKING = "LOOKING"
SAME = "="
_S, _U = queue, LedgerUnreachableError
TABLE: dict[str, dict[str, tuple[str, type[SavepointError] | None]]] = {
    "silence": {
        _S.PREPARED: (SAME, _U),
        LOOKING: (SAME, _U),
        _S.RECONCILE: (SAME, _U),
        _S.CONFLICT: (SAME, _U),
        _S.PAUSED_FUNDS: (SAME, _U),
    },
    "nothing": {
        _S.PREPARED: (_S.SENT, None),
        LOOKING: (SAME, None),
        _S.RECONCILE: (SAME, None),
        _S.CONFLICT: (_S.SENT, None),
        _S.PAUSED_FUNDS: (_S.SENT, None),
    },
    "processed": {
        _S.PREPARED: (_S.SEEN, None),
        LOOKING: (_S.SEEN, None),
        _S.RECONCILE: (SAME, None),
        _S.PAUSED_FUNDS: (_S.SEEN, None),
    },
    "confirmed": {
        _S.PREPARED: (_S.LANDED, None),
        LOOKING: (_S.LANDED, None),
        _S.RECONCILE: (SAME, None),
        _S.PAUSED_FUNDS: (_S.LANDED, None),
    },
    "finalized": {
        _S.PREPARED: (_S.VERIFIED, None),
        LOOKING: (_S.VERIFIED, None),
        _S.RECONCILE: (_S.VERIFIED, None),
        _S.CONFLICT: (_S.VERIFIED, None),
        _S.PAUSED_FUNDS: (_S.VERIFIED, None),
    },
    "finalized, not there": {
        _S.PREPARED: (_S.SENT, _U),
        LOOKING: (SAME, _U),
        _S.RECONCILE: (SAME, _U),
        _S.PAUSED_FUNDS: (_S.SENT, _U),
    },
    "finalized, another there": {
        _S.PREPARED: (_S.CONFLICT, ConflictError),
        LOOKING: (_S.CONFLICT, ConflictError),
        _S.RECONCILE: (_S.CONFLICT, ConflictError),
        _S.CONFLICT: (SAME, ConflictError),
        _S.PAUSED_FUNDS: (_S.CONFLICT, ConflictError),
    },
    "ours, landing forgotten": {
        LOOKING: (_S.VERIFIED, None),
        _S.RECONCILE: (_S.VERIFIED, None),
        _S.CONFLICT: (_S.VERIFIED, None),
        _S.PAUSED_FUNDS: (_S.VERIFIED, None),
    },
    "another there": {
        LOOKING: (_S.CONFLICT, ConflictError),
        _S.RECONCILE: (_S.CONFLICT, ConflictError),
        _S.CONFLICT: (SAME, ConflictError),
        _S.PAUSED_FUNDS: (_S.CONFLICT, ConflictError),
    },
    "expired": {
        LOOKING: (_S.RECONCILE, None),
        _S.RECONCILE: (SAME, None),
        _S.PAUSED_FUNDS: (_S.RECONCILE, None),
    },
    "refused, moved": {
        _S.PREPARED: (_S.RECONCILE, None),
        LOOKING: (_S.RECONCILE, None),
        _S.PAUSED_FUNDS: (_S.RECONCILE, None),
    },
    "refused, funds": {
        _S.PREPARED: (_S.PAUSED_FUNDS, FundsError),
        LOOKING: (_S.PAUSED_FUNDS, FundsError),
        _S.PAUSED_FUNDS: (SAME, FundsError),
    },
    "refused, other": {
        _S.PREPARED: (_S.SENT, RejectedError),
        LOOKING: (_S.SENT, RejectedError),
        _S.PAUSED_FUNDS: (_S.SENT, RejectedError),
    },
    "failed, not final": {
        _S.PREPARED: (_S.SENT, None),
        LOOKING: (SAME, None),
        _S.RECONCILE: (SAME, None),
        _S.PAUSED_FUNDS: (_S.SENT, None),
    },
    "failed, moved": {
        _S.PREPARED: (_S.QUEUED, _U),
        LOOKING: (_S.QUEUED, _U),
        _S.RECONCILE: (_S.QUEUED, _U),
        _S.PAUSED_FUNDS: (_S.QUEUED, _U),
    },
    "failed, funds": {
        _S.PREPARED: (_S.QUEUED, FundsError),
        LOOKING: (_S.QUEUED, FundsError),
        _S.RECONCILE: (_S.QUEUED, FundsError),
        _S.PAUSED_FUNDS: (_S.QUEUED, FundsError),
    },
    "failed, other": {
        _S.PREPARED: (_S.QUEUED, RejectedError),
        LOOKING: (_S.QUEUED, RejectedError),
        _S.RECONCILE: (_S.QUEUED, RejectedError),
        _S.PAUSED_FUNDS: (_S.QUEUED, RejectedError),
    },
}
_CASES = [
    (answer, each, behind, error)
    for answer, by_state in TABLE.items()
    for state, (behind, error) in by_state.items()
    for each in ((queue.SENT, queue.SEEN, queue.LANDED) if state == LOOKING else (state,))
]


class Begun(NamedTuple):
    """A savepoint whose transaction was sent once, and all that can be put back to that."""

    it: Anchoring
    row: Submission
    account: AccountState  # what the account will hold when it lands
    head: bytes

    def again(self) -> Anchoring:
        """As it was."""
        it = self.it
        for ending in ("", "-wal", "-shm"):
            durable.remove(it.store.outbox + ending)
        with Queue(it.store) as box:
            box.put(self.row)
        Path(it.paths.trusted).write_bytes(self.head)
        it.chain.sent[:] = [self.row.raw]
        it._looks[self.row.signature] = 10  # it was looked for some times already
        return it


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Begun:
    """Made once: each step starts from it."""
    it = Anchoring(tmp_path_factory.mktemp("begun"))
    it.save()
    it.step()
    row, head = it.row(), Path(it.paths.trusted).read_bytes()
    it.chain.tick()
    account = it.chain.account(spelling.key_bytes(row.account), "confirmed")
    assert account is not None
    it.chain._landed.clear()
    return Begun(it, row, account, head)


def answer_with(begun: Begun, answer: Answer, patch: pytest.MonkeyPatch) -> None:
    """The chain says that from now on."""
    it, row, ours, _ = begun

    def accounts(addresses: Sequence[bytes], level: str) -> list[AccountState | None]:
        it.chain._called("accounts")
        payer = AccountState(bytes(32), 10**10, b"", False, 2000)
        if not answer.entry:
            return [None, payer]
        data = bytearray(ours.data)
        if answer.entry == "foreign":
            data[73:105] = bytes(32)
        return [ours._replace(data=bytes(data), slot=2000), payer]

    def landing(_signature: bytes, *, history: bool) -> Landing | None:
        it.chain._called("landing")
        return answer.landing

    def fail(_call: str) -> None:
        if answer.silent:
            raise LedgerUnreachableError("429")

    patch.setattr(it.chain, "accounts", accounts)
    patch.setattr(it.chain, "landing", landing)
    patch.setattr(it.chain, "height", lambda: row.last_valid_height + 6 * answer.expired)
    patch.setattr(it.chain, "fails", fail)
    patch.setattr(it.chain, "refuses", answer.refuses)


@pytest.mark.parametrize(("answer", "state", "behind", "error"), _CASES)
def test_step(
    begun: Begun,
    answer: str,
    state: str,
    behind: str,
    error: type[SavepointError] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = begun.again()
    it.force(state)
    answer_with(begun, ANSWERS[answer], monkeypatch)
    if error is None:
        it.step()
    else:
        with pytest.raises(error):
            it.step()
    assert it.row().state == (state if behind == SAME else behind)
    is_same = set(it.chain.sent) == {begun.row.raw}
    assert is_same or state == queue.CONFLICT, "nothing is signed anew on doubt"


def test_every_answer_is_in_the_table() -> None:
    assert set(TABLE) == set(ANSWERS)
    states = {state for by_state in TABLE.values() for state in by_state}
    assert states == {*queue.OPEN, LOOKING} - {queue.SENT, queue.SEEN, queue.LANDED}
