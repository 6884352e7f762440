"""scripts/get-validator finds a validator that is new enough, or gets one."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.conftest import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

_OLD = "#!/bin/sh\necho 'solana-test-validator 3.1.9 (src:1; feat:2, client:Agave)'\n"
_NEW = "#!/bin/sh\necho 'solana-test-validator 4.1.2 (src:1; feat:2, client:Agave)'\n"
_TOOLS = ("sh", "dirname", "sed", "uname", "mkdir", "tar", "bzip2", "rm", "mv", "cat", "chmod")


class Machine(NamedTuple):
    """A machine with nothing but the tools of the script and what a test puts into PATH."""

    programs: Path
    folder: Path

    def has(self, name: str, text: str) -> Path:
        path = self.programs / name
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)
        return path

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(PROJECT / "scripts/get-validator"), *arguments],
            env={"PATH": str(self.programs), **environment},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in _TOOLS:
        for folder in ("/usr/bin", "/bin"):
            if os.path.exists(f"{folder}/{name}") and not (programs / name).exists():
                (programs / name).symlink_to(f"{folder}/{name}")
    return Machine(programs, tmp_path / "validator")


def test_one_on_the_path_is_found(machine: Machine) -> None:
    path = machine.has("solana-test-validator", _NEW)
    assert machine.run().stdout == f"{path}\n"


def test_the_named_one_comes_first(machine: Machine) -> None:
    machine.has("solana-test-validator", _OLD)
    path = machine.has("other", _NEW)
    assert machine.run(SOLANA_TEST_VALIDATOR=str(path)).stdout == f"{path}\n"


def test_an_old_one_is_refused_with_what_to_do(machine: Machine) -> None:
    machine.has("solana-test-validator", _OLD)
    ran = machine.run()
    assert (ran.returncode, ran.stdout) == (1, "")
    assert "older than 4.0" in ran.stderr
    assert "get-validator FOLDER" in ran.stderr


def test_the_release_is_unpacked(machine: Machine, tmp_path: Path) -> None:
    archive = tmp_path / "release.tar.bz2"
    with tarfile.open(archive, "w:bz2") as tar:
        for name, text in (("solana-test-validator", _NEW), ("solana", "x")):
            entry = tarfile.TarInfo(f"solana-release/bin/{name}")
            entry.size, entry.mode = len(text), 0o755
            tar.addfile(entry, io.BytesIO(text.encode()))
    machine.has("uname", "#!/bin/sh\n[ $1 = -s ] && echo Linux || echo x86_64\n")
    machine.has(
        "curl",
        f'#!/bin/sh\nwhile [ "$1" != --output ]; do shift; done\ncat "{archive}" > "$2"\n',
    )
    ran = machine.run(str(machine.folder))
    assert ran.stdout == f"{machine.folder}/solana-test-validator\n", ran.stderr
    assert [one.name for one in machine.folder.iterdir()] == ["solana-test-validator"]
    assert "x86_64-unknown-linux-gnu.tar.bz2" in ran.stderr


def test_cargo_is_the_other_way(machine: Machine) -> None:
    machine.has("curl", "#!/bin/sh\nexit 6\n")
    machine.has(
        "cargo",
        '#!/bin/sh\necho "$@" >&2\nwhile [ "$1" != --root ]; do shift; done\n'
        f'mkdir -p "$2/bin"\ncat > "$2/bin/solana-test-validator" <<"X"\n{_NEW}X\n'
        'chmod 755 "$2/bin/solana-test-validator"\n',
    )
    ran = machine.run(str(machine.folder))
    assert ran.stdout == f"{machine.folder}/solana-test-validator\n", ran.stderr
    assert "agave-validator --version 4.1.2 --locked" in ran.stderr


def test_with_neither_it_says_so(machine: Machine) -> None:
    machine.has("curl", "#!/bin/sh\nexit 6\n")
    ran = machine.run(str(machine.folder))
    assert ran.returncode != 0
    assert "no cargo" in ran.stderr


def test_the_real_one_is_new_enough(validator_program: Path) -> None:
    environment = {**os.environ, "SOLANA_TEST_VALIDATOR": str(validator_program)}
    ran = subprocess.run(
        [str(PROJECT / "scripts/get-validator")],
        env=environment,
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
