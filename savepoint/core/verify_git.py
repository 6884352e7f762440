"""Verification of the git witness, as numbered rules: values in, findings out.

VERIFY-9   The branch of the instance has a commit of the savepoint, and its trailers name the
           record.
           Stops a commit that was taken out, and another savepoint's in its place.
VERIFY-10  The commits of the branch are of records of this index, in their order, in one line.
           Stops commits that were moved, doubled, merged in, left out, or are nobody's.
VERIFY-11  What a commit holds in the open is the index up to its record, and our own README.
           Stops another history, commands that people would run, and files that no savepoint has.
VERIFY-12  Encrypted content: snapshot, packs and RECOVER.tsv open to the bytes that were signed.
           Stops content of somebody else's, whom the recipients' public keys let encrypt as well.
VERIFY-13  Git's own check finds every object, pack, index, link and ref of the repository whole.
           Stops bytes that rotted or were changed where no savepoint that was asked for lies.
VERIFY-14  The remote's tip is the savepoint's commit, or comes after it.
           Stops a savepoint that has only one place, taken for one that has two.
VERIFY-15  The remote still has all that was ever read back from it.
           Stops a remote that is emptied, replaced or put back, which a plain push would cover up.
VERIFY-16  What the remote has comes from what we have.
           Stops an older copy of the whole store put back, and two histories of one key.

Rule 13 is asked with all savepoints, and by `fsck`; 14 to 16 where there is a remote. Without the
age identity 12 is skipped. What nobody could look at is UNVERIFIABLE, never TAMPERED; what is still
to be done is PENDING.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from savepoint.core import verdicts
from savepoint.core.errors import (
    CommitError,
    DiskError,
    KeyFileError,
    RemoteUnreachableError,
    RolledBackError,
    UnsupportedFormatError,
)
from savepoint.core.verdicts import Finding, Verdict, passed, rolled_back, tampered, unchecked

if TYPE_CHECKING:
    from savepoint.core.errors import SavepointError
    from savepoint.core.record import Record

GIT_RULES = tuple(f"VERIFY-{number}" for number in range(9, 17))
REMOTE_RULES = GIT_RULES[5:]

_SYNC = "run `savepoint sync`"
_NOBODY_LOOKED = (DiskError, KeyFileError, UnsupportedFormatError, RemoteUnreachableError)


def failed(rule: str, failure: SavepointError, *, unanswered: bool = False) -> Finding:
    """What an error says of a rule. unanswered: git could not be run, or did not end."""
    if isinstance(failure, RolledBackError):
        return rolled_back(rule, failure.message)._replace(hint=failure.hint)
    if unanswered or isinstance(failure, _NOBODY_LOOKED):
        newer = isinstance(failure, UnsupportedFormatError)
        hint = "" if newer else failure.hint
        return unchecked(rule, failure.message, unsupported=newer, hint=hint)
    hint = "`savepoint fsck` names it" if isinstance(failure, CommitError) else ""
    return tampered(rule, failure.message)._replace(hint=hint)


def committed(one: Record, seq: int, record: str, where: str) -> Finding:
    """VERIFY-9: the commit's trailers name this record, and no other."""
    if (seq, record) != (one.seq, one.hash):
        return tampered("VERIFY-9", f"{where} is not that of record {one.seq}")
    return passed("VERIFY-9", f"{where} names record {one.seq}")


def uncommitted(one: Record, reach: int, newer: str = "") -> Finding:
    """VERIFY-9 for a savepoint without a commit. reach: the last record that the branch holds;
    newer: of which version it is, if no commit of it could be made here.
    """
    if newer:
        detail = f"record {one.seq} has no commit: {newer}"
        return unchecked("VERIFY-9", detail, unsupported=True)
    if one.seq > reach:
        detail = f"record {one.seq} is not committed yet"
        return Finding("VERIFY-9", "skipped", detail, Verdict.PENDING, hint=_SYNC)
    return tampered("VERIFY-9", f"record {one.seq} has no commit")


def follows(one: Record | None, seq: int, before: int, parents: int, where: str) -> Finding | None:
    """VERIFY-10: a commit of record `seq` after that of record `before`; None if it is in place.

    one: that record of the index. Only what accepts a foreign tip has two parents.
    """
    if one is None or one.seq != seq:
        return rolled_back("VERIFY-10", f"git has record {seq} in {where}; the index has not")
    if seq <= before or (parents > 1 and one.kind != "accept"):
        detail = f"{where} of record {seq} does not follow that of record {before}"
        return tampered("VERIFY-10", detail)
    return None


def in_the_open(data: bytes, expected: bytes, where: str) -> Finding | None:
    """VERIFY-11: a file that is not encrypted has these bytes, and no others; None if it has."""
    return None if data == expected else tampered("VERIFY-11", f"{where} is not what it must be")


def unexpected(rule: str, paths: list[str], where: str) -> Finding | None:
    """VERIFY-11 and VERIFY-12: files that no savepoint, or not this one, has."""
    if not paths:
        return None
    return tampered(rule, f"{where} has {len(paths)} files that no savepoint has: {paths[:1]}")


def recovery(data: bytes, expected: bytes, where: str) -> Finding | None:
    """VERIFY-12: RECOVER.tsv leads whoever recovers by hand to the right bytes."""
    return None if data == expected else tampered("VERIFY-12", f"{where} does not fit the snapshot")


def own_check(lines: list[str]) -> list[Finding]:
    """VERIFY-13: what git's own check says, a line each; nothing where all is whole."""
    if not lines:
        return [passed("VERIFY-13", "git fsck: every object and ref is whole")]
    return [tampered("VERIFY-13", f"git fsck: {line}") for line in lines]


def pushed(one: Record, *, is_there: bool, remote: str) -> Finding:
    """VERIFY-14: the remote's tip leads back to the savepoint's commit."""
    if is_there:
        return passed("VERIFY-14", f"{remote} has record {one.seq}")
    detail = f"record {one.seq} is not at {remote} yet"
    return Finding("VERIFY-14", "skipped", detail, Verdict.PENDING, hint=_SYNC)


def newer(seq: int, where: str) -> Finding:
    """VERIFY-10: a commit of a record that a newer version wrote."""
    detail = f"{where} is of record {seq}, which a newer version wrote"
    return unchecked("VERIFY-10", detail, unsupported=True)


def behind(rule: str, one: Record) -> Finding:
    """A savepoint of which only the record was fetched."""
    return verdicts.behind(rule, f"record {one.seq} lies behind the border of the history here")


def kept(failure: SavepointError | None, remote: str) -> Finding:
    """VERIFY-15: nothing that was seen at the remote is gone; `failure` says what is."""
    if failure is not None:
        return failed("VERIFY-15", failure)
    return passed("VERIFY-15", f"{remote} has all that was seen there")


def own_history(failure: SavepointError | None, remote: str) -> Finding:
    """VERIFY-16: the remote has nothing that we have not; `failure` says what it has."""
    if failure is not None:
        return failed("VERIFY-16", failure)
    return passed("VERIFY-16", f"{remote} has nothing that does not come from here")


def not_asked(reason: str, hint: str) -> list[Finding]:
    """Rules 14 to 16 where the remote could not be asked, or was not to be."""
    return [unchecked(rule, reason, hint=hint) for rule in REMOTE_RULES]
