"""Packs are written beside what the caller does, and hold what they are said to hold."""

from __future__ import annotations

import hashlib
import os
import random
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits, packs
from savepoint.core.segments import Segment
from savepoint.store import durable
from savepoint.store.layout import Home, Store
from savepoint.store.packs import PackWriter, read_segment

if TYPE_CHECKING:
    from pathlib import Path

SIZES = (1, 1000, 200_000, 3, 1_500_000, 200_001, 70_000)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    one = Home(str(tmp_path)).store("0" * 32)
    durable.make_directories(one.objects)
    return one


def pieces(seed: int = 1) -> list[bytes]:
    rng = random.Random(seed)
    return [rng.randbytes(size) for size in SIZES]


def test_everything_comes_back_from_where_it_is_said_to_be(store: Store) -> None:
    with PackWriter(store, {}) as writer:
        added = [writer.add(raw) for raw in pieces()]
        writer.finish()
        settled = [writer.settled(one) for one in added]
    assert [read_segment(store, one) for one in settled] == pieces()
    assert [one.bytes for one in settled] == list(SIZES)
    assert {one.pack for one in settled} == writer.written
    assert [os.path.isfile(store.pack(name)) for name in writer.written] == [True]
    ends = sorted((one.offset, one.length) for one in settled)
    begins = [limits.PACK_HEADER_BYTES, *(offset + length for offset, length in ends)]
    assert begins[:-1] == [offset for offset, _ in ends], "no byte that no frame covers"
    (name,) = writer.written
    assert begins[-1] == os.path.getsize(store.pack(name))


def test_what_is_known_is_not_stored_again(store: Store) -> None:
    with PackWriter(store, {}) as writer:
        twice = [writer.add(raw) for raw in pieces() + pieces()]
        writer.finish()
        first = [writer.settled(one) for one in twice]
    assert first[: len(SIZES)] == first[len(SIZES) :]
    known = {one.sha256: one for one in first}
    with PackWriter(store, dict(known)) as writer:
        assert [writer.settled(writer.add(raw)) for raw in pieces()] == first[: len(SIZES)]
        writer.finish()
    assert writer.written == frozenset()


def test_a_pack_that_is_gone_is_not_built_on(store: Store) -> None:
    raw = b"a" * 300_000
    lost = Segment(hashlib.sha256(raw).hexdigest(), len(raw), 0, "a" * 64, 24, 30)
    with PackWriter(store, {lost.sha256: lost}) as writer:
        stored = writer.add(raw)
        writer.finish()
        assert read_segment(store, writer.settled(stored)) == raw


def test_full_packs_are_closed_and_the_next_begun(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PACK_BYTES", 400_000)
    with PackWriter(store, {}) as writer:
        added = [writer.add(raw) for raw in pieces(1) + pieces(2)]
        writer.finish()
        settled = [writer.settled(one) for one in added]
    assert len(writer.written) > 2
    assert [read_segment(store, one) for one in settled] == pieces(1) + pieces(2)


def test_it_can_be_finished_and_gone_on_with(store: Store) -> None:
    with PackWriter(store, {}) as writer:
        early = writer.add(b"early" * 100_000)
        writer.finish()
        late = writer.add(b"late" * 100_000)
        writer.finish()
        assert len(writer.written) == 2
        assert read_segment(store, writer.settled(early)) == b"early" * 100_000
        assert read_segment(store, writer.settled(late)) == b"late" * 100_000


def test_a_failure_beside_us_is_raised_to_us(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_raw: bytes) -> bytes:
        raise MemoryError

    with PackWriter(store, {}) as writer:
        writer.add(b"a")
        monkeypatch.setattr(packs, "compress", fail)
        writer.add(b"b" * 300_000)
        with pytest.raises(MemoryError):
            writer.finish()
    assert os.listdir(store.objects) == []


def test_without_threads_it_is_done_at_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_given: object) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("_thread.start_new_thread", refuse)
    with PackWriter(store, {}) as writer:
        added = [writer.add(raw) for raw in pieces()]
        writer.finish()
        assert [read_segment(store, writer.settled(one)) for one in added] == pieces()


def test_what_is_not_finished_leaves_nothing(store: Store) -> None:
    with PackWriter(store, {}) as writer:
        writer.add(b"a" * 300_000)
        writer.add(b"b")
        assert len(os.listdir(store.objects)) == 1
    assert os.listdir(store.objects) == []
