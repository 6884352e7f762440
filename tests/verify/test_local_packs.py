"""The local witness on real packs: rules 7 and 8, and that each stored byte is read once."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import limits, packs, segments
from savepoint.core.segments import Segment
from savepoint.core.strict_json import parse
from savepoint.core.verdicts import Lack, Verdict
from savepoint.store.witness import evidence
from savepoint.store.witness.witness import verify_local
from tests.verify import builder
from tests.verify.builder import Built, flip
from tests.verify.spoiling import SPOILING, SPOILING_IDS, failing, of, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.record import Record

BIG = b"".join(b'{"line": %d, "text": "%d"}\n' % (n, n * n * 7919) for n in range(120_000))


def pack_of(built: Built, one: Record) -> Path:
    document: Any = parse(built.snapshot(one).read_bytes())
    listed = document["conversation_history"]["transcript"]["segments"]
    return Path(built.paths.store.pack(listed[-1]["pack"]))


# VERIFY-7


@pytest.mark.parametrize("at", [0, 4, 12, -1], ids=["first", "size", "salt", "last"])
def test_verify_7_flipped_byte_of_a_pack_names_it(built: Built, at: int) -> None:
    path = pack_of(built, built.records()[2])
    flip(path, at)
    report = verify_local(built.paths)
    assert report.exit_code == 20
    assert of(report) == {2: Verdict.VERIFIED, 3: Verdict.TAMPERED, 4: Verdict.VERIFIED}
    assert f"objects/{path.parent.name}/{path.name}" in failing(report, 3)["VERIFY-7"]


def test_verify_7_every_byte_of_a_pack_counts(built: Built) -> None:
    path = pack_of(built, built.records()[1])
    whole = path.read_bytes()
    for at in range(len(whole)):
        flip(path, at)
        assert of(verify_local(built.paths, lambda saves: saves[:1])) == {2: Verdict.TAMPERED}, at
        path.write_bytes(whole)


@pytest.mark.parametrize("spoil", SPOILING, ids=SPOILING_IDS)
def test_verify_7_pack_that_is_not_the_named_file_is_tampering(
    built: Built, spoil: Callable[[Path], None]
) -> None:
    spoil(pack_of(built, built.records()[3]))
    report = verify_local(built.paths)
    assert of(report) == {2: Verdict.VERIFIED, 3: Verdict.VERIFIED, 4: Verdict.TAMPERED}
    assert "VERIFY-7" in failing(report, 4)


def test_verify_7_other_pack_under_the_name_is_tampering(built: Built) -> None:
    first, second = (pack_of(built, one) for one in built.records()[1:3])
    second.write_bytes(first.read_bytes())
    assert of(verify_local(built.paths))[3] is Verdict.TAMPERED


def test_verify_7_pack_longer_than_any_is_tampering_and_not_read(built: Built) -> None:
    path = pack_of(built, built.records()[3])
    with path.open("r+b") as file:
        file.truncate(1 << 40)
    assert "at most" in failing(verify_local(built.paths), 4)["VERIFY-7"]


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
@pytest.mark.parametrize("reading", [True, False])
def test_verify_7_unreadable_pack_is_unverifiable(
    built: Built, monkeypatch: pytest.MonkeyPatch, code: int, reading: bool
) -> None:
    unreadable(monkeypatch, pack_of(built, built.records()[3]), code, reading=reading)
    report = verify_local(built.paths)
    assert of(report) == {2: Verdict.VERIFIED, 3: Verdict.VERIFIED, 4: Verdict.UNVERIFIABLE}
    assert set(failing(report, 4)) == {"VERIFY-7", "VERIFY-8"}


# VERIFY-8: the key signed what does not fit the packs


def _segments_of(document: Any) -> list[dict[str, Any]]:  # noqa: ANN401  # JSON of any shape
    listed: list[dict[str, Any]] = document["conversation_history"]["transcript"]["segments"]
    return listed


def _reroot(document: Any) -> None:  # noqa: ANN401  # JSON of any shape
    transcript = document["conversation_history"]["transcript"]
    listed = [Segment.from_json(one) for one in transcript["segments"]]
    transcript["bytes"] = sum(one.bytes for one in listed)
    transcript["root"] = segments.root_of(listed)


@pytest.mark.parametrize(
    "members",
    [
        {"lines": 7},
        {"bytes": 1},
        {"bytes": 5_000},
        {"offset": 25},
        {"offset": 1 << 50},
        {"length": 3},
        {"length": limits.FRAME_BYTES},
        {"sha256": "ab" * 32},
    ],
    ids=lambda members: "-".join(f"{name}-{value}"[:20] for name, value in members.items()),
)
def test_verify_8_segment_that_does_not_open_as_named_is_tampering(
    built: Built, members: dict[str, Any]
) -> None:
    def change(document: Any) -> None:  # noqa: ANN401  # JSON of any shape
        _segments_of(document)[0].update(members)
        _reroot(document)

    one = builder.spoilt(built, change)
    report = verify_local(built.paths)
    assert of(report)[one.seq] is Verdict.TAMPERED
    assert "objects/" in failing(report, one.seq)["VERIFY-8"]


def test_verify_8_frame_that_opens_without_end_is_stopped(built: Built) -> None:
    """A bomb: some KB that open to 64 MiB, under a segment that states 1,000 bytes."""
    frame = packs.compress(bytes(64 * limits.MIB))
    data = packs.header(bytes(16)) + frame
    name = hashlib.sha256(data).hexdigest()
    path = Path(built.paths.store.pack(name))
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)

    def change(document: Any) -> None:  # noqa: ANN401  # JSON of any shape
        segment = _segments_of(document)[0]
        segment.update(bytes=1000, lines=0, pack=name, offset=24, length=len(frame))
        _reroot(document)

    one = builder.spoilt(built, change)
    assert "another length" in failing(verify_local(built.paths), one.seq)["VERIFY-8"]


@pytest.mark.parametrize("member", ["root", "bytes"])
def test_verify_8_root_and_size_must_fit_the_segments(built: Built, member: str) -> None:
    def change(document: Any) -> None:  # noqa: ANN401  # JSON of any shape
        transcript = document["conversation_history"]["transcript"]
        transcript[member] = 5 if member == "bytes" else "ab" * 32

    one = builder.spoilt(built, change)
    report = verify_local(built.paths)
    assert set(failing(report, one.seq)) == {"VERIFY-8"}
    assert "t.jsonl" in failing(report, one.seq)["VERIFY-8"]


def test_verify_8_hash_of_a_loaded_file_of_one_segment_must_fit(built: Built) -> None:
    def change(document: Any) -> None:  # noqa: ANN401  # JSON of any shape
        document["loaded_files"]["a.py"]["sha256"] = "ab" * 32

    one = builder.spoilt(built, change)
    assert "a.py" in failing(verify_local(built.paths), one.seq)["VERIFY-8"]


@pytest.mark.parametrize("swapped", [True, False])
def test_verify_8_hash_of_a_loaded_file_of_several_segments_must_fit(
    built: Built, swapped: bool
) -> None:
    builder.save(built, b"x\n", loaded={"big": BIG})

    def change(document: Any) -> None:  # noqa: ANN401  # JSON of any shape
        listed = document["loaded_files"]["big"]["segments"]
        assert len(listed) > 2
        if swapped:
            listed[0], listed[1] = listed[1], listed[0]

    one = builder.spoilt(built, change)
    report = verify_local(built.paths)
    assert set(failing(report, one.seq)) == ({"VERIFY-8"} if swapped else set())
    assert of(report)[one.seq - 1] is Verdict.VERIFIED


def test_verify_8_damaged_part_of_a_large_file_is_told_once(built: Built) -> None:
    one = builder.save(built, b"x\n", loaded={"big": BIG})
    flip(pack_of(built, one), -100)
    report = verify_local(built.paths)
    assert of(report)[one.seq] is Verdict.TAMPERED
    assert failing(report, one.seq)["VERIFY-8"].count("\n") == 1


def test_verify_8_lists_kept_outside_are_followed(built: Built) -> None:
    files = {"a": b"one\n", "big": BIG, "c": b"three\n"}
    one = builder.save(built, b"y\n", loaded=files, spilled=True)
    report = verify_local(built.paths)
    assert of(report)[one.seq] is Verdict.VERIFIED
    document: Any = parse(built.snapshot(one).read_bytes())
    (part,) = document["loaded_files"]["list"]
    flip(Path(built.paths.store.pack(part["pack"])), -1)
    assert of(verify_local(built.paths))[one.seq] is Verdict.TAMPERED


@pytest.mark.parametrize(
    ("spoil", "verdict"), [(Path.unlink, Verdict.TAMPERED), (None, Verdict.UNVERIFIABLE)]
)
def test_verify_8_list_that_is_missing_or_unreadable(
    built: Built,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Path], None] | None,
    verdict: Verdict,
) -> None:
    one = builder.save(built, b"y\n", loaded={"a": b"one\n"}, spilled=True)
    document: Any = parse(built.snapshot(one).read_bytes())
    path = Path(built.paths.store.pack(document["loaded_files"]["list"][0]["pack"]))
    spoil(path) if spoil else unreadable(monkeypatch, path, errno.EIO)
    report = verify_local(built.paths)
    assert of(report)[one.seq] is verdict
    assert set(failing(report, one.seq)) == {"VERIFY-7", "VERIFY-8"}


@pytest.mark.parametrize("change", [{"count": 2}, {"list": []}])
def test_verify_8_list_that_is_not_the_one_named_is_tampering(
    built: Built, change: dict[str, Any]
) -> None:
    builder.save(built, b"y\n", loaded={"a": b"one\n"}, spilled=True)
    one = builder.spoilt(built, lambda document: document["loaded_files"].update(change))  # type: ignore[union-attr]
    assert "VERIFY-8" in failing(verify_local(built.paths), one.seq)


# reading


def test_each_stored_byte_is_read_once(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(8):
        text = BIG[: 1_300_000 + 400_000 * number]
        own = b"".join(b"%d %d\n" % (number, line) for line in range(200_000))
        files = {"big": own, f"{number}": b"%d" % number}
        builder.save(built, text, loaded=files, spilled=number % 2 == 1)
    read: list[str] = []
    real = evidence.read

    def counted(path: str, limit: int) -> bytes | Lack:
        read.append(os.path.basename(path))
        return real(path, limit)

    monkeypatch.setattr(evidence, "read", counted)
    seen: list[tuple[int, int]] = []
    report = verify_local(built.paths, None, lambda done, total: seen.append((done, total)))
    assert report.verdict is Verdict.VERIFIED
    assert len(report.savepoints) == 11
    assert sorted(read) == sorted(set(read))
    assert {path.name for path in built.packs()} <= set(read)
    whole = sum(path.stat().st_size for path in built.packs())
    assert seen[-1] == (whole, whole)
    assert seen == sorted(seen)


@pytest.mark.parametrize("changed", [False, True])
def test_verify_8_file_whose_segments_lie_in_many_packs_is_hashed_in_order(
    built: Built, changed: bool
) -> None:
    for number in range(1, 5):  # each stores one more segment of the same file in a pack of its own
        builder.save(built, BIG[: number * 1_200_000])

    def change(document: Any) -> None:  # noqa: ANN401  # JSON of any shape
        whole = document["conversation_history"]["transcript"]["segments"]
        size = sum(one["bytes"] for one in whole)
        document["loaded_files"]["a"] = {
            "known": "read",
            "sha256": "ab" * 32 if changed else hashlib.sha256(BIG[:size]).hexdigest(),
            "size": size,
            "changed": None,
            "reason": None,
            "segments": whole,
        }

    one = builder.spoilt(built, change)
    assert set(failing(verify_local(built.paths), one.seq)) == ({"VERIFY-8"} if changed else set())
