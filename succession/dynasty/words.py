"""What a text speaks of: its paths and words, by which references and matches are told."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from savepoint.core.named import NamedTuple
from succession.dynasty.constants import SEARCHED_CHARS, WORD_LETTERS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from succession.dynasty.entry import Entry


class Mentions(NamedTuple):
    """Paths as written (`src/auth.ts`, `auth.ts`, `src/`), and words of four letters or more."""

    paths: frozenset[str]
    words: frozenset[str]

    def names(self, path: str) -> bool:
        """Is `path`, from the project's top, one of the paths? Without its folders as well."""
        return any(path == one or path.endswith("/" + one) for one in self.paths)

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
    text = one.text[:SEARCHED_CHARS]
    return Mentions(paths(text).union(more), words(text))


def paths(text: str) -> frozenset[str]:
    """Everything in it that looks like the path of a file or folder."""
    found = (match[0].removeprefix("./").rstrip(".") for match in _PATH.finditer(text))
    return frozenset(one for one in found if not _NUMBER.fullmatch(one))


def words(text: str) -> frozenset[str]:
    """Its words of WORD_LETTERS or more, in lower case."""
    return frozenset(_WORD.findall(text.lower()))


_NAME = r"[\w@+~-][\w@+~.-]*"
_PATH = re.compile(
    rf"(?<![\w/.:-])(?:\./)?\.?(?:(?:{_NAME}/)+(?:{_NAME})?|[\w@+-][\w@+.-]*\.[A-Za-z][A-Za-z0-9]{{0,7}}\b)"
)
_NUMBER = re.compile(r"[0-9.]*|e\.g|i\.e")
_WORD = re.compile(rf"[^\W\d_]{{{WORD_LETTERS},}}")
