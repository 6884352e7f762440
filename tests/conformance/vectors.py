"""The committed vectors, as the tests read them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from tests.vectors.builders import content

FOLDER = Path(__file__).resolve().parent.parent / "vectors"


class Vector(NamedTuple):
    """A vector of one of the files that have bytes to judge."""

    name: str
    expect: str
    data: bytes
    more: dict[str, Any]  # all its members


def members(name: str, group: str = "vectors") -> list[dict[str, Any]]:
    """The vectors of a file as they stand there."""
    vectors: list[dict[str, Any]] = json.loads((FOLDER / name).read_bytes())[group]
    return vectors


def load(name: str) -> list[Vector]:
    """The vectors of a file with their bytes."""
    vectors = members(name)
    by_name = {one["name"]: one for one in vectors}
    return [Vector(one["name"], one["expect"], content(one, by_name), one) for one in vectors]


def opened(one: Vector) -> dict[str, bytes]:
    """SHA-256 → raw bytes of the segments that a snapshot's spilled lists lie in."""
    return {digest: text.encode() for digest, text in one.more.get("opened", {}).items()}
