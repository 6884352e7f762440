"""May a savepoint be brought back? What the witnesses say, by the step that asks it.

Local (or freshly fetched) VERIFIED and none TAMPERED or ROLLED_BACK; PENDING passes and is told;
what could not be checked passes only if the owner allows it, and that is recorded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import verify_stored
from savepoint.core.errors import (
    RolledBackError,
    SavepointError,
    TamperedError,
    UnsupportedFormatError,
    UnverifiableError,
)
from savepoint.core.named import NamedTuple
from savepoint.core.verdicts import Finding, Verdict, Witness, worst

if TYPE_CHECKING:
    from savepoint.core.verdicts import Report

BOOTSTRAP, CHAIN, GIT, LOAD, INTEGRITY, RESUME = range(1, 7)
TITLES = {
    BOOTSTRAP: "Bootstrap",
    CHAIN: "Query Solana",
    GIT: "Fetch from GitHub",
    LOAD: "Load Consciousness",
    INTEGRITY: "Verify Integrity",
    RESUME: "Resume",
}
PENDING, UNVERIFIED, SKIPPED = "PENDING", "UNVERIFIABLE", "SKIPPED"
_ALLOW = "`--allow-unverified` goes on without it, and records that"


class Step(NamedTuple):
    """What became of one of the six steps."""

    number: int
    status: str  # the specification's word, or PENDING, UNVERIFIABLE, SKIPPED
    detail: str = ""

    @property
    def text(self) -> str:
        """For people: `SKIPPED: why`."""
        return f"{self.status}: {self.detail}" if self.detail else self.status


class Admission:
    """The verdicts on one savepoint, step by step."""

    def __init__(self, report: Report, *, allow_unverified: bool) -> None:
        self._allow = allow_unverified
        (checked,) = report.savepoints
        local = [one for one in checked.witnesses["local"].findings if one.rule in _CONTENT]
        own = set(checked.witnesses["git"].findings)
        repository = tuple(one for one in report.git.findings if one not in own)
        self.chain = checked.witnesses["chain"]
        self.git = checked.witnesses["git"]
        self._found: dict[int, tuple[Finding, ...]] = {
            BOOTSTRAP: report.chain.findings,
            CHAIN: () if self.chain.off else self.chain.findings,
            GIT: () if self.git.off else (*self.git.findings, *repository),
            LOAD: tuple(local),
        }

    @property
    def unverified(self) -> list[str]:
        """The rules that nobody could check, once each."""
        found = [one for step in self._found.values() for one in step if _is_unchecked(one)]
        return list(dict.fromkeys(one.rule for one in found))

    def raise_worst(self) -> None:
        """Raise what forbids it, naming the step: TamperedError, RolledBackError; UnverifiableError
        or UnsupportedFormatError unless that is allowed.
        """
        verdict = worst(one.verdict for step in self._found.values() for one in step)
        if verdict in (Verdict.PENDING, Verdict.VERIFIED):
            return
        for number, step in self._found.items():
            for one in step:
                if one.verdict is verdict:
                    self._refuse(number, one)

    def _refuse(self, number: int, one: Finding) -> None:
        where = f"step {number}, {TITLES[number]}: {one.rule}: {one.detail}"
        if one.verdict is Verdict.TAMPERED:
            raise TamperedError(where, hint=one.hint)
        if one.verdict is Verdict.ROLLED_BACK:
            raise RolledBackError(where, hint=one.hint)
        if one.unsupported:
            raise UnsupportedFormatError(where)
        if not self._allow:
            raise UnverifiableError(where, hint=_ALLOW)

    def step(self, number: int, good: str, *, absent: str = "") -> Step:
        """What a witness gives for its step. good: the specification's word; absent: why it does
        not count, beside what the witness itself says.
        """
        witness = self.chain if number == CHAIN else self.git
        if witness.off or absent:
            return Step(number, SKIPPED, witness.off or absent)
        found = worst(one.verdict for one in self._found[number])
        worse = next((one for one in self._found[number] if one.verdict is found), None)
        if found is Verdict.VERIFIED or worse is None:
            return Step(number, good)
        return Step(number, PENDING if found is Verdict.PENDING else UNVERIFIED, worse.detail)


_CONTENT = set(verify_stored.STORED_RULES)


def _is_unchecked(one: Finding) -> bool:
    return one.verdict is Verdict.UNVERIFIABLE


def refuse(number: int, failure: SavepointError) -> SavepointError:
    """The same failure, with the step that met it named."""
    message = f"step {number}, {TITLES[number]}: {failure.message}"
    return type(failure)(message, hint=failure.hint)


def counts(witness: Witness) -> bool:
    """Did a witness vouch for the savepoint?"""
    return not witness.off and witness.verdict is Verdict.VERIFIED
