"""The chain: every change of an index is seen, and nothing in an index stops it from being read."""

from __future__ import annotations

import random
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import chain, record
from savepoint.core.chain import Chain, Gap
from tests.core import examples

LINES = examples.lines(5)
INDEX = b"".join(line + b"\n" for line in LINES)


def _file(*lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _is_whole(read: Chain) -> bool:
    return not (read.breaks or read.gaps or read.torn)


def _told(read: Chain) -> list[bytes]:
    return [one.line for one in read.records]


def test_a_good_index_is_read_whole() -> None:
    read = Chain(INDEX)
    assert _is_whole(read)
    assert _told(read) == LINES
    assert [one.seq for one in read.saves] == [2, 3, 4, 5]
    assert _is_whole(Chain(b""))


def test_every_flipped_byte_is_seen() -> None:
    """Each byte of an index, with one bit flipped; which bit is drawn."""
    draw = random.Random(1)
    data = _file(*LINES[:3])
    for at in range(len(data)):
        flipped = bytes([data[at] ^ 1 << draw.randrange(8)])
        read = Chain(data[:at] + flipped + data[at + 1 :])
        if at == len(data) - 1:  # the last LF: what was a line is a tail
            assert read.torn
            assert len(read.records) == 2
        else:
            assert read.breaks


@given(st.integers(0, len(INDEX) - 1), st.binary(min_size=1, max_size=3))
def test_every_inserted_byte_is_seen(at: int, inserted: bytes) -> None:
    read = Chain(INDEX[:at] + inserted + INDEX[at:])
    assert read.breaks or (read.torn and len(read.records) < 5)


def test_every_cut_leaves_the_lines_before_it() -> None:
    ends = [sum(len(line) + 1 for line in LINES[:n]) for n in range(6)]
    for at in range(len(INDEX)):
        read = Chain(INDEX[:at])
        whole = sum(end <= at for end in ends) - 1
        if at + 1 in ends:  # only the LF of a line is missing: it counts
            whole += 1
            assert read.torn == b""
        else:
            assert read.torn == INDEX[ends[whole] : at]
        assert not read.breaks
        assert not read.gaps
        assert _told(read) == LINES[:whole]


def test_every_other_order_is_seen() -> None:
    for order in permutations(LINES):
        assert _is_whole(Chain(_file(*order))) == (list(order) == LINES)


def test_every_line_left_out_or_doubled_is_seen() -> None:
    for at in range(5):
        doubled = Chain(_file(*LINES[: at + 1], *LINES[at:]))
        assert [one.line for one in doubled.breaks][:1] == [at + 2]
        without = Chain(_file(*LINES[:at], *LINES[at + 1 :]))
        if at == 0:
            assert {one.rule for one in without.breaks} == {"VERIFY-3"}
        elif at == 4:
            assert _told(without) == LINES[:4]  # an older index: only the trusted head can tell
        else:
            assert without.gaps == [Gap(at + 1, at + 1)]
            assert not without.breaks


@given(st.lists(st.sampled_from(LINES), max_size=7), st.booleans())
def test_only_the_true_beginnings_are_whole(lines: list[bytes], ended: bool) -> None:
    data = _file(*lines) if ended else b"\n".join(lines)
    assert _is_whole(Chain(data)) == (lines == LINES[: len(lines)])


@given(st.binary(max_size=200) | st.text('{}",:\n\r\\v1seq', max_size=200).map(str.encode))
def test_any_bytes_are_read(data: bytes) -> None:
    for read in (Chain(data), Chain(INDEX + data), Chain(data + INDEX)):
        breaks = {one.line for one in read.breaks}
        assert len(breaks) + len(read.records) >= data.count(b"\n")
    assert Chain(INDEX + data).torn == data.rpartition(b"\n")[2]


def test_a_gap_before_an_unfinished_last_line_is_noted() -> None:
    """With a line cut out and the last LF with it, an index once seemed whole."""
    read = Chain(_file(*LINES[:3]) + LINES[4])
    assert read.gaps == [Gap(4, 4)]
    assert _told(read) == [*LINES[:3], LINES[4]]


def test_a_jump_behind_a_break_is_a_break() -> None:
    read = Chain(_file(LINES[0], LINES[1].replace(b'"auto"', b'"stop"'), LINES[3]))
    assert read.gaps == []
    assert [(one.rule, one.line) for one in read.breaks] == [("VERIFY-3", 2), ("VERIFY-2", 3)]


def test_what_went_on_after_a_gap_has_any_prev() -> None:
    one = examples.save(examples.birth(), seq=9, prev="ab" * 32)
    read = Chain(_file(LINES[0], one.line))
    assert read.gaps == [Gap(2, 8)]
    assert not read.breaks


def test_newer_lines_are_no_damage_but_nothing_may_follow_them() -> None:
    newer = LINES[2].replace(b'"v":1', b'"v":2')
    read = Chain(_file(*LINES[:2], newer))
    assert [(one.rule, one.line, one.unsupported) for one in read.breaks] == [("VERIFY-1", 3, True)]
    down = Chain(_file(*LINES[:2], newer, LINES[3]))
    assert [one.unsupported for one in down.breaks] == [True, False]


def test_only_a_good_continuation_continues() -> None:
    one, two = record.parse(LINES[0]), record.parse(LINES[1])
    assert chain.continuation(LINES[1], one) == two
    assert chain.continuation(LINES[0], None) == one
    assert chain.continuation(LINES[1], None) is None
    assert chain.continuation(LINES[1], two) is None
    assert chain.continuation(b"", one) is None
    forged = LINES[1].replace(b'"auto"', b'"stop"')
    assert chain.continuation(forged, one) is None
    foreign = examples.save(one, seed=examples.OTHER_SEED)
    assert chain.continuation(foreign.line, one) is None
    unlinked = examples.save(one, prev="ab" * 32)
    assert chain.continuation(unlinked.line, one) is None
    renamed = two.line.replace(b"Gabriel #215", b"Gabriel #216")
    assert chain.continuation(renamed, one) is None


@pytest.mark.parametrize("torn", [b"", b"{", LINES[4][:-1], bytes(chain.TAIL_BYTES // 2 - 1)])
def test_the_last_line_is_found_from_the_end(torn: bytes) -> None:
    data = INDEX + torn
    for tail in (data, data[-chain.TAIL_BYTES :]):
        assert chain.last_line(tail) == (LINES[4], torn)


def test_it_is_known_whether_the_end_reaches_back_to_the_last_line() -> None:
    whole = LINES[3] + b"\n" + LINES[4] + b"\n" + bytes(chain.TAIL_BYTES)
    start = len(LINES[3])
    assert chain.is_enough(whole)
    assert chain.is_enough(whole[start:])
    assert not chain.is_enough(whole[start + 1 :])
    assert not chain.is_enough(bytes(chain.TAIL_BYTES))


def test_the_last_line_of_little() -> None:
    assert chain.last_line(b"") == (b"", b"")
    assert chain.last_line(b"torn") == (b"", b"torn")
    assert chain.last_line(LINES[0] + b"\n") == (LINES[0], b"")
    assert chain.last_line(b"\n") == (b"", b"")
