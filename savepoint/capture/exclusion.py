"""What is never captured as a file, whatever the project says.

It stays listed with its reason. What the agent printed or read stands in the conversation, and is
protected by encryption alone. Names are compared without regard to case: on a file system that
ignores case, `identity.md` is IDENTITY.md, and elsewhere one file too many left out does no harm.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress

from savepoint.core.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_OWN = "belongs to savepoint"
_NEVER = "is never captured as a file"
_ENVIRONMENT = "is an environment file"
_KEY_FILE = "is a key file"
_KEY = "holds a private key"

# Each part of a path is looked at: a folder of such a name is left out with all that is in it.
# Plain comparisons: to compile expressions for them costs the hook a millisecond at each start.
_NEVER_NAMES = {"identity.md", "bootstrap_verification.json", "legal_case"}
_KEY_NAMES = {"root.seed", ".netrc", "_netrc", ".pgpass", ".git-credentials"}
_KEY_STARTS = ("id_rsa", "id_dsa", "id_ecdsa", "id_ed25519")
_KEY_ENDS = (".pem", ".key", ".p8", ".p12", ".pfx", ".ppk", ".jks", ".keystore", ".kdbx")

_SOLANA_KEY_BYTES = 64  # numbers in a Solana keypair file, a JSON array
_SOLANA_KEY_CHARS = 1024  # such a file is no longer, however it is laid out


class Exclusion:
    """The rules for one project: the fixed ones, its config's `exclude`, and our own folder."""

    def __init__(self, project: str, globs: Sequence[str] = (), home: str = "") -> None:
        """`project` is its real path, `home` any path of $SAVEPOINT_HOME.

        A glob is a name or path with `*`, `?`, `[…]` and `**`. It excludes what it matches, at any
        depth or, starting with `/`, from the project's root, and everything below that.
        """
        self._project = project
        self._home = os.path.realpath(home) if home else ""
        self._globs = [(_compiled(glob), glob) for glob in globs if glob.strip("/")]

    def moved(self, root: str) -> Exclusion:
        """The same rules for another root: that of a worktree which is not the project's folder."""
        return Exclusion(root, [glob for _, glob in self._globs], self._home)

    def reason(self, path: str | bytes) -> str | None:
        """Why the file at `path` (absolute, or from the project's root) must not be captured."""
        whole = os.path.normpath(os.path.join(self._project, os.fsdecode(path)))
        if self._home and _is_below(whole.casefold(), self._home.casefold()):
            return _OWN
        if self._home and _is_our_key(whole, self._home):
            return _OWN
        relative = whole
        if _is_below(whole, self._project):
            relative = whole[len(self._project.rstrip("/")) + 1 :]
        for name in relative.split("/"):
            why = name_reason(name)
            if why:
                return why
        for pattern, glob in self._globs:
            if pattern.search(relative):
                return f"is excluded by the config: {glob}"
        return None


def name_reason(name: str) -> str | None:
    """Why a file or folder of that name is never captured, wherever it lies."""
    name = name.casefold()
    if name in _NEVER_NAMES:
        return _NEVER
    if name.startswith(".env"):
        return _ENVIRONMENT
    if name in _KEY_NAMES or name.startswith(_KEY_STARTS) or name.endswith(_KEY_ENDS):
        return _KEY_FILE
    if "age-identity" in name or ("keypair" in name and name.endswith(".json")):
        return _KEY_FILE
    return None


def is_our_key(seen: os.stat_result, home: str) -> bool:
    """Is it one of our key files under another name? A hard link leads to no other path."""
    return seen.st_nlink > 1 and (seen.st_dev, seen.st_ino) in _key_files(home)


def _is_our_key(path: str, home: str) -> bool:
    try:
        return is_our_key(os.lstat(path), home)
    except (OSError, ValueError):
        return False


def _key_files(home: str) -> set[tuple[int, int]]:
    found = set()
    for folder, _, names in os.walk(os.path.join(home, "keys")):
        for name in names:
            with suppress(FileNotFoundError):  # what was being written has its name by now
                seen = os.lstat(os.path.join(folder, name))
                found.add((seen.st_dev, seen.st_ino))
    return found


def key_reason(content: bytes) -> str | None:
    """Why a file with this content is a key file, under whatever name."""
    start = content[:_SOLANA_KEY_CHARS].lstrip()
    while start.startswith(b"#"):  # age-keygen writes two lines of comment
        start = start.partition(b"\n")[2].lstrip()
    line = start.partition(b"\n")[0]
    if line.startswith(b"-----BEGIN ") and b"PRIVATE KEY" in line:
        return _KEY
    if line.startswith((b"AGE-SECRET-KEY-", b"PuTTY-User-Key-File-")):
        return _KEY
    if start.startswith(b"[") and len(content) < _SOLANA_KEY_CHARS:
        numbers = content.strip()[1:-1].split(b",")
        if len(numbers) == _SOLANA_KEY_BYTES and all(one.strip().isdigit() for one in numbers):
            return _KEY
    return None


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


_ANYTHING, _FOLDERS, _WITHIN = ".*?", "(?:.*?/)??", "[^/]*?"  # what **, **/ and * stand for


def _compiled(glob: str) -> re.Pattern[str]:
    """A glob as an expression for relative paths, which takes back next to nothing.

    Written down plainly, `*a*a*a*a*b` needs hours to refuse a name of a hundred a's, and takes the
    hook all its time. Between two wild cards stands a text with a fixed number of slashes: where it
    fits, what follows it fits as well as at any later place, so the first place is the only one to
    try, and the group is atomic. Only the last text of all must end where a name ends.
    """
    parts = _parts(glob.strip("/"), "" if glob.startswith("/") else _FOLDERS)
    runs: list[list[str]] = []  # each goes on to another folder, and then stays in it
    for wild, text in parts:
        if wild == _WITHIN:
            runs[-1].append(wild + text)
        else:
            runs.append([wild + text])
    *before, last = runs
    body = "".join(f"(?>{_run(one)})" for one in before) + _run(last)
    return re.compile(f"\\A{body}(?=/|\\Z)", re.IGNORECASE | re.DOTALL)


def _run(parts: list[str]) -> str:
    """Its first part is tried at each place, its last at each that lets the rest fit."""
    first, *within = parts
    return first + "".join(f"(?>{part})" for part in within[:-1]) + "".join(within[-1:])


def _parts(glob: str, wild: str) -> list[tuple[str, str]]:
    """Each wild card with the text behind it, as expressions. `wild` stands before the first."""
    import fnmatch

    parts = [(wild, "")]
    for mark in _MARK.findall(glob):
        wild, text = parts[-1]
        if mark in _WILD:
            own = _WILD[mark]
            if text or (wild == _FOLDERS and own == _WITHIN) or not wild:
                parts.append((own, ""))
            else:  # side by side the stronger counts
                parts[-1] = (_ANYTHING if _ANYTHING in (wild, own) else own, "")
        elif mark == "?":
            parts[-1] = (wild, text + "[^/]")
        elif len(mark) > 1:
            group = fnmatch.translate(mark)  # it ends with \Z
            parts[-1] = (wild, f"{text}(?!/){group[: group.rindex(')') + 1]}")
        else:
            parts[-1] = (wild, text + re.escape(mark))
    return parts


_WILD = {"**/": _FOLDERS, "**": _ANYTHING, "*": _WITHIN}
_MARK = late(r"(?s)\*\*/|\*\*|\*|\?|\[!?\]?[^]]*\]|.")
