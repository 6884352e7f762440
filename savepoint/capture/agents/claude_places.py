"""Where Claude Code keeps what belongs to a session. Only reads, follows no links."""

from __future__ import annotations

import os
import stat

from savepoint.capture.agents import Companions
from savepoint.capture.agents.claude_scan import Scan
from savepoint.core import limits
from savepoint.core.errors import MalformedError
from savepoint.core.patterns import late
from savepoint.core.spelling import is_session_key
from savepoint.store.files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from savepoint.capture.agents.adapter import Fold

NAME = "claude-code"  # of the agent


def companions(transcript: str, config_dir: str, session_id: str, scan: Fold) -> Companions:
    """Files that belong to the session beside its transcript, and what was left out.

    Labels: below the session's own folder `<transcript without .jsonl>/` the path in it
    (`subagents/agent-x.jsonl`, `tool-results/…`); `agent-<hex>.jsonl` for a subagent of a client
    before 2.1.2, which lies beside the transcript with those of other sessions; and
    `file-history/<name>` for a copy of an edited file to which a record refers. A copy that is gone
    is not told: the client keeps only the last hundred.
    """
    found = _Found()
    folder = transcript.removesuffix(".jsonl")
    if folder != transcript:
        found.below(folder, "", limits.COMPANION_DEPTH)
        found.agents_beside(os.path.dirname(transcript), session_id)
    if is_session_key(session_id):
        kept = os.path.join(config_dir, "file-history", session_id)
        found.named(kept, "file-history/", scan.backups)
    return Companions(sorted(found.files.items()), found.omitted)


def transcript_path(config_dir: str, cwd: str, session_id: str) -> str | None:
    """The transcript of that session id in any project's folder; None if there is none.

    Of several, one with messages before one without (moving to a worktree leaves a stub behind),
    then that of `cwd`'s project, then the largest. Never another session's: the newest file of a
    project need not be the one that a hook means.
    """
    if not is_session_key(session_id):
        return None
    near = project_folders(config_dir, cwd)
    paths = [os.path.join(folder, session_id + ".jsonl") for folder in _all_folders(config_dir)]
    sizes = {path: size for path in paths if (size := _regular_size(path)) is not None}
    if len(sizes) < 2:
        return next(iter(sizes), None)
    return max(sizes, key=lambda p: (_has_messages(p), os.path.dirname(p) in near, sizes[p]))


def newest_first(config_dir: str, project_dir: str) -> Iterator[str]:
    """The transcripts of the sessions that were started in `project_dir`, newest first."""
    for _, path in sorted(written(config_dir, project_dir), reverse=True):
        if is_session_of(path, project_dir):
            yield path


def written(config_dir: str, project_dir: str) -> list[tuple[int, str]]:
    """When each transcript in the project's folder was last written, in ns, and its path. Another
    project may have a folder of that name: `is_session_of` tells.
    """
    return _written_in(project_folders(config_dir, project_dir))


def all_written(config_dir: str) -> list[tuple[int, str]]:
    """The same of all projects."""
    return _written_in(_all_folders(config_dir))


def begun_in(path: str) -> str | None:
    """The folder in which the session of a transcript was begun; None where it has no messages, or
    does not tell.
    """
    if not _has_messages(path):
        return None
    return _first_cwd(_beginning(path, limits.SEGMENT_SOFT_BYTES))


def _written_in(folders: Iterable[str]) -> list[tuple[int, str]]:
    return [
        (entry.stat(follow_symlinks=False).st_mtime_ns, entry.path)
        for folder in folders
        for entry in _entries(folder, _TRANSCRIPT.fullmatch)
        if entry.is_file(follow_symlinks=False)
    ]


def own_folders(config_dir: str, transcript: str) -> tuple[str, ...]:
    """Real paths of the folders in which the agent keeps plans, and its memory of the project."""
    folders = [os.path.join(config_dir, "plans")]
    if transcript:
        folders.append(os.path.join(os.path.dirname(transcript), "memory"))
    return tuple(map(os.path.realpath, folders))


def project_folders(config_dir: str, path: str) -> list[str]:
    """The folders that can hold sessions started in `path`: one, or, since the client ends a long
    name with a hash of its runtime's own, all that start like it. They need not exist.
    """
    name = folder_name(path)
    if len(name) <= _NAME_CHARS:
        return [os.path.join(config_dir, "projects", name)]
    start = name[:_NAME_CHARS] + "-"
    folders = _all_folders(config_dir)
    return sorted(folder for folder in folders if os.path.basename(folder).startswith(start))


def folder_name(path: str) -> str:
    """The name of a project's folder, not yet shortened.

    Every UTF-16 unit of the real path, in NFC, that is no ASCII letter or digit becomes `-`: so
    different paths may share a name.
    """
    real = os.path.realpath(path)
    if not real.isascii():
        import unicodedata  # costs the hook; hardly a path needs it

        real = unicodedata.normalize("NFC", real)
    return _NO_NAME.sub("-", _TWO_UNITS.sub("--", real))


class _Found:
    """Collects companions within the limits."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.omitted: list[tuple[str, str]] = []

    def below(self, folder: str, label: str, depth: int) -> None:
        """All regular files below a folder."""
        if not _is_folder(folder):
            return
        if depth < 0:
            self._omit(label, "too deep")
            return
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                self.below(entry.path, f"{label}{entry.name}/", depth - 1)
            else:
                self._add(label + entry.name, entry)

    def agents_beside(self, folder: str, session_id: str) -> None:
        """Old subagents' transcripts of this session: their first record names it."""
        for entry in _entries(folder, _is_old_agent):
            if _first_session(entry.path) == session_id:
                self._add(entry.name, entry)

    def named(self, folder: str, label: str, names: Container[str]) -> None:
        """The regular files of a folder that have one of the names."""
        for entry in _entries(folder) if _is_folder(folder) else ():
            if entry.name in names:
                self._add(label + entry.name, entry)

    def _add(self, label: str, entry: os.DirEntry[str]) -> None:
        if not entry.is_file(follow_symlinks=False):
            self._omit(label, "a link" if entry.is_symlink() else "not a regular file")
        elif label in self.files:
            self._omit(label, "another file has this name")
        elif _clean(label) != label:
            self._omit(label, "its name is not UTF-8")
        elif len(self.files) >= limits.COMPANION_FILES:
            self._omit("", f"more than {limits.COMPANION_FILES} files")
        else:
            self.files[label] = entry.path

    def _omit(self, label: str, reason: str) -> None:
        told = (_clean(label), reason)
        if told not in self.omitted[-1:] and len(self.omitted) < limits.COMPANION_FILES:
            self.omitted.append(told)


def _is_old_agent(name: str) -> bool:
    """`agent-<6 to 40 hex digits>.jsonl`"""
    number = name.removeprefix("agent-").removesuffix(".jsonl")
    is_framed = name == f"agent-{number}.jsonl"
    return is_framed and 6 <= len(number) <= 40 and not number.strip("0123456789abcdef")


def _entries(folder: str, wanted: Callable[[str], object] | None = None) -> list[os.DirEntry[str]]:
    """What is in a folder, by name; nothing if it cannot be listed. wanted: what the name is like;
    of many hundred sessions in a folder a fire looks for few.
    """
    try:
        with os.scandir(folder) as listing:
            found = [one for one in listing if wanted is None or wanted(one.name)]
            return sorted(found, key=lambda entry: entry.name)
    except OSError:
        return []


def _all_folders(config_dir: str) -> Iterator[str]:
    for entry in _entries(os.path.join(config_dir, "projects")):
        if entry.is_dir():
            yield entry.path


def _is_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _regular_size(path: str) -> int | None:
    try:
        seen = os.lstat(path)
    except OSError:
        return None
    return seen.st_size if stat.S_ISREG(seen.st_mode) else None


def _beginning(path: str, size: int) -> bytes:
    """At most `size` bytes from the start of a regular file; none if it cannot be read."""
    try:
        fd = open_regular(path)
    except (OSError, MalformedError):
        return b""
    try:
        return os.pread(fd, size, 0)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _has_messages(path: str) -> bool:
    """Does the file hold messages? One too long to be metadata alone is believed to."""
    beginning = _beginning(path, limits.SEGMENT_SOFT_BYTES)
    scan = Scan.empty()
    scan.feed(beginning)
    return scan.end().messages > 0 or len(beginning) == limits.SEGMENT_SOFT_BYTES


def is_session_of(path: str, project_dir: str) -> bool:
    """Has the file messages, and no other project of the same folder name as its home?"""
    if not _has_messages(path):
        return False
    home = _first_cwd(_beginning(path, limits.SEGMENT_SOFT_BYTES))
    if home is None or os.path.realpath(home) == os.path.realpath(project_dir):
        return True
    length = _NAME_CHARS
    return (
        folder_name(home)[:length] != folder_name(project_dir)[:length]
    )  # forked into this folder


def _first_cwd(beginning: bytes) -> str | None:
    return next(filter(None, (_member(line, "cwd") for line in beginning.split(b"\n"))), None)


def _first_session(path: str) -> str | None:
    return _member(_beginning(path, limits.SCAN_LINE_BYTES).split(b"\n", 1)[0], "sessionId")


def _member(line: bytes, key: str) -> str | None:
    from savepoint.capture.agents import claude_facts, claude_lines

    records, _ = claude_lines.objects(line)
    return claude_facts.name(records[0].get(key)) if records else None


def _clean(label: str) -> str:
    return label.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


_NAME_CHARS = 200  # characters of a project folder's name before a hash
_TWO_UNITS = late("[\U00010000-\U0010ffff]")
_NO_NAME = late("[^A-Za-z0-9]")
_TRANSCRIPT = late(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\.jsonl")
