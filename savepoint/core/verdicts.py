"""What verification says: findings of rules, verdicts of witnesses, the report over them."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from savepoint.core.strict_json import Json


class Verdict(StrEnum):
    """Worst first. OFF does not count."""

    TAMPERED = "TAMPERED"
    ROLLED_BACK = "ROLLED_BACK"
    UNVERIFIABLE = "UNVERIFIABLE"
    PENDING = "PENDING"
    VERIFIED = "VERIFIED"
    OFF = "OFF"


_ORDER = list(Verdict)
_EXIT_CODES = {
    Verdict.TAMPERED: 20,
    Verdict.ROLLED_BACK: 22,
    Verdict.UNVERIFIABLE: 21,
    Verdict.PENDING: 3,
    Verdict.VERIFIED: 0,
}
_UNSUPPORTED_EXIT = 23
REPAIR = "run `savepoint fsck --repair`"
_HINTS = {
    3: "run `savepoint sync`",
    20: MalformedError.default_hint,
    21: "make readable what the findings name, then verify again",
    22: REPAIR,
    23: "upgrade savepoint",
}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst that counts; UNVERIFIABLE if none does, since then nothing was checked."""
    counted = [one for one in verdicts if one is not Verdict.OFF]
    return min(counted, key=_ORDER.index, default=Verdict.UNVERIFIABLE)


class Finding(NamedTuple):
    """What one rule says of one thing."""

    rule: str  # VERIFY-1 … (core/verify_*.py)
    result: str  # pass | fail | skipped
    detail: str  # names the file, relative to the store (a trusted head: to its home)
    verdict: Verdict  # of a witness in which nothing worse was found
    unsupported: bool = False  # skipped because a newer version wrote it
    hint: str = ""  # what to do, where that is more than the verdict's own hint
    behind: bool = False  # skipped because it was left at the remote when the store was fetched

    def to_json(self) -> Json:
        """As in `verify --json`."""
        return {"rule": self.rule, "result": self.result, "detail": self.detail}


class Lack(NamedTuple):
    """In place of a file's bytes: why there are none."""

    reason: str  # completes "<path> …": "is missing", "cannot be read: input/output error"
    unreadable: bool = False  # it may be whole, but nobody could look
    unsupported: bool = False  # since a newer version wrote it


def passed(rule: str, detail: str) -> Finding:
    """The rule holds."""
    return Finding(rule, "pass", detail, Verdict.VERIFIED)


def tampered(rule: str, detail: str) -> Finding:
    """Bytes are missing, or are not those that were signed."""
    return Finding(rule, "fail", detail, Verdict.TAMPERED)


def rolled_back(rule: str, detail: str) -> Finding:
    """The state is older than one that was seen, or a second history of the same key."""
    return Finding(rule, "fail", detail, Verdict.ROLLED_BACK)


def unchecked(rule: str, detail: str, *, unsupported: bool = False, hint: str = "") -> Finding:
    """Nobody could look; nothing is known to be wrong."""
    return Finding(rule, "skipped", detail, Verdict.UNVERIFIABLE, unsupported, hint)


def behind(rule: str, detail: str, *, hint: str = "") -> Finding:
    """It was never here: a store that was fetched has a border. No proof of it, and no damage."""
    return unchecked(rule, detail, hint=hint)._replace(behind=True)


def absent(rule: str, where: str, lack: Lack) -> Finding:
    """The finding of a rule whose file has no bytes to check."""
    detail = f"{where} {lack.reason}"
    return unchecked(rule, detail) if lack.unreadable else tampered(rule, detail)


def completed(findings: Iterable[Finding], rules: Sequence[str]) -> tuple[Finding, ...]:
    """With a word on each rule that a witness must have, in their order: one that says nothing was
    not looked at. What stopped an earlier rule is why; it stays PENDING, or behind a border.
    """
    found = list(findings)
    for number, rule in enumerate(rules):
        if any(one.rule == rule for one in found):
            continue
        before = [one for one in found if one.rule in rules[:number] and one.result != "pass"]
        why = min(before, key=lambda one: _ORDER.index(one.verdict), default=None)
        if why is None:
            found.append(unchecked(rule, f"{rule} was not looked at"))
        elif why.result == "skipped":
            found.append(why._replace(rule=rule))
        else:
            found.append(unchecked(rule, f"not looked at: {why.rule} does not hold"))
    return tuple(sorted(found, key=lambda one: rules.index(one.rule)))


class Witness(NamedTuple):
    """One of the places that hold a savepoint, and what was found there."""

    findings: tuple[Finding, ...]
    off: str = ""  # why it does not count; empty if it does
    members: dict[str, Json] = {}  # noqa: RUF012  # never changed: what this witness also reports

    @property
    def verdict(self) -> Verdict:
        """OFF, or the worst of its findings."""
        return Verdict.OFF if self.off else worst(one.verdict for one in self.findings)

    def to_json(self) -> dict[str, Json]:
        """As in `verify --json`; `reason` says why it is OFF."""
        shown: dict[str, Json] = {
            "verdict": str(self.verdict),
            "findings": [one.to_json() for one in self.findings],
        }
        if self.off:
            shown["reason"] = self.off
        return shown | self.members


def chain_members(ledger: str | None) -> dict[str, Json]:
    """What the chain witness also reports, as it is before anything of it is known."""
    return {
        "ledger": ledger,
        "independent": False,
        "covered_by": None,
        "account": None,
        "account_data": None,
        "github_commit": None,
        "upgrade_authority": None,
    }


class CheckedSavepoint(NamedTuple):
    """A savepoint and what each witness says of it."""

    seq: int
    snapshot_hash: str  # as in the record: sha256:…
    witnesses: dict[str, Witness]  # local, git, chain

    @property
    def verdict(self) -> Verdict:
        """The worst that counts."""
        return worst(one.verdict for one in self.witnesses.values())

    def to_json(self) -> Json:
        """As in `verify --json`."""
        return {
            "seq": self.seq,
            "snapshot_hash": self.snapshot_hash,
            "verdict": str(self.verdict),
            "witnesses": {name: one.to_json() for name, one in self.witnesses.items()},
        }


_NOT_ASKED = Witness((), off="not asked")


class Report(NamedTuple):
    """What `verify` found. A fault of the index counts even where it comes after every savepoint
    that was asked for: it may stand where the newest one stood.
    """

    chain: Witness  # rules 1 to 4 over the whole index
    savepoints: tuple[CheckedSavepoint, ...]
    git: Witness = _NOT_ASKED  # what git says of all savepoints alike

    @property
    def verdict(self) -> Verdict:
        """The worst of the index, of git and of all savepoints asked for."""
        own = [one.verdict for one in self.savepoints]
        return worst([self.chain.verdict, self.git.verdict, *own])

    @property
    def further(self) -> tuple[Finding, ...]:
        """Faults of the index behind every savepoint that was asked for, and of git where none
        was: no savepoint lists them, but they count.
        """
        listed = {
            finding
            for one in self.savepoints
            for witness in one.witnesses.values()
            for finding in witness.findings
        }
        return tuple(
            one
            for one in (*self.chain.findings, *self.git.findings)
            if one.result != "pass" and one not in listed
        )

    @property
    def exit_code(self) -> int:
        """0 VERIFIED, 3 PENDING, 20, 21, 22; 23 where a newer version is all that is in the way."""
        verdict = self.verdict
        if verdict is Verdict.UNVERIFIABLE and any(one.unsupported for one in self._findings()):
            return _UNSUPPORTED_EXIT
        return _EXIT_CODES[verdict]

    @property
    def hint(self) -> str:
        """What to do next; empty where nothing is wrong."""
        verdict = self.verdict
        own = [one.hint for one in self._findings() if one.hint and one.verdict is verdict]
        return own[0] if own else _HINTS.get(self.exit_code, "")

    def fresh(self, why: str) -> Report:
        """VERIFY-4 where there is no trusted head: another witness was asked, and has nothing newer
        than the index (only a rollback of all of them together would pass).
        """

        def better(witness: Witness) -> Witness:
            found = tuple(
                passed("VERIFY-4", f"{one.detail}; {why}")
                if one.rule == "VERIFY-4" and one.result == "skipped" and one.hint
                else one
                for one in witness.findings
            )
            return witness._replace(findings=found)

        checked = tuple(
            one._replace(witnesses={**one.witnesses, "local": better(one.witnesses["local"])})
            for one in self.savepoints
        )
        return self._replace(chain=better(self.chain), savepoints=checked)

    def to_json(self) -> dict[str, Json]:
        """The document of `verify --json`."""
        return {
            "verdict": str(self.verdict),
            "savepoints": [one.to_json() for one in self.savepoints],
            "index": self.chain.to_json(),
            "repository": self.git.to_json(),
        }

    def _findings(self) -> list[Finding]:
        witnesses = [self.chain, *([] if self.git.off else [self.git])]
        for one in self.savepoints:
            witnesses += [witness for witness in one.witnesses.values() if not witness.off]
        return [finding for witness in witnesses for finding in witness.findings]
