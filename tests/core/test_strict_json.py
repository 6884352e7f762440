"""One value, one spelling; and nothing that a hostile document holds costs more than reading it."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import limits, strict_json
from savepoint.core.errors import MalformedError
from tests.core.values import json_values, mutations

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


@given(json_values)
def test_what_is_dumped_is_parsed(value: Json) -> None:
    data = strict_json.dump(value)
    assert strict_json.parse_canonical(data) == value
    assert strict_json.dump(strict_json.parse(data)) == data


@given(json_values, st.data())
def test_other_bytes_are_refused_or_another_value(value: Json, data: st.DataObject) -> None:
    whole = strict_json.dump(value)
    changed = data.draw(mutations(whole))
    try:
        found = strict_json.parse_canonical(changed)
    except MalformedError:
        return
    assert strict_json.dump(found) == changed != whole


@given(json_values, st.sampled_from(["ascii", "indent", "blanks"]))
def test_spellings_of_other_writers_are_refused(value: Json, how: str) -> None:
    plain = strict_json.dump(value)
    other = {
        "ascii": json.dumps(value, separators=(",", ":")),
        "indent": json.dumps(value, indent=1, ensure_ascii=False),
        "blanks": json.dumps(value, ensure_ascii=False),
    }[how].encode()
    assert strict_json.parse(other) == value
    if other != plain:
        with pytest.raises(MalformedError):
            strict_json.parse_canonical(other)


@given(st.binary(max_size=60) | st.text('[]{}",:\\u0d8e1.-+aIN \n', max_size=60).map(str.encode))
def test_any_bytes_are_parsed_or_refused(data: bytes) -> None:
    try:
        value = strict_json.parse(data)
    except MalformedError:
        return
    assert json.loads(data) == value  # what we take, everybody takes for the same
    strict_json.dump(value)


@given(st.integers())
def test_integers_of_64_bits_only(number: int) -> None:
    fits = limits.JSON_INTEGER_LEAST <= number <= limits.JSON_INTEGER_MOST
    data = b"[%d]" % number
    if fits:
        assert strict_json.parse_canonical(data) == [number]
    else:
        with pytest.raises(MalformedError):
            strict_json.parse(data)


@given(st.integers(1, 200), st.sampled_from([b"[", b'{"a":']), st.booleans())
def test_depth_is_bounded(depth: int, opening: bytes, closed: bool) -> None:
    close = {b"[": b"]", b'{"a":': b"}"}[opening]
    data = opening * depth + b"0" + close * (depth if closed else 0)
    if closed and depth <= limits.JSON_DEPTH:
        strict_json.parse_canonical(data)
    else:
        with pytest.raises(MalformedError):
            strict_json.parse(data)


@given(st.text(alphabet=st.characters(categories=["Cs"]), min_size=1, max_size=3))
def test_lone_surrogates_can_neither_be_written_nor_read(text: str) -> None:
    with pytest.raises(MalformedError, match="surrogate"):
        strict_json.dump({"a": text})
    with pytest.raises(MalformedError):
        strict_json.parse(text.encode("utf-8", "surrogatepass"))
    escaped = json.dumps(text)
    if not any("\ud800" <= one < "\udc00" <= two for one, two in pairwise(text)):
        with pytest.raises(MalformedError, match="surrogate"):
            strict_json.parse(escaped.encode())


HOSTILE = {
    "quotes and backslashes": b"[" * 65 + b'"\\' * 500_000,
    "escaped quotes": b"[" * 65 + b'"\\"' * 300_000,
    "empty strings": b"[" * 65 + b'""' * 500_000,
    "an unended string": b"[" * 65 + b'"' + b"\\\\" * 500_000,
    "brackets": b"[" * 1_000_000,
    "digits": b"9" * 1_000_000,
    "an exponent": b"1e" + b"9" * 1_000_000,
    "blanks": b" " * 1_000_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_bytes_are_refused_in_linear_time(name: str) -> None:
    """160 KB of quotes and backslashes once took 71 s."""
    before = time.process_time()
    with pytest.raises(MalformedError):
        strict_json.parse(HOSTILE[name])
    assert time.process_time() - before < 2


def test_size_is_looked_at_first() -> None:
    with pytest.raises(MalformedError, match="at most 3 are allowed"):
        strict_json.parse(b"\xff\xff\xff\xff", 3)
    assert strict_json.parse(b"[1]", 3) == [1]


@pytest.mark.parametrize("data", [b'{"a":1}', b'{"a":1}\n\n', b'{"a":1}\r\n', b"[]\n", b"\n", b""])
def test_a_file_is_one_object_and_an_lf(data: bytes) -> None:
    assert strict_json.parse_file(b'{"a":1}\n') == {"a": 1}
    with pytest.raises(MalformedError):
        strict_json.parse_file(data)
