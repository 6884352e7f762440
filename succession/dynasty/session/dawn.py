"""Dawn: what the next ruler finds when it wakes, the state of git and what Dusk knows about it."""

from __future__ import annotations

from savepoint.core.named import NamedTuple
from succession.dynasty import words
from succession.dynasty.constants import COMMITS_SHOWN, LIST_NAMES, WISDOM_ENTRIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from succession.dynasty.files.entry import Entry
    from succession.dynasty.files.meta import Life


class Git(NamedTuple):
    """What is known of the project's repository. Clean text, all of it."""

    branch: str | None = None  # None: no repository
    commits: tuple[tuple[str, str], ...] = ()  # full id and subject, newest first
    changes: tuple[str, ...] | None = None  # paths that are not committed; None: not known

    @property
    def lines(self) -> str:
        """As it stands in Dawn, each line with its LF."""
        shown = [f"- Branch: {self.branch or 'none (no repository)'}\n"]
        if self.commits:
            shown.append("- Recent commits:\n")
            newest = self.commits[:COMMITS_SHOWN]
            shown += [f"  - {commit[:7]} {subject}\n" for commit, subject in newest]
        return "".join([*shown, f"- Uncommitted changes: {self._changed}\n"])

    @property
    def _changed(self) -> str:
        if self.changes is None:
            return "unknown"
        return f"yes ({names(self.changes)})" if self.changes else "no"


def names(paths: Sequence[str]) -> str:
    """The first ones, and how many more there are."""
    more = len(paths) - LIST_NAMES
    return ", ".join(paths[:LIST_NAMES]) + (f" and {more} more" if more > 0 else "")


def wisdom(
    git: Git, layers: Sequence[Sequence[Entry]], lives: Mapping[str, Life]
) -> tuple[Entry, ...]:
    """What Dusk knows of the current work: entries with a path that is being changed, then those
    with a word of four letters of the branch's name or of such a path; by score, then in order.
    What was drawn from git is not said again.
    """
    changed = git.changes or ()
    tokens = words.words(" ".join([git.branch or "", *changed]))
    ranked = []
    for place, one in enumerate(one for layer in layers for one in layer):
        if lives[one.id].drawn:
            continue
        known = words.paths_of(one, lives[one.id].paths) if changed else frozenset[str]()
        is_path = any(words.names(known, path) for path in changed)
        if is_path or words.words_of(one) & tokens:
            ranked.append((not is_path, -one.ref, place, one))
    return tuple(one for *_, one in sorted(ranked, key=lambda rank: rank[:3])[:WISDOM_ENTRIES])
