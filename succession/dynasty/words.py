"""What a text speaks of: its paths and words, by which references and matches are told."""

from __future__ import annotations

from savepoint.core.named import NamedTuple
from savepoint.core.patterns import late
from succession.dynasty.constants import SEARCHED_CHARS, WORD_LETTERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from succession.dynasty.files.entry import Entry


class Mentions(NamedTuple):
    """Paths as written (`src/auth.ts`, `auth.ts`, `src/`), and words of four letters or more."""

    paths: frozenset[str]
    words: frozenset[str]

    def names(self, path: str) -> bool:
        """Is `path`, from the project's top, one of the paths? Without its folders as well."""
        return names(self.paths, path)

    def shares_folder(self, path: str) -> bool:
        """Is one of the paths in the folder of `path`, or that folder or one above it?"""
        folder = path.rpartition("/")[0]
        if not folder:
            return False
        folders = {one.rpartition("/")[0] for one in self.paths}
        whole = {one.rstrip("/") for one in self.paths if one.endswith("/")}
        return folder in folders or any(f"{folder}/".startswith(f"{one}/") for one in whole if one)


def of(one: Entry, more: Iterable[str] = ()) -> Mentions:
    """What an entry speaks of, within its first SEARCHED_CHARS. more: paths of its full text."""
    return Mentions(paths_of(one, more), words_of(one))


def paths_of(one: Entry, more: Iterable[str] = ()) -> frozenset[str]:
    """The paths of those alone."""
    return paths(one.text[:SEARCHED_CHARS]).union(more)


def words_of(one: Entry) -> frozenset[str]:
    """The words of those alone."""
    return words(one.text[:SEARCHED_CHARS])


def names(known: Iterable[str], path: str) -> bool:
    """Is `path`, from the project's top, one of those? Without its folders as well."""
    return any(path == one or path.endswith("/" + one) for one in known)


def paths(text: str) -> frozenset[str]:
    """Everything in it that looks like the path of a file or folder."""
    found = (match[0].removeprefix("./").rstrip(".") for match in _PATH.finditer(text))
    return frozenset(one for one in found if not _NUMBER.fullmatch(one))


def words(text: str) -> frozenset[str]:
    """Its words of WORD_LETTERS or more, in lower case."""
    return frozenset(_WORD.findall(text.lower()))


_NAME = r"[\w@+~-][\w@+~.-]*"
_PATH = late(
    rf"(?<![\w/.:-])(?:\./)?\.?(?:(?:{_NAME}/)+(?:{_NAME})?|[\w@+-][\w@+.-]*\.[A-Za-z][A-Za-z0-9]{{0,7}}\b)"
)
_NUMBER = late(r"[0-9.]*|e\.g|i\.e")
_WORD = late(rf"[^\W\d_]{{{WORD_LETTERS},}}")
