"""Fixtures of the git layer's tests."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.gitlayer.layer import Layer
from tests.gitlayer.remotes import Pushing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    return Layer.new(tmp_path)


@pytest.fixture
def no_children_left() -> Iterator[None]:
    yield
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


@pytest.fixture
def it(tmp_path: Path) -> Pushing:
    return Pushing.new(tmp_path)
