"""Fixtures of the tests of submission."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.submission.scene import Anchoring

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def it(tmp_path: Path) -> Anchoring:
    """A store with two committed savepoints, of which none is anchored."""
    made = Anchoring(tmp_path)
    made.save()
    made.save()
    return made
