"""Whoever makes a savepoint starts the worker that pushes and anchors it."""

from __future__ import annotations

import ast

from tests.structure.sources import Source, sources, walked

_SAVE = {"save_consciousness_state", "save.save_consciousness_state", "save.finish_pending"}
_FOLLOW = {"follow.follow", "follow.behind"}
_OWN = ("savepoint/save.py",)  # what they are made of


def _called(source: Source) -> set[str]:
    """As it is written: `save.finish_pending`, or a name that was imported."""
    return {ast.unparse(one.func) for one in walked(source.tree) if isinstance(one, ast.Call)}


def _savers() -> list[Source]:
    return [one for one in sources() if one.path not in _OWN and _called(one) & _SAVE]


def test_whoever_saves_starts_a_worker() -> None:
    """`succession run` made a savepoint that stayed QUEUED_FOR_PUSH until the next `create`."""
    savers = _savers()
    assert len(savers) > 3, "the hook, a turn's succession, `create`, `sweep`"
    assert [one.path for one in savers if not _called(one) & _FOLLOW] == []
