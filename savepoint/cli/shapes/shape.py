"""The shapes of what `--json` prints. More members may come; none of these goes.

What is to be printed is held against its shape first: a program must never get half of one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json


class Shape(BaseModel):
    """Exactly its members, each of exactly its type."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Error(Shape):
    """What failed. `code` is the exit code."""

    code: int
    name: str
    message: str
    hint: str


class Failure(Shape):
    """What every command prints with --json when it fails."""

    error: Error


def shaped(shape: type[BaseModel], value: Json) -> Json:
    """`value`, which has that shape."""
    shape.model_validate(value)
    return value
