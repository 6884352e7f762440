"""What the witnesses say of a savepoint: for the tests of `verify`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from savepoint.cli import shapes

if TYPE_CHECKING:
    from tests.cli.scene import Ran


def chain_of(ran: Ran, at: int = 0) -> dict[str, Any]:
    shapes.Verification.model_validate(ran.json)
    witness: dict[str, Any] = ran.json["savepoints"][at]["witnesses"]["chain"]
    return witness
