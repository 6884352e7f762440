"""The shipped program: its size, its source, its errors and its pages tell the same."""

from __future__ import annotations

import re
import subprocess
from importlib import resources
from typing import TYPE_CHECKING

import pytest

from anchor_service.program import instructions
from savepoint.core import entry
from tests.program.scene import (
    INITIALISE_UNITS,
    PROGRAM,
    Scene,
    a_body,
    account_bytes,
    key,
)
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

_SIZE = 12 * 1024  # bar of the ELF file, bytes: each costs rent
_SOURCE = PROJECT / "programs/savepoint_anchor/src"
_PAGE = PROJECT / "docs/program.md"


def test_program_is_small_and_of_sbpf_version_3() -> None:
    """Clusters take no other version for a new program (SIMD-0500)."""
    program = instructions.elf()
    assert len(program) <= _SIZE
    assert program[:4] == b"\x7fELF"
    assert int.from_bytes(program[0x30:0x34], "little") == 3  # e_flags


def test_program_names_no_folder_of_the_machine_that_built_it() -> None:
    strings = re.findall(rb"[ -~]{4,}", instructions.elf())
    assert [s for s in strings if s.startswith(b"/") or b"registry" in s] == []


def test_changed_program_is_not_given_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "savepoint_anchor.so"
    program = instructions.elf()
    (tmp_path / name).write_bytes(program[:-1] + b"\xff")
    folder = resources.files("anchor_service.program")
    (tmp_path / f"{name}.sha256").write_text(folder.joinpath(f"{name}.sha256").read_text())
    monkeypatch.setattr(resources, "files", lambda _package: tmp_path)
    with pytest.raises(ValueError, match="installed incompletely, or changed"):
        instructions.elf()


def test_committed_bytes_are_what_the_source_gives(program_toolchain: dict[str, str]) -> None:
    done = subprocess.run(
        [PROJECT / "scripts/build-program", "--check"],
        env=program_toolchain,
        capture_output=True,
        text=True,
        check=False,
        timeout=180,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "savepoint_anchor.so: OK\n"


def _errors_of_the_source() -> dict[int, str]:
    text = (_SOURCE / "error.rs").read_text(encoding="utf-8")
    return {int(n): name for name, n in re.findall(r"^    (\w+) = (\d+),$", text, re.MULTILINE)}


def test_errors_have_the_names_of_the_source() -> None:
    named = {number: name for number, (name, _) in instructions.ERRORS.items()}
    assert named == _errors_of_the_source()
    assert list(named) == list(range(1000, 1000 + len(named)))


def test_errors_have_the_sentences_of_the_page() -> None:
    rows = re.findall(
        r"^\| (\d{4}) \| `(\w+)` \| (.+?) \|$", _PAGE.read_text("utf-8"), re.MULTILINE
    )
    assert {int(n): (name, told) for n, name, told in rows} == instructions.ERRORS


def test_every_error_of_the_source_is_used() -> None:
    code = "".join(f.read_text("utf-8") for f in _SOURCE.glob("*.rs") if f.name != "error.rs")
    used = set(re.findall(r"Error::(\w+)", code)) - {"Custom", "from"}
    assert used == set(_errors_of_the_source().values())


def test_every_error_has_been_seen() -> None:
    """By name in a test that sends what leads to it."""
    tests = "".join(
        (PROJECT / f"tests/program/test_{name}.py").read_text("utf-8")
        for name in ("initialise", "append")
    )
    assert [n for n in _errors_of_the_source().values() if f'"{n}"' not in tests] == []


def test_instruction_bytes_are_those_of_the_page() -> None:
    account = key(5).pubkey()
    body = a_body()
    first = instructions.initialise(PROGRAM, account, account, account, 254, body)
    stored = account_bytes(1, 254, body)
    tail = stored[32:209] + b"\x13\0" + body.metadata
    assert bytes(first.data) == b"\0\xfe" + tail
    seen = bytes(range(32))
    later = instructions.append(PROGRAM, account, account, 258, seen, body)
    assert bytes(later.data) == b"\1\2\1\0\0\0\0\0\0" + seen + tail


def test_what_a_client_sends_is_what_core_reads() -> None:
    scene = Scene().begun()
    account = entry.parse(scene.data())
    body = a_body()
    assert account.seq == 1
    assert account.bump == scene.bump
    assert account.claim.body == bytes(scene.initialise().data)[2:115]
    assert account.signature == body.signature
    assert account.claim.metadata == body.metadata


def test_units_are_those_of_the_page() -> None:
    row = re.search(
        r"\| INITIALISE \| ([\d,]+), and (\d+) more .* at most 8,000 down to bump (\d+) ",
        _PAGE.read_text("utf-8"),
    )
    assert row is not None
    units, more, lowest = (int(number.replace(",", "")) for number in row.groups())
    assert units + more * (255 - lowest) <= INITIALISE_UNITS < units + more * (256 - lowest)
    scene = Scene()
    assert scene.send(scene.initialise()).units == units + more * (255 - scene.bump)
    small = scene.send(scene.append(a_body(metadata=b"x" * 256))).units
    large = scene.send(scene.append()).units
    assert f"| APPEND | {small:,} after an entry with 19 bytes" in _PAGE.read_text("utf-8")
    assert f" {large:,} after one with 256 |" in _PAGE.read_text("utf-8")
