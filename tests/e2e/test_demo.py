"""The demo runs to its end, and tells of each thing once."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.structure.sources import PROJECT

_TOLD = (
    "savepoint-hook PreCompact",
    "PUSHED_TO_GITHUB",
    "local VERIFIED, git VERIFIED, chain VERIFIED",
    "snapshot flipped TAMPERED, exit 20, by the local witness",
    "pack flipped TAMPERED, exit 20, by the local witness",
    "record flipped TAMPERED, exit 20, by the local witness",
    "git object flipped TAMPERED, exit 20, by the git witness",
    "account flipped TAMPERED, exit 20, by the chain witness",
    "VERIFIED again",
    "savepoint bootstrap",
    "Demo #2 goes on from Demo #1",
    "back, byte for byte: True",
)


@pytest.mark.timeout(300)
def test_the_demo_tells_what_happened() -> None:
    ran = subprocess.run(
        [sys.executable, PROJECT / "scripts/demo.py"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    told = " ".join(line.split(maxsplit=1)[1] for line in ran.stdout.splitlines())
    flat = " ".join(told.split())
    assert [one for one in _TOLD if " ".join(one.split()) not in flat] == []
