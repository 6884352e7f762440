"""Names of files that a savepoint holds, before one of them becomes a path: what no honest save
writes is refused, what would make a program of somebody run is left out.

The names were signed by our own key, yet they come from a transcript and a repository, which
anybody may have written.
"""

from __future__ import annotations

import unicodedata
from itertools import pairwise

from savepoint.core.errors import TamperedError
from savepoint.core.patterns import late

_RESERVED = late(r"(?i)(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?")  # a device on Windows
_FORBIDDEN = late(r'[<>:"|?*\\\x00-\x1f]')  # on Windows, where \ also parts folders
_GIT_NAMES = {".git", "git~1"}  # the second is what FAT calls the first
_AGENT_FOLDERS = {".claude"}
_AGENT_FILES = {".mcp.json", ".claude.json"}
_NAME_BYTES = 255  # that file systems allow


def parts(name: bytes, *, windows: bool = False) -> tuple[bytes, ...]:
    """The parts of a relative path. Raises TamperedError for a name that leads out of a folder, or
    is none that a file here can have. windows: that system's rules hold as well.
    """
    found = tuple(name.split(b"/"))
    if name.startswith(b"/"):
        raise TamperedError(f"a file is named by an absolute path: {name!r}")
    if b"\0" in name or any(one in (b"", b".", b"..") for one in found):
        raise TamperedError(f"no file of a folder has the name {name!r}")
    if any(len(one) > _NAME_BYTES for one in found):
        raise TamperedError(f"a name of more than {_NAME_BYTES} bytes: {name[:40]!r}…")
    if windows and not all(map(_fits_windows, found)):
        raise TamperedError(f"this system has no file of the name {name!r}")
    return found


def hazard(path: tuple[bytes, ...]) -> str:
    """Why a file of these parts is not brought back, or nothing: git and agents run what such files
    say.
    """
    names = [_plain(one) for one in path]
    if any(one in _GIT_NAMES for one in names):
        return "belongs to git, which runs what its files say"
    if names[-1] in _AGENT_FILES:
        return "holds settings of an agent, which runs what they say"
    for folder, name in pairwise(names):
        is_settings = name.startswith("settings") or name == "hooks"
        if folder in _AGENT_FOLDERS and is_settings:
            return "holds settings of an agent, which runs what they say"
    return ""


def _plain(name: bytes) -> str:
    """As file systems that ignore case, composition, ignorable characters, or dots and blanks at
    the end may read it (git's own CVE-2014-9390 was one of these).
    """
    text = unicodedata.normalize("NFC", name.decode("utf-8", "surrogateescape"))
    shown = "".join(one for one in text if unicodedata.category(one) != "Cf")
    return shown.casefold().rstrip(". ")


def _fits_windows(name: bytes) -> bool:
    text = name.decode("utf-8", "surrogateescape")
    ends = text.endswith((".", " "))
    return not (_RESERVED.fullmatch(text) or _FORBIDDEN.search(text) or ends)
