"""What a busy machine must not change: how long git may take for an answer."""

from __future__ import annotations

import pytest

from savepoint.core import limits


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that looks at what git says waits for it; what the limit does has tests of its own."""
    monkeypatch.setattr(limits, "CHANGES_SECONDS", 20.0)
