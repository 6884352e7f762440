"""What the tests of handoff share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.handoff.threads import Threads

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def threads(tmp_path: Path) -> Threads:
    """A store with one savepoint, and no thread yet."""
    return Threads(tmp_path)
