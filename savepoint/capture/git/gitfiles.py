"""What a repository says of itself in its own files, read by hand: HEAD, refs, config, reflogs.

No git process and so no program that the config names. Everything is bounded, and whatever cannot
be read or understood is absent, never an error. String methods are enough; to compile expressions
would cost the hook a millisecond at each start.
"""

from __future__ import annotations

import os

from savepoint.core import limits, spelling
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store.files import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from savepoint.store.worktree import Worktree

    Config: TypeAlias = dict[str, list[str]]  # section.subsection.key → values in order

UNKNOWN = "unknown"
BRANCHES = "refs/heads/"
REDACTED = "***"

_HEX = frozenset(b"0123456789abcdef")
_ID_DIGITS = {40, 64}  # SHA-1, SHA-256
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}
_TOKENS = ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-")
_OPERATIONS = {
    "MERGE_HEAD": "merge",
    "rebase-merge": "rebase",
    "rebase-apply": "rebase",
    "CHERRY_PICK_HEAD": "cherry-pick",
    "REVERT_HEAD": "revert",
    "BISECT_LOG": "bisect",
}


class Head(NamedTuple):
    """What is checked out."""

    commit: str | None  # full hex; None while there is no commit, or where it cannot be told
    ref: str | None  # `refs/heads/main`; None when detached, or where it cannot be told
    problem: str  # why it cannot be told, or nothing

    @property
    def branch(self) -> str | None:
        """The branch's name for people."""
        return None if self.ref is None else printable(self.ref.removeprefix(BRANCHES))


def read_head(worktree: Worktree) -> Head:
    """HEAD with the ref and commit that it leads to. A commit is not looked up, only named."""
    data = _read(os.path.join(worktree.git_dir, "HEAD"))
    if data is None:
        return Head(None, None, "HEAD is missing or cannot be read")
    ref = None
    for _ in range(limits.GIT_SYMREFS):
        data = data.strip()
        if len(data) in _ID_DIGITS and _HEX.issuperset(data):
            return Head(data.decode(), ref, "")
        name = os.fsdecode(data.removeprefix(b"ref:").strip())
        if not data.startswith(b"ref:") or not _is_plain(name):
            break
        ref = ref or name
        found = _read_ref(worktree, name)
        if found is None:
            return Head(None, ref, "")
        data = found
    return Head(None, ref, "HEAD does not lead to a commit")


def _read_ref(worktree: Worktree, name: str) -> bytes | None:
    """A ref's bytes: loose in this worktree, loose in the common directory, else packed."""
    for folder in (worktree.git_dir, worktree.common_dir):
        data = _read(os.path.join(folder, name))
        if data is not None:
            return data
    packed = _read(os.path.join(worktree.common_dir, "packed-refs"), limits.GIT_REFS_BYTES) or b""
    end = packed.find(b" " + os.fsencode(name) + b"\n")
    return packed[packed.rfind(b"\n", 0, end) + 1 : end] if end >= 0 else None


def read_config(worktree: Worktree) -> Config:
    """The repository's own config, and this worktree's where it says that it has one.

    What it includes is not read: an include may name any file.
    """
    config = parse_config(_read(os.path.join(worktree.common_dir, "config")) or b"")
    if last(config, "extensions.worktreeconfig").lower() == "true":
        own = parse_config(_read(os.path.join(worktree.git_dir, "config.worktree")) or b"")
        for key, values in own.items():
            config[key] = config.get(key, []) + values
    return config


def last(config: Config, key: str) -> str:
    """The value that counts, or the empty string."""
    return config.get(key, [""])[-1]


def parse_config(data: bytes) -> Config:
    """Git's config syntax (git-config(1), "Syntax"). A line that is none of it is skipped: git
    would refuse the whole file, but there may be work to save beside a damaged config.
    """
    config: Config = {}
    section = ""
    for line in _logical_lines(data.decode("utf-8", "surrogateescape")):
        text = line.strip()
        if text.startswith("["):
            header, text = _header(text)
            section = header or section
        key, equals, value = text.partition("=")
        key = key.rstrip().lower()
        if key[:1].isalpha() and key.replace("-", "").isalnum():
            read = _value(value.strip()) if equals else "true"
            config.setdefault(f"{section}.{key}", []).append(read)
    return config


def _logical_lines(text: str) -> Iterator[str]:
    """Lines, joined where one ends in a backslash that no other backslash escapes."""
    held = ""
    for line in text.replace("\r\n", "\n").split("\n"):
        held += line
        if (len(line) - len(line.rstrip("\\"))) % 2:
            held = held[:-1]
            continue
        yield held
        held = ""
    yield held


def _header(text: str) -> tuple[str, str]:
    """`[section "sub"] rest` as `section.sub` and the rest; an empty name for what is no header."""
    name, bracket, rest = text[1:].partition("]")
    if '"' not in name:
        return (name.strip().lower(), rest.strip()) if bracket else ("", "")
    name, _, quoted = text[1:].partition('"')
    sub = ""
    letters = iter(quoted)
    for letter in letters:
        if letter == '"':
            return f"{name.strip().lower()}.{sub}", "".join(letters).partition("]")[2].strip()
        sub += next(letters, "") if letter == "\\" else letter
    return "", ""


def _value(text: str) -> str:
    """Quotes and escapes undone, the comment and the blanks before it gone."""
    if not set(text) & set('"\\#;'):
        return text
    value = ""
    kept = 0  # letters up to the last one that is no blank, or quoted
    quoted = False
    letters = iter(text)
    for letter in letters:
        if letter in "#;" and not quoted:
            break
        if letter == '"':
            quoted = not quoted
        elif letter == "\\":
            escaped = next(letters, "")
            value += _ESCAPES.get(escaped, escaped)
        else:
            value += letter
        if quoted or not letter.isspace():
            kept = len(value)
    return value[:kept]


def remotes(config: Config) -> dict[str, str]:
    """Remote → where it fetches from, without credentials."""
    return {
        without_credentials(name): without_credentials(config[f"remote.{name}.url"][0])
        for name in _remote_names(config)
    }


def _remote_names(config: Config) -> list[str]:
    start, end = "remote.", ".url"
    return [key[len(start) : -len(end)] for key in config if key[:7] == start and key[-4:] == end]


def without_credentials(url: str) -> str:
    """A remote's URL for people: no user, password, token or query (`git@host:x` → `host:x`).

    A helper's address (`ext::sh -c …`) may hold anything: only the helper's name stays.
    """
    helper, colons, _ = url.partition("::")
    if colons and helper.replace("-", "").isalnum():
        return f"{helper}::{REDACTED}"
    scheme, separator, rest = url.partition("://")
    if separator:
        rest = rest.partition("?")[0].partition("#")[0]
        url = f"{scheme}://{_without_user(rest)}"
    else:
        first, slash, path = url.partition("/")
        url = _without_scp_user(first) + slash + path
    if any(token in url for token in _TOKENS):
        import re

        url = re.sub(rf"(?:{'|'.join(_TOKENS)})[\w-]+", REDACTED, url)
    return printable(url)


def _without_user(rest: str) -> str:
    """`user:password@host/path` without what is before the host. A password with an unescaped `/`
    ends the host part too early; then the last `@` is taken.
    """
    authority, slash, path = rest.partition("/")
    host = authority.rpartition("@")[2]
    if "@" in path and ":" in host and not host.rpartition(":")[2].isdigit():
        return rest.rpartition("@")[2]
    return host + slash + path


def _without_scp_user(text: str) -> str:
    """`git@host:path` without the user; an `@` in the path stays."""
    host, colon, path = text.partition(":")
    if "@" in host:
        return host.rpartition("@")[2] + colon + path
    return text.rpartition("@")[2]


def printable(text: str) -> str:
    """`text` as a document may hold it: bytes that are not UTF-8 escaped, and not too long."""
    clean = text.encode("utf-8", "backslashreplace").decode("utf-8")
    return clean[: limits.METADATA_STRING_CHARS]


def operation(worktree: Worktree) -> str | None:
    """What is in progress: merge, rebase, cherry-pick, revert, bisect; several with commas."""
    found = [
        name
        for file, name in _OPERATIONS.items()
        if os.path.lexists(os.path.join(worktree.git_dir, file))
    ]
    return ", ".join(found) or None


def last_push(worktree: Worktree | None, head: Head, config: Config) -> str:
    """When this clone last pushed its branch: the newest "update by push" in the reflogs of the
    branch's remote-tracking refs. `unknown` where no reflog says so.
    """
    if worktree is None or head.ref is None:
        return UNKNOWN
    branch = head.ref.removeprefix(BRANCHES)
    logs = os.path.join(worktree.common_dir, "logs", "refs", "remotes")
    times = [
        _last_push_in(os.path.join(logs, name, branch))
        for name in _remote_names(config)
        if _is_plain(name) and _is_plain(branch)
    ]
    newest = max(times, default=-1)
    return spelling.time_text(newest) if newest >= 0 else UNKNOWN


def _last_push_in(path: str) -> int:
    """Unix seconds, -1 for never."""
    for line in reversed((_read(path) or b"").split(b"\n")):
        who, _, what = line.partition(b"\t")
        seconds = who.split(b" ")[-2:][0]
        if what == b"update by push" and seconds.isdigit():
            return min(int(seconds), spelling.LAST_TIME)
    return -1


def _is_plain(name: str) -> bool:
    """A name that leads nowhere else: `[remote "../../x"]` and `ref: /etc/x` do."""
    return "\0" not in name and not {"", ".", ".."} & set(name.split("/"))


def _read(path: str, limit: int = limits.GIT_FILE_BYTES) -> bytes | None:
    """A regular file of at most `limit` bytes, wherever a link puts it; else None."""
    try:
        return read_bounded(os.path.realpath(path), limit)
    except SavepointError:
        return None
