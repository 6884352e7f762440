"""The local witness on real stores: rules 5 to 8, and the reading around all of them."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import limits, packs, segments, spelling
from savepoint.core.segments import Segment
from savepoint.core.strict_json import dump, parse
from savepoint.core.verdicts import Lack, Report, Verdict
from savepoint.core.verify_index import INDEX_RULES
from savepoint.core.verify_stored import STORED_RULES
from savepoint.store import evidence, files, trusted, witness
from savepoint.store.witness import verify_local
from tests.verify import builder
from tests.verify.builder import Built, flip

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.record import Record

BIG = b"".join(b'{"line": %d, "text": "%d"}\n' % (n, n * n * 7919) for n in range(120_000))


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("template")
    return builder.store_of(folder / "home", folder / "project", 3)


@pytest.fixture
def built(template: Built, tmp_path: Path) -> Built:
    """Three savepoints, records 2 to 4; each has a snapshot and a pack of its own."""
    return builder.copy(template, tmp_path / "home")


def failing(report: Report, seq: int) -> dict[str, str]:
    """Rule → details of what did not pass, of the local witness of one savepoint."""
    (one,) = [one for one in report.savepoints if one.seq == seq]
    found: dict[str, str] = {}
    for finding in one.witnesses["local"].findings:
        if finding.result != "pass":
            found[finding.rule] = found.get(finding.rule, "") + finding.detail + "\n"
    return found


def of(report: Report) -> dict[int, Verdict]:
    return {one.seq: one.verdict for one in report.savepoints}


def pack_of(built: Built, one: Record) -> Path:
    document: Any = parse(built.snapshot(one).read_bytes())
    listed = document["conversation_history"]["transcript"]["segments"]
    return Path(built.paths.store.pack(listed[-1]["pack"]))


def unreadable(
    monkeypatch: pytest.MonkeyPatch, path: Path, code: int, *, reading: bool = False
) -> None:
    """The kernel refuses to open one file, or to read it; everything else is as it is."""
    real_open, real_read = files.open_regular, os.read

    def open_regular(name: str) -> int:
        if name == str(path) and not reading:
            raise OSError(code, os.strerror(code), name)
        return real_open(name)

    def read(fd: int, size: int) -> bytes:
        if (
            reading
            and os.path.exists(f"/proc/self/fd/{fd}")
            and os.path.samestat(os.fstat(fd), path.stat())
        ):
            raise OSError(code, os.strerror(code))
        return real_read(fd, size)

    monkeypatch.setattr(evidence, "open_regular", open_regular)
    monkeypatch.setattr(os, "read", read)


def test_whole_store_is_verified_by_every_rule(built: Built) -> None:
    report = verify_local(built.paths)
    assert (report.verdict, report.exit_code, report.hint) == (Verdict.VERIFIED, 0, "")
    assert of(report) == dict.fromkeys((2, 3, 4), Verdict.VERIFIED)
    for one in report.savepoints:
        told = [found.rule for found in one.witnesses["local"].findings]
        assert told == [*INDEX_RULES, *STORED_RULES]


def test_git_and_chain_are_off_and_say_why(built: Built) -> None:
    savepoint: Any = verify_local(built.paths).to_json()["savepoints"][-1]  # type: ignore[index]
    git, chain = savepoint["witnesses"]["git"], savepoint["witnesses"]["chain"]
    assert git == {"verdict": "OFF", "findings": [], "reason": "not configured"}
    assert chain["independent"] is False
    assert set(chain) - set(git) == {
        *("ledger", "independent", "covered_by", "account", "account_data", "github_commit"),
        "upgrade_authority",
    }


def test_selection_takes_what_it_is_asked_for(built: Built) -> None:
    report = verify_local(built.paths, lambda saves: saves[-1:])
    assert [one.seq for one in report.savepoints] == [4]

    def nothing(saves: list[Record]) -> list[Record]:
        raise LookupError(len(saves))

    with pytest.raises(LookupError, match="3"):
        verify_local(built.paths, nothing)


def test_damage_at_the_end_of_the_index_is_not_missed_by_asking_for_the_newest(
    built: Built,
) -> None:
    built.write_lines(*built.lines[:-1], built.lines[-1][:-9] + b"x" + built.lines[-1][-8:])
    report = verify_local(built.paths, lambda saves: saves[-1:])
    assert of(report) == {3: Verdict.VERIFIED}
    assert (report.verdict, report.exit_code) == (Verdict.TAMPERED, 20)
    (fault,) = report.further
    assert f"{built.paths.slug}/logs/precompact-savepoint.jsonl line 4" in fault.detail
    assert verify_local(built.paths, None).further == (fault,)


@pytest.mark.parametrize("at", [0, 1500, -1], ids=["first", "middle", "last"])
def test_verify_1_flipped_byte_of_the_index_names_it(built: Built, at: int) -> None:
    flip(built.index_file, at)
    report = verify_local(built.paths)
    details = "".join(one.detail for one in report.chain.findings)
    assert report.exit_code == 20
    assert f"instances/{built.paths.slug}/logs/precompact-savepoint.jsonl line" in details


def test_verify_1_missing_index_is_tampering(built: Built) -> None:
    built.index_file.unlink()
    report = verify_local(built.paths)
    assert (report.exit_code, report.savepoints) == (20, ())


@pytest.mark.parametrize("reading", [True, False])
def test_verify_1_unreadable_index_is_unverifiable(
    built: Built, monkeypatch: pytest.MonkeyPatch, reading: bool
) -> None:
    unreadable(monkeypatch, built.index_file, errno.EIO, reading=reading)
    report = verify_local(built.paths)
    assert (report.verdict, report.exit_code) == (Verdict.UNVERIFIABLE, 21)


def test_verify_4_deletion_of_the_newest_savepoint_is_a_rollback(built: Built) -> None:
    built.write_lines(*built.lines[:-1])
    report = verify_local(built.paths)
    assert (report.exit_code, report.hint) == (22, "run `savepoint fsck --repair`")
    assert of(report) == dict.fromkeys((2, 3), Verdict.ROLLED_BACK)


@pytest.mark.parametrize("ruin", [None, b"", b"{}\n"], ids=["missing", "empty", "ruin"])
def test_verify_4_without_trusted_head_is_unverifiable(built: Built, ruin: bytes | None) -> None:
    built.trusted.unlink() if ruin is None else built.trusted.write_bytes(ruin)
    assert verify_local(built.paths).exit_code == 21


def test_verify_4_unreadable_trusted_head_is_unverifiable(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(name: str) -> int:
        raise PermissionError(errno.EACCES, "Permission denied", name)

    monkeypatch.setattr("savepoint.store.files.open_regular", refuse)
    report = verify_local(built.paths)
    assert report.exit_code == 21
    assert "cannot be read: permission denied" in failing(report, 4)["VERIFY-4"]


def test_verify_4_save_between_head_and_index_is_no_rollback(
    built: Built, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever of the two is read first, a savepoint is made right after it."""
    done: list[Record] = []

    def after(real: Callable[..., Any]) -> Callable[..., Any]:
        def read(*given: Any) -> Any:  # noqa: ANN401  # stands for either
            found = real(*given)
            if not done:
                done.append(built.records()[0])
                builder.save(built, b"meanwhile\n")
            return found

        return read

    monkeypatch.setattr(witness, "_seen", after(witness._seen))
    monkeypatch.setattr(evidence, "read", after(evidence.read))
    report = verify_local(built.paths)
    assert done
    assert report.verdict is Verdict.VERIFIED


# VERIFY-5


@pytest.mark.parametrize("at", [0, 900, -1], ids=["first", "middle", "last"])
def test_verify_5_flipped_byte_of_a_snapshot_names_it(built: Built, at: int) -> None:
    one = built.records()[2]
    flip(built.snapshot(one), at)
    report = verify_local(built.paths)
    found = failing(report, 3)
    assert report.exit_code == 20
    assert of(report) == {2: Verdict.VERIFIED, 3: Verdict.TAMPERED, 4: Verdict.VERIFIED}
    assert f"instances/{built.paths.slug}/{one.snapshot_file} has another" in found["VERIFY-5"]
    assert set(found) == {"VERIFY-5", "VERIFY-6", "VERIFY-7", "VERIFY-8"}  # the rest: skipped


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\n")


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _link(path: Path) -> None:
    path.rename(path.with_suffix(".moved"))
    path.symlink_to(path.with_suffix(".moved"))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _fifo(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


SPOILING = [Path.unlink, _cut, _grow, _empty, _link, _folder, _fifo]
SPOILING_IDS = ["missing", "cut", "grown", "emptied", "link", "folder", "fifo"]


@pytest.mark.parametrize("spoil", SPOILING, ids=SPOILING_IDS)
def test_verify_5_snapshot_that_is_not_the_signed_file_is_tampering(
    built: Built, spoil: Callable[[Path], None]
) -> None:
    spoil(built.snapshot(built.records()[3]))
    report = verify_local(built.paths)
    assert of(report) == {2: Verdict.VERIFIED, 3: Verdict.VERIFIED, 4: Verdict.TAMPERED}
    assert "VERIFY-5" in failing(report, 4)


@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES, errno.EMFILE])
@pytest.mark.parametrize("reading", [True, False])
def test_verify_5_unreadable_snapshot_is_unverifiable(
    built: Built, monkeypatch: pytest.MonkeyPatch, code: int, reading: bool
) -> None:
    unreadable(monkeypatch, built.snapshot(built.records()[3]), code, reading=reading)
    report = verify_local(built.paths)
    assert of(report)[4] is Verdict.UNVERIFIABLE
    assert report.exit_code == 21
    assert "cannot be read" in failing(report, 4)["VERIFY-5"]


# VERIFY-6


@pytest.mark.parametrize(
    ("member", "value", "word"),
    [
        ("tokens_used_this_session", 999, "tokens_used"),
        ("tokens_remaining", 5, "tokens_remaining"),
        ("context_utilization_percent", 50, "context_utilization"),
        ("instance_id", "Gabriel #216", "instance"),
        ("timestamp_iso8601", "2026-11-30T00:00:00Z", "timestamp"),
        ("session_id", "another", "session_id"),
    ],
)
def test_verify_6_snapshot_under_another_record_is_tampering(
    built: Built, member: str, value: str | int, word: str
) -> None:
    def change(document: Any) -> None:  # noqa: ANN401  # JSON of any shape
        if member == "session_id":
            document["conversation_history"][member] = value
        else:
            document[member] = value
        document["instance_number"] = 216 if member == "instance_id" else 215

    one = builder.spoilt(built, change)
    report = verify_local(built.paths)
    assert of(report)[one.seq] is Verdict.TAMPERED
    assert word in failing(report, one.seq)["VERIFY-6"]


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b'"notes":', b'"notes": '),
        lambda data: data.replace(b'"notes":[]', b'"notes":["more"]'),
        lambda data: data[:-1],
        lambda data: data + data,
        lambda data: data.replace(b'"size_bytes":', b'"size_bytes":1'),
        lambda data: data.replace(b'"format":1', b'"format":0'),
        lambda _: b"{}\n",
        lambda _: b"",
    ],
    ids=["spelling", "integrity", "cut", "doubled", "size", "format-0", "empty-object", "empty"],
)
def test_verify_6_signed_snapshot_that_is_no_document_is_tampering(
    built: Built, change: Callable[[bytes], bytes]
) -> None:
    data = built.snapshot(built.records()[-1]).read_bytes()
    one = builder.forge(built, change(data))
    report = verify_local(built.paths)
    assert of(report)[one.seq] is Verdict.TAMPERED
    assert set(failing(report, one.seq)) == {"VERIFY-6", "VERIFY-7", "VERIFY-8"}


def test_verify_6_snapshot_of_a_newer_format_is_not_supported(built: Built) -> None:
    data = built.snapshot(built.records()[-1]).read_bytes()
    builder.forge(built, data.replace(b'"format":1', b'"format":2'))
    report = verify_local(built.paths)
    assert (report.verdict, report.exit_code) == (Verdict.UNVERIFIABLE, 23)
    assert report.hint == "upgrade savepoint"


def test_verify_6_session_id_that_no_file_may_have_is_named_by_its_hash(built: Built) -> None:
    def change(document: Any) -> None:  # noqa: ANN401  # JSON of any shape
        document["conversation_history"]["session_id"] = "../x"

    one = builder.spoilt(built, change)
    hashed = hashlib.sha256(b"../x").hexdigest()
    built.write_lines(*built.lines[:-1])
    again = builder.forge(built, built.snapshot(one).read_bytes(), session_id=hashed)
    assert of(verify_local(built.paths))[again.seq] is Verdict.VERIFIED


def test_verify_6_hash_of_a_session_id_that_a_file_may_have_is_not_its_name(built: Built) -> None:
    """One session would go under two names."""
    one = built.records()[-1]
    hashed = hashlib.sha256(str(one.body["session_id"]).encode()).hexdigest()
    data = built.snapshot(one).read_bytes()
    built.write_lines(*built.lines[:-1])
    again = builder.forge(built, data, session_id=hashed)
    assert "session_id" in failing(verify_local(built.paths), again.seq)["VERIFY-6"]


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


def test_trusted_head_of_the_store_is_the_one_that_is_asked(built: Built) -> None:
    head = trusted.load(built.paths)
    assert head is not None
    head.raised(99, spelling.ZERO_DIGEST).save(built.paths)
    assert verify_local(built.paths).exit_code == 22


def test_findings_of_the_index_are_those_of_its_rules(built: Built) -> None:
    found = verify_local(built.paths).chain.findings
    assert [one.rule for one in found] == list(INDEX_RULES)
    assert dump({})  # the JSON of the report is made of plain values
    assert dump(verify_local(built.paths).to_json())
