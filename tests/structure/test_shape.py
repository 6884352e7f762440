"""The shape of the code: short functions, short files, everything annotated and explained.

The numbers are those of the best code of the field (sigstore, tuf, tessera: medians of 7 to 13).
"""

from __future__ import annotations

import ast
import statistics
from typing import TYPE_CHECKING

from tests.structure.sources import Source, sources, walked

if TYPE_CHECKING:
    from collections.abc import Iterator

_MEDIAN_LINES = 12  # of a function, with its signature and docstring
_LONG_LINES = 45  # at most one function in twenty is longer
_LONG_SHARE = 0.05
_FILE_LINES = 400  # without blank ones

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(source: Source) -> Iterator[_Function]:
    return (node for node in walked(source.tree) if isinstance(node, _Function))


def _length(function: _Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _is_annotated(function: _Function) -> bool:
    taken = function.args
    every = [*taken.posonlyargs, *taken.args, *taken.kwonlyargs, taken.vararg, taken.kwarg]
    missing = [a for a in every if a and not a.annotation and a.arg not in {"self", "cls"}]
    return function.returns is not None and not missing


def _place(source: Source, node: _Function) -> str:
    return f"{source.path}:{node.lineno} {node.name}"


def test_functions_are_short() -> None:
    lengths = {_place(s, f): _length(f) for s in sources() for f in _functions(s)}
    assert statistics.median(lengths.values()) <= _MEDIAN_LINES
    long = [f"{place}: {lines}" for place, lines in lengths.items() if lines > _LONG_LINES]
    assert len(long) <= _LONG_SHARE * len(lengths), long


def test_files_are_short() -> None:
    lines = {s.path: sum(1 for line in s.text.splitlines() if line.strip()) for s in sources()}
    assert {path: count for path, count in lines.items() if count > _FILE_LINES} == {}


def test_every_module_says_what_it_is_for() -> None:
    assert [s.path for s in sources() if not ast.get_docstring(s.tree)] == []


def test_every_function_is_annotated() -> None:
    bare = [_place(s, f) for s in sources() for f in _functions(s) if not _is_annotated(f)]
    assert bare == []


def test_measures_can_fail() -> None:
    source = Source.of("savepoint/a.py", "def f(a: int, *b) -> None:\n    x = 1\n    y = 2\n")
    (function,) = _functions(source)
    assert _length(function) == 3
    assert not _is_annotated(function)
    (fine,) = _functions(Source.of("savepoint/a.py", "def f(self, a: int) -> None: ..."))
    assert _is_annotated(fine)
