"""Our NamedTuple behaves as typing's, for all that the packages do with theirs."""

from __future__ import annotations

import copy
import pickle
import typing
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import named

if TYPE_CHECKING:
    from collections.abc import Callable


class Ours(named.NamedTuple):
    """A point."""

    x: int
    y: str = "why"
    z: tuple[int, ...] = ()

    @property
    def twice(self) -> int:
        return 2 * self.x

    @classmethod
    def of(cls, x: int) -> Ours:
        return cls(x)


class Typings(typing.NamedTuple):
    """A point."""

    x: int
    y: str = "why"
    z: tuple[int, ...] = ()

    @property
    def twice(self) -> int:
        return 2 * self.x

    @classmethod
    def of(cls, x: int) -> Typings:
        return cls(x)


def _matched(value: Any) -> object:  # noqa: ANN401  # either class
    match value:
        case Ours(x, y) | Typings(x, y) if y:
            return x, y
        case _:
            return None


_BEHAVIOURS: list[Callable[[Any], object]] = [
    lambda one: one(1),
    lambda one: one(1, "a", (2,)),
    lambda one: one(z=(1,), x=2),
    lambda one: one(1, z=(2,)),
    lambda one: one.of(3).twice,
    lambda one: one._make([1, "a", ()]),
    lambda one: one(1)._replace(x=5, z=(1,)),
    lambda one: one(1)._asdict(),
    lambda one: list(one(1)._asdict()),
    lambda one: one._fields,
    lambda one: one._field_defaults,
    lambda one: one.__match_args__,
    lambda one: one.__doc__,
    lambda one: one.__module__,
    lambda one: one(1) == one(1) == (1, "why", ()),
    lambda one: hash(one(1)),
    lambda one: sorted([one(2), one(1)]),
    lambda one: (one(1).x, one(1)[1], *one(1)),
    lambda one: repr(one(1, "a'b")).replace(one.__name__, ""),
    lambda one: pickle.loads(pickle.dumps(one(1))),  # noqa: S301  # our own bytes
    lambda one: copy.copy(one(1)),
    lambda one: isinstance(one(1), tuple),
    lambda one: _matched(one(1)),
    lambda one: vars(one(1)) if hasattr(one(1), "__dict__") else "no room for more",
]


@pytest.mark.parametrize("behaviour", _BEHAVIOURS, ids=range(len(_BEHAVIOURS)))
def test_both_do_the_same(behaviour: Callable[[Any], object]) -> None:
    assert behaviour(Ours) == behaviour(Typings)


_MISTAKES: list[Callable[[Any], object]] = [
    lambda one: one(),
    lambda one: one(1, "a", (), 4),
    lambda one: one(1, x=1),
    lambda one: one(1, w=1),
    lambda one: one(y="a"),
    lambda one: one(1)._replace(w=1),
    lambda one: one._make([]),
    lambda one: setattr(one(1), "x", 2),
    lambda one: setattr(one(1), "w", 2),
    lambda one: delattr(one(1), "x"),
]


@pytest.mark.parametrize("mistake", _MISTAKES, ids=range(len(_MISTAKES)))
def test_both_refuse_the_same(mistake: Callable[[Any], object]) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)):
        mistake(Typings)
    with pytest.raises((TypeError, ValueError, AttributeError)):
        mistake(Ours)


def test_a_class_without_fields() -> None:
    class Nothing(named.NamedTuple):
        pass

    assert Nothing() == ()
    with pytest.raises(TypeError):
        Nothing(1)  # type: ignore[call-arg]  # the mistake
