"""fsck of a made-up store, and what it tells."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from savepoint.core.strict_json import dump
from savepoint.store.fsck.fsck import fsck

if TYPE_CHECKING:
    from savepoint.store.fsck.fsck import Checked
    from tests.verify.builder import Built


def check(built: Built) -> Checked:
    found = fsck(built.paths.store, time.time())
    assert dump(found.to_json())
    return found


def told(found: Checked, severity: str) -> str:
    return "\n".join(one.detail for one in found.items if one.severity == severity)
