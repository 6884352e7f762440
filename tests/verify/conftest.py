"""Fixtures of the verifier's tests: a store that each test may spoil."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.verify import builder

if TYPE_CHECKING:
    from pathlib import Path

    from tests.verify.builder import Built


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("template")
    return builder.store_of(folder / "home", folder / "project", 3)


@pytest.fixture
def built(template: Built, tmp_path: Path) -> Built:
    """Three savepoints, records 2 to 4; each has a snapshot and a pack of its own."""
    return builder.copy(template, tmp_path / "home")
