"""Edits of a JSON text keep every byte that they are not about."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.cli.agent import json_text
from savepoint.core.errors import MalformedError

_NAMES = st.text(min_size=1, max_size=6)
_SCALARS = st.none() | st.booleans() | st.integers(-9, 10**12) | st.floats(-1, 1) | st.text()
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=12,
)
_OBJECTS = st.dictionaries(_NAMES, _VALUES, max_size=4)
_LAYOUTS: list[dict[str, Any]] = [
    {},
    {"indent": 2},
    {"indent": 3},
    {"indent": "\t"},
    {"separators": (",", ":")},
    {"separators": (" ,\r\n", " : ")},
]


@given(_OBJECTS, st.sampled_from(_LAYOUTS), _NAMES, _VALUES, st.booleans())
def test_what_is_put_can_be_taken_out_again(
    before: dict[str, Any], layout: dict[str, Any], name: str, value: object, ascii_only: bool
) -> None:
    text = json.dumps(before, ensure_ascii=ascii_only, **layout)
    name = name + "!" * (name in before)
    after = json_text.put(text, (name,), value)  # type: ignore[arg-type]  # any JSON
    assert json.loads(after) == {**before, name: value}
    assert list(json.loads(after))[-1] == name
    assert json_text.remove(after, (name,)) == text


@given(st.lists(_VALUES, max_size=3), st.sampled_from(_LAYOUTS), _VALUES)
def test_what_is_appended_can_be_taken_out_again(
    before: list[Any], layout: dict[str, Any], value: object
) -> None:
    text = json.dumps({"a": {"b": before}}, **layout)
    after = json_text.append(text, ("a", "b"), value)  # type: ignore[arg-type]  # any JSON
    assert json.loads(after) == {"a": {"b": [*before, value]}}
    assert json_text.remove(after, ("a", "b", len(before))) == text


@given(_OBJECTS, st.sampled_from(_LAYOUTS), st.data())
def test_any_member_can_be_removed_or_replaced(
    before: dict[str, Any], layout: dict[str, Any], data: st.DataObject
) -> None:
    text = json.dumps(before, **layout)
    for name in before:
        without = json.loads(json_text.remove(text, (name,)))
        assert without == {other: value for other, value in before.items() if other != name}
        value = data.draw(_VALUES)
        assert json.loads(json_text.put(text, (name,), value)) == {**before, name: value}


def test_objects_around_it_are_made() -> None:
    after = json_text.append('{\n   "z": 1\n}', ("a", "b"), {"c": 1})
    assert after == (
        '{\n   "z": 1,\n   "a": {\n      "b": [\n         {\n            "c": 1\n         }\n'
        "      ]\n   }\n}"
    )


@pytest.mark.parametrize(
    "text",
    ["", "{", "{]", '{"a" 1}', '{"a":1,}', "[1,]", "{1:2}", "{} x", "NaN", '{"a":"\n"}', "[1 2]"],
)
def test_no_json(text: str) -> None:
    with pytest.raises(MalformedError):
        json_text.read(text)
    with pytest.raises(ValueError, match=r".+"):
        json.loads(text, parse_constant=lambda _: int("x"))


def test_deep_json_is_refused_not_followed() -> None:
    with pytest.raises(MalformedError, match="too deeply"):
        json_text.read("[" * 100_000)


@pytest.mark.parametrize("text", ['{"a": []}', '{"a": null}', '{"a": 1}'])
def test_what_is_in_the_way_is_not_replaced(text: str) -> None:
    with pytest.raises(MalformedError):
        json_text.put(text, ("a", "b"), 1)


def test_the_last_of_two_members_of_one_name_counts() -> None:
    assert json_text.put('{"a": 1, "a": 2}', ("a",), 3) == '{"a": 1, "a": 3}'
