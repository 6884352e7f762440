"""The source of the packages, parsed, for the tests of their structure."""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).resolve().parents[2]
PACKAGES = ("savepoint", "anchor_service", "succession")  # those that exist by now are looked at


class Source(NamedTuple):
    """One module."""

    path: str  # from the project's root, with /
    text: str
    tree: ast.Module

    @classmethod
    def of(cls, path: str, text: str) -> Source:
        """Parse `text` as if it stood at `path`."""
        return cls(path, text, ast.parse(text, path))

    @property
    def module(self) -> str:
        """Its dotted name: `savepoint.core.keys`, and `savepoint.core` for an `__init__`."""
        return self.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@functools.cache
def sources() -> list[Source]:
    """Every module of the packages, parsed once a process."""
    files = [file for package in PACKAGES for file in sorted((PROJECT / package).rglob("*.py"))]
    return [
        Source.of(file.relative_to(PROJECT).as_posix(), file.read_text(encoding="utf-8"))
        for file in files
    ]


@functools.lru_cache(maxsize=1024)  # trees compare by identity
def walked(tree: ast.Module) -> tuple[ast.AST, ...]:
    """Every node of a module: as `ast.walk`, once a tree."""
    return tuple(ast.walk(tree))


def imported(source: Source) -> Iterator[tuple[int, str]]:
    """Line and dotted name of each import, wherever it stands, under TYPE_CHECKING too.

    `from a.b import c` gives `a.b.c`: c may be a module.
    """
    for node in walked(source.tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(source, node)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)


def _absolute(source: Source, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = source.module.split(".")
    up = node.level - source.path.endswith("/__init__.py")
    return ".".join([*parts[: len(parts) - up], *([node.module] if node.module else [])])
