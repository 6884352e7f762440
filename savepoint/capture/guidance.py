"""Which rules, skills and agent definitions a Claude Code session starts with: paths and hashes.

Only hashes: the content is in the project or the user's folder, and what of it the agent saw is in
the conversation. Links are followed, as the client does (a CLAUDE.md is often one to AGENTS.md),
but no folder is entered twice.
"""

from __future__ import annotations

import os

from savepoint.capture.payload import is_plain
from savepoint.core import limits
from savepoint.core.digest import sha256
from savepoint.core.errors import SavepointError
from savepoint.core.named import NamedTuple
from savepoint.store.files import read_bounded
from savepoint.store.session import guidance as started

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from savepoint.capture.request import Request
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store


class Guidance(NamedTuple):
    """One text that guides the agent."""

    path: str
    kind: str  # rule, scoped_rule (only with files of certain paths), imported_rule, agent,
    # skill (the frontmatter that its catalogue entry is made of), skill_body
    sha256: str


def guidance(project_dir: str, config_dir: str) -> list[Guidance]:
    """All of it, by kind and path, at most GUIDANCE_FILES; what cannot be read is left out."""
    found: dict[str, list[Guidance]] = {}
    waiting = [(kind, path, 0) for kind, path in _paths(project_dir, config_dir)]
    waiting += [(_RULE, path, _HOPS) for path in _nested(project_dir)]  # its imports wait, too
    for kind, path, hops in waiting:  # which grows
        if len(found) >= limits.GUIDANCE_FILES:
            break
        text = _read(path) if path not in found else None
        if text is not None:
            found[path] = list(_told(path, kind, text))
            if found[path][0].kind in (_RULE, _IMPORTED) and hops < _HOPS and b"@" in text:
                waiting += [(_IMPORTED, one, hops + 1) for one in _imports(text, path)]
    told = (one for file in found.values() for one in file)
    return sorted(told, key=lambda one: (one.kind, one.path))


def _told(path: str, kind: str, text: bytes) -> Iterator[Guidance]:
    if kind == "skill":
        yield Guidance(path, kind, sha256(frontmatter(text)).hexdigest())
        kind = "skill_body"
    elif kind == _RULE and os.path.basename(path) not in _RULES and _is_scoped(text):
        kind = "scoped_rule"
    yield Guidance(path, kind, sha256(text).hexdigest())


def _is_scoped(text: bytes) -> bool:
    """Does the agent get the rule only with files of certain paths?"""
    head = frontmatter(text)
    return head is not text and any(line.startswith(b"paths:") for line in head.split(b"\n"))


def _imports(text: bytes, path: str) -> list[str]:
    from savepoint.capture.agents import claude_imports

    return [one for one in claude_imports.imported(text, path) if is_plain(one)]


def note_start(store: Store, key: str, request: Request) -> None:
    """A session starts: keep the hashes of the rules, skills and agent definitions it starts with,
    so that a later change of them can be told. Raises DiskError.
    """
    found = guidance(request.project, request.config_dir)
    entries: list[Json] = [dict(one._asdict()) for one in found if is_plain(one.path)]
    started.save(store, key, entries)


def frontmatter(text: bytes) -> bytes:
    """What stands between the first line, `---`, and the next such; else the whole text."""
    lines = text.split(b"\n")
    if lines[0].rstrip() != b"---":
        return text
    ends = (at for at, line in enumerate(lines[1:], 1) if line.rstrip() == b"---")
    return b"\n".join(lines[1 : next(ends, len(lines))])


def _paths(project_dir: str, config_dir: str) -> Iterator[tuple[str, str]]:
    """Kind and path of what a session may start with: the project's own, then the user's."""
    project_settings = os.path.join(project_dir, ".claude")
    yield from ((_RULE, os.path.join(project_dir, name)) for name in _RULES)
    for folder in (project_settings, config_dir):
        yield _RULE, os.path.join(folder, "CLAUDE.md")
        yield from ((_RULE, path) for path in _below(os.path.join(folder, "rules"), _is_markdown))
        yield from (
            ("agent", path) for path in _below(os.path.join(folder, "agents"), _is_markdown)
        )
        yield from (("skill", path) for path in _skills(os.path.join(folder, "skills")))


def _nested(project_dir: str) -> Iterator[str]:
    """What may be there of a folder's own rules, which the agent gets when it works in it."""
    for name in _names(project_dir):
        if not name.startswith("."):
            yield os.path.join(project_dir, name, "CLAUDE.md")


def _skills(folder: str) -> Iterator[str]:
    return (os.path.join(folder, name, "SKILL.md") for name in _names(folder))


def _below(folder: str, wanted: Callable[[str], bool], depth: int = 0) -> Iterator[str]:
    """Paths of the files below a folder; links to folders are not entered."""
    for name in _names(folder):
        path = os.path.join(folder, name)
        if wanted(name):
            yield path
        elif depth < limits.COMPANION_DEPTH and not os.path.islink(path):
            yield from _below(path, wanted, depth + 1)


def _names(folder: str) -> list[str]:
    try:
        names = sorted(os.listdir(folder))[: limits.GUIDANCE_FILES]
    except OSError:
        return []
    return [name for name in names if os.fsencode(name).decode("utf-8", "replace") == name]


def _is_markdown(name: str) -> bool:
    return name.endswith(".md")


def _read(path: str) -> bytes | None:
    """A regular file's bytes; None if there is none, or it is too large or unreadable. Most are not
    there, and to resolve a path takes a look at each folder in it.
    """
    if not os.path.exists(path):
        return None
    try:
        return read_bounded(os.path.realpath(path), limits.GUIDANCE_BYTES)
    except (SavepointError, OSError):
        return None


_RULE, _IMPORTED = "rule", "imported_rule"
_RULES = ("CLAUDE.md", "CLAUDE.local.md")
_HOPS = limits.GUIDANCE_HOPS
