"""Segments: equal content has equal cuts, however it was read; the root names one file only."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import limits, segments
from savepoint.core.errors import MalformedError
from savepoint.core.segments import Segment
from tests.core import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from savepoint.core.strict_json import Json

SOFT, HARD = 8, 20  # in place of 2^20 and 2^24, so that small content has many segments
contents = st.lists(st.sampled_from([b"\n", b"x", b"yyyyy", b"z" * 25]), max_size=40).map(b"".join)


def _pieces(data: bytes) -> list[bytes]:
    found, start = [], 0
    while (end := segments.cut(data, start, final=True)) is not None:
        found.append(data[start:end])
        start = end
    return found


def _fed(chunks: list[bytes]) -> list[bytes]:
    """As a reader feeds it that never holds the whole file."""
    found: list[bytes] = []
    buffer = bytearray()
    for chunk in chunks:
        buffer += chunk
        while (end := segments.cut(buffer, 0, final=False)) is not None:
            found.append(bytes(buffer[:end]))
            del buffer[:end]
    return found + _pieces(bytes(buffer))


@pytest.fixture(autouse=True, scope="module")
def _small_limits() -> Iterator[None]:
    with (
        patch.object(limits, "SEGMENT_SOFT_BYTES", SOFT),
        patch.object(limits, "SEGMENT_HARD_BYTES", HARD),
    ):
        yield


@given(contents, st.lists(st.integers(1, 30), max_size=60))
def test_cuts_do_not_depend_on_how_a_file_is_read(data: bytes, sizes: list[int]) -> None:
    chunks, rest = [], data
    for size in sizes:
        chunks.append(rest[:size])
        rest = rest[size:]
    assert _fed([*chunks, rest]) == _pieces(data)


@given(contents)
def test_segments_are_the_file_within_bounds(data: bytes) -> None:
    pieces = _pieces(data)
    assert b"".join(pieces) == data
    assert all(1 <= len(one) <= HARD for one in pieces)
    for one in pieces[:-1]:
        assert len(one) == HARD or (len(one) >= SOFT and one.endswith(b"\n"))
        assert b"\n" not in one[SOFT - 1 : -1]
    if pieces:
        assert b"\n" not in pieces[-1][SOFT - 1 : -1]


@given(contents, contents)
def test_what_is_appended_changes_no_closed_segment(data: bytes, more: bytes) -> None:
    before, after = _pieces(data), _pieces(data + more)
    assert after[: max(0, len(before) - 1)] == before[:-1]
    if more and before and before[-1].endswith(b"\n") and len(before[-1]) >= SOFT:
        assert after[: len(before)] == before


@given(contents, contents)
def test_roots_of_different_files_differ(one: bytes, other: bytes) -> None:
    roots = [segments.root_of([examples.segment(s) for s in _pieces(f)]) for f in (one, other)]
    assert (roots[0] == roots[1]) == (one == other)


def test_root_has_the_length_in_it() -> None:
    assert segments.root(0, []) != segments.root(1, [])
    assert segments.root(2, ["ab" * 32]) != segments.root(1, ["ab" * 32])


@given(st.binary(min_size=1, max_size=HARD))
def test_a_segment_is_read_as_it_was_written(raw: bytes) -> None:
    one = examples.segment(raw)
    assert Segment.from_json(one.to_json()) == one
    assert one.lines == raw.count(b"\n")


@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        {},
        dict(reversed(examples.segment(b"x")._asdict().items())),
        examples.segment(b"x")._asdict() | {"more": 1},
        examples.segment(b"x")._asdict() | {"sha256": "AB" * 32},
        examples.segment(b"x")._asdict() | {"pack": "../" + "ab" * 31},
        examples.segment(b"x")._asdict() | {"bytes": 0},
        examples.segment(b"x")._asdict() | {"bytes": HARD + 1},
        examples.segment(b"x")._asdict() | {"lines": True},
        examples.segment(b"x")._asdict() | {"offset": 23},
        examples.segment(b"x")._asdict() | {"length": limits.FRAME_BYTES + 1},
        examples.segment(b"x")._asdict() | {"length": "9"},
    ],
)
def test_what_is_no_segment_is_refused(value: Json) -> None:
    with pytest.raises(MalformedError):
        Segment.from_json(value)
