"""A pattern that is compiled late is a pattern."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from savepoint.core.patterns import late

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The patterns that were compiled."""
    seen: list[str] = []
    real: Callable[..., re.Pattern[str]] = re.compile

    def compile_and_note(pattern: str, flags: int = 0) -> re.Pattern[str]:
        seen.append(pattern)
        return real(pattern, flags)

    monkeypatch.setattr(re, "compile", compile_and_note)
    return seen


def test_it_is_compiled_at_its_first_use_only(compiled: list[str]) -> None:
    pattern = late("(a+)b")
    assert compiled == []
    found = pattern.match("aab")
    assert found is not None
    assert found[1] == "aa"
    assert pattern.match("b") is None
    assert pattern.match("ab") is not None
    assert compiled == ["(a+)b"]


def test_it_does_what_a_pattern_does() -> None:
    pattern = late("A.b", re.IGNORECASE | re.DOTALL)
    assert pattern.fullmatch("a\nb") is not None
    assert pattern.sub("-", "xaxBx") == "x-x"
    assert pattern.findall("a1b a2b") == ["a1b", "a2b"]
    assert pattern.pattern == "A.b"
    with pytest.raises(AttributeError):
        pattern.nothing  # type: ignore[attr-defined]  # noqa: B018  # asked for to fail


def test_a_wrong_one_fails_at_its_first_use() -> None:
    wrong = late("(")
    with pytest.raises(re.error):
        wrong.match("a")
