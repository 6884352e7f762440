"""One error tree. A class owns its message, its hint, its exit code and whether trying again helps.

    SavepointError                1
    ├── UsageError                2   wrong use of the command line
    ├── TranscriptError           1   what the agent wrote cannot be read as a session
    ├── OutputExistsError         1   a file that differs stands where we would write
    ├── SelectorError             1   no savepoint, file or session answers to that name
    ├── SettingsError             1   the agent's settings are not such that we may change them
    ├── HandoffError              1   what threads owe does not allow that, as things stand
    │   └── BoundaryError         1   a thread cannot be handed off now
    ├── CommitError               1   saved, but not committed to git; the next run does it
    ├── NoStoreError             10   no store for this folder
    ├── BusyError                11   another savepoint process holds the lock
    ├── DeadlineError            11   the time allowed has passed; what is left is pending
    ├── KeyFileError             12   a key is missing or unsafe
    ├── MalformedError           20   bytes that are not what our format allows
    │   ├── TamperedError        20   bytes that are not those that were signed
    │   └── DynastyError         20   a file of the dynasty is damaged
    ├── UnverifiableError        21   could not be checked
    ├── RolledBackError          22   an older state, or two histories of one key
    │   ├── ConflictError        22   the ledger has an entry that is not ours
    │   └── RemoteDivergedError  22   the remote has commits that are not ours
    ├── UnsupportedFormatError   23   written by a newer version
    ├── RemoteUnreachableError   30   the remote cannot be asked; what is queued stays queued
    ├── PushRefusedError         30   the remote was asked, and does not take it
    ├── LedgerUnreachableError   31   no answer of a ledger, or none that can be relied on
    ├── LedgerRefusedError       31   the ledger was asked, and says no
    │   ├── RejectedError        31   … to a transaction; `failure` says why
    │   ├── WrongClusterError    31   it is another cluster than the one that was chosen
    │   └── FundsError           31   nobody pays: too little, or more than the owner allowed
    └── DiskError                40   no space, input/output error, read-only

Exit codes: README.md, "Exit codes". An unknown code means failure.
"""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.core.ledger import Failure


class SavepointError(Exception):
    """Something savepoint can name: `message` for people, `hint` with what to do, `exit_code`."""

    exit_code = 1
    default_hint = ""
    retry = False  # does the same call help later, with nothing changed?

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint

    @property
    def name(self) -> str:
        """The class in words a program can match on: `no_store`, `tampered`, …"""
        stem = type(self).__name__.removesuffix("Error")
        return "".join("_" + c.lower() if c.isupper() else c for c in stem).lstrip("_")


class UsageError(SavepointError):
    """The command line asks for something that does not exist or does not go together."""

    exit_code = 2
    default_hint = "see `savepoint --help`"


class TranscriptError(SavepointError):
    """The transcript is missing, not a regular file, unreadable, or outside what we may read."""

    default_hint = "name the session's file with --transcript"


class OutputExistsError(SavepointError):
    """A file that differs stands where we would write (deja-vu#725: it was overwritten)."""

    default_hint = "choose another path, or say --force"


class SelectorError(SavepointError):
    """Nothing answers to that selector, path or session."""

    default_hint = "`savepoint list` shows what there is"


class SettingsError(SavepointError):
    """The agent's settings cannot be read, or not be changed without harm; they are untouched."""

    default_hint = "nothing was changed; put that right, then run the same again"


class HandoffError(SavepointError):
    """The ledger of threads does not allow it; nothing was written."""

    default_hint = "`savepoint handoff status` shows what each thread owes"


class BoundaryError(HandoffError):
    """In the middle of something: what would be cut off is named in the message."""

    default_hint = "`savepoint handoff ready` lists what is in the way, with its evidence"


class CommitError(SavepointError):
    """Git did not take a savepoint, or does not give one back. What is saved locally is safe."""

    retry = True
    default_hint = "the next save commits what is left; `savepoint doctor` looks at git"


class NoStoreError(SavepointError):
    """No store belongs to this folder."""

    exit_code = 10
    default_hint = "run `savepoint init` in the project's folder"


class BusyError(SavepointError):
    """Another savepoint process holds the lock."""

    exit_code = 11
    retry = True
    default_hint = "another savepoint is being made; try again in a moment"


class DeadlineError(SavepointError):
    """The time allowed has passed; what is left is pending and the next save finishes it."""

    exit_code = 11
    retry = True
    default_hint = "what was left is finished by the next save"


class KeyFileError(SavepointError):
    """A key file is missing, malformed, or readable by others."""

    exit_code = 12
    default_hint = "`savepoint doctor` names the file and what is wrong with it"


class MalformedError(SavepointError):
    """Bytes that our format does not allow: a second spelling, a wrong type, a broken structure."""

    exit_code = 20
    default_hint = (
        "`savepoint fsck --repair` brings back from git what is damaged; without, it lists it"
    )


class TamperedError(MalformedError):
    """Bytes that are not those that were hashed or signed."""


class DynastyError(MalformedError):
    """A file of the dynasty is damaged, or is none: nothing is read without it."""

    default_hint = "`savepoint doctor` names the savepoint that has it whole"


class UnverifiableError(SavepointError):
    """What was asked for could not be checked; nothing is known to be wrong."""

    exit_code = 21
    retry = True


class RolledBackError(SavepointError):
    """The state is older than one already seen, or two histories of one key exist."""

    exit_code = 22
    default_hint = "run `savepoint fsck --repair`"


class ConflictError(RolledBackError):
    """The account holds an entry that is not ours: another writer has the key."""

    default_hint = (
        "if no other machine of yours anchors this instance, its key is stolen: "
        "run `savepoint keys retire`"
    )


class RemoteDivergedError(RolledBackError):
    """The remote's branch has commits that neither lead to ours nor come from it."""

    default_hint = (
        "`savepoint sync --accept-remote` goes on from what the remote has; nothing is lost by it"
    )


class UnsupportedFormatError(SavepointError):
    """Written by a newer version of savepoint."""

    exit_code = 23
    default_hint = "upgrade savepoint"


class RemoteUnreachableError(SavepointError):
    """No answer, no way in: what is queued is pushed when there is one."""

    exit_code = 30
    retry = True
    default_hint = (
        "what is queued is tried again by itself, and now by `savepoint sync`; "
        "`savepoint config remote` shows where that is, and changes it"
    )


class PushRefusedError(SavepointError):
    """The remote answered, and refuses what we have; only its owner can change that."""

    exit_code = 30
    default_hint = "the remote says why: change it there, then run `savepoint sync`"


class LedgerUnreachableError(SavepointError):
    """No answer of a ledger in time, or none that can be relied on. Nothing is changed by it."""

    exit_code = 31
    retry = True
    default_hint = "try again; what is queued is tried again by itself, and now by `savepoint sync`"


class LedgerRefusedError(SavepointError):
    """The ledger answered, and it says no."""

    exit_code = 31
    default_hint = "`savepoint ledger status` shows what the ledger says"


class RejectedError(LedgerRefusedError):
    """A transaction that the ledger does not take, or that failed on it."""

    def __init__(self, message: str, failure: Failure | None = None, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.failure = failure


class WrongClusterError(LedgerRefusedError):
    """The genesis hash is not that of the cluster that was chosen."""

    default_hint = "name the endpoint of the right cluster: `savepoint config ledger`"


class FundsError(LedgerRefusedError):
    """Nobody pays: the payer has too little, or the owner allowed less."""

    default_hint = "`savepoint ledger balance` shows who pays and how much is missing"


class DiskError(SavepointError):
    """No space, quota, input/output error, read-only, no permission."""

    exit_code = 40
    default_hint = "make it readable and writable, or free space, then run the same again"

    @classmethod
    def of(cls, failure: OSError, path: str = "") -> DiskError:
        """Say in words what the kernel said of `path` (or of the path the failure names), and what
        helps against that: more space does not help against permissions.
        """
        where = path or str(failure.filename or "")
        number = failure.errno or 0
        what = _KERNEL_WORDS.get(number, failure.strerror or "failed")
        return cls(f"{where}: {what}" if where else what, hint=_REMEDIES.get(number, ""))

    def behind(self, seq: int) -> DiskError:
        """The same, where a savepoint was durable before it failed."""
        hint = "it stands, so do not make it again: `savepoint list` shows it"
        return DiskError(f"savepoint {seq} is saved, but {self.message}", hint=hint)


_KERNEL_WORDS = {
    errno.ENOSPC: "no space left (or no inodes)",
    errno.EDQUOT: "disk quota exceeded",
    errno.EROFS: "read-only file system",
    errno.EACCES: "permission denied",
    errno.EPERM: "operation not permitted",
    errno.EIO: "input/output error",
    errno.EFBIG: "file size limit reached",
    errno.EMFILE: "too many open files in this process",
    errno.ENFILE: "too many open files on this machine",
    errno.ELOOP: "is a link, or behind too many of them",
}
_AGAIN = "then run the same again"
_SPACE = f"free space, {_AGAIN}"
_PERMISSIONS = f"look at its permissions and owner (`ls -ld`), and at its folder's, {_AGAIN}"
_IN_ITS_PLACE = f"see what stands in its place and move that away, {_AGAIN}"
_REMEDIES = {
    errno.ENOSPC: _SPACE,
    errno.EDQUOT: _SPACE,
    errno.EROFS: f"make the file system writable, {_AGAIN}",
    errno.EACCES: _PERMISSIONS,
    errno.EPERM: _PERMISSIONS,
    errno.EIO: "the disk may be failing: copy what is on it, then run `savepoint fsck`",
    errno.EFBIG: f"raise the limit (`ulimit -f`), {_AGAIN}",
    errno.EMFILE: f"raise the limit (`ulimit -n`), {_AGAIN}",
    errno.ENFILE: f"end other programs, {_AGAIN}",
    errno.ELOOP: _IN_ITS_PLACE,
    errno.EISDIR: _IN_ITS_PLACE,
    errno.ENOTDIR: _IN_ITS_PLACE,
    errno.ENXIO: _IN_ITS_PLACE,
}
