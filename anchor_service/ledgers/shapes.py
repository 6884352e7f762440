"""What a cluster answers, as far as it is used; members that are new are passed over.

solders' own types refuse a reply with one more member (solana-py#430), and a reply that cannot be
read would look like a transaction that did not land.
"""

from __future__ import annotations

from typing import Annotated, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from savepoint.core import limits

Value = TypeVar("Value")

Count = Annotated[int, Field(ge=0, le=limits.JSON_INTEGER_MOST)]
COUNT: type[int] = Count  # what pydantic takes for a type


class _Shape(BaseModel):
    """Strict: a number is no text, a text no number."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Context(_Shape):
    """Which bank answered."""

    slot: Count


class Contextual(_Shape, Generic[Value]):
    """An answer and its bank."""

    context: Context
    value: Value


class AccountShape(_Shape):
    """An account, in base64."""

    owner: str
    lamports: Count
    executable: bool
    data: list[str] = Field(min_length=2, max_length=2)  # bytes, "base64"


class BlockhashShape(_Shape):
    """A blockhash in base58."""

    blockhash: str
    last_valid_height: Count = Field(alias="lastValidBlockHeight")


class StatusShape(_Shape):
    """What became of a transaction. `confirmations` means nothing any more, and is not read."""

    slot: Count
    err: JsonValue
    level: Literal["processed", "confirmed", "finalized"] = Field(alias="confirmationStatus")
