"""NamedTuple, at a tenth of what typing's costs at the start of a process.

typing's compiles the annotation of each field and the constructor of each class: 110 µs a class and
1 ms for the compiler, in sum 7 ms of a fire. Nothing is compiled here. A type checker sees typing's
own, and tests/core/test_named.py holds the two against each other.
"""

from __future__ import annotations

__all__ = ["NamedTuple"]

TYPE_CHECKING = False  # which type checkers know as well: to import typing costs a fire 2.4 ms
if TYPE_CHECKING:
    from typing import ClassVar, NamedTuple, Self
else:
    from operator import itemgetter

    class _Maker(type):
        """Makes of a class's annotations what typing.NamedTuple makes of them."""

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, object]) -> _Maker:
            if bases != (tuple,):
                fields = tuple(members.get("__annotations__", ()))
                defaults = {field: members.pop(field) for field in fields if field in members}
                members |= {field: property(itemgetter(at)) for at, field in enumerate(fields)}
                members |= {"_fields": fields, "__match_args__": fields}
                members |= {"_field_defaults": defaults, "__slots__": ()}
            return super().__new__(cls, name, bases, members)

    class NamedTuple(tuple, metaclass=_Maker):
        """As typing.NamedTuple, to be the only base of a class with annotations as its fields."""

        __slots__ = ()
        _fields = ()
        _field_defaults: ClassVar[dict[str, object]] = {}

        def __new__(cls, *values: object, **named: object) -> Self:
            """All fields, by place or by name; those with a default may be left out."""
            if named or len(values) != len(cls._fields):
                values = cls._completed(values, named)
            return tuple.__new__(cls, values)

        @classmethod
        def _completed(cls, values: tuple[object, ...], named: dict[str, object]) -> list[object]:
            """All values in their order, or TypeError as of a function with these parameters."""
            rest = cls._fields[len(values) :]
            known = cls._field_defaults | named
            missing = [field for field in rest if field not in known]
            if len(values) > len(cls._fields) or missing or not named.keys() <= set(rest):
                wrong = [name for name in named if name not in rest]
                given = f"{len(values)} values; missing: {missing}; wrong or twice: {wrong}"
                raise TypeError(f"{cls.__name__} takes {cls._fields}, not {given}")
            return [*values, *(known[field] for field in rest)]

        @classmethod
        def _make(cls, values: object) -> Self:
            return cls(*values)

        def _replace(self, **named: object) -> Self:
            values = [
                named.pop(field, value) for field, value in zip(self._fields, self, strict=True)
            ]
            return type(self)(*values, **named)  # raises TypeError for what is left

        def _asdict(self) -> dict[str, object]:
            return dict(zip(self._fields, self, strict=True))

        def __getnewargs__(self) -> tuple[object, ...]:
            return tuple(self)

        def __repr__(self) -> str:
            given = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
            return f"{type(self).__name__}({given})"
