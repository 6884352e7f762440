"""The local witness on real stores: rules 5 and 6, and the reading around all of them."""

from __future__ import annotations

import errno
import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from savepoint.core import spelling
from savepoint.core.strict_json import dump
from savepoint.core.verdicts import Verdict
from savepoint.core.verify_index import INDEX_RULES
from savepoint.core.verify_stored import STORED_RULES
from savepoint.store import trusted
from savepoint.store.witness import evidence, witness
from savepoint.store.witness.witness import verify_local
from tests.verify import builder
from tests.verify.builder import Built, flip
from tests.verify.spoiling import SPOILING, SPOILING_IDS, failing, of, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from savepoint.core.record import Record


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


# reading


def test_trusted_head_of_the_store_is_the_one_that_is_asked(built: Built) -> None:
    head = trusted.load(built.paths)
    assert head is not None
    trusted.save(built.paths, head.raised(99, spelling.ZERO_DIGEST))
    assert verify_local(built.paths).exit_code == 22


def test_findings_of_the_index_are_those_of_its_rules(built: Built) -> None:
    found = verify_local(built.paths).chain.findings
    assert [one.rule for one in found] == list(INDEX_RULES)
    assert dump({})  # the JSON of the report is made of plain values
    assert dump(verify_local(built.paths).to_json())
