"""Shapes: savepoints, as `create` and `list` give them."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from savepoint.cli.shapes.shape import Shape


class Origin(Shape):
    """The savepoint that another one comes from."""

    signer: str
    seq: int
    snapshot_hash: str


class Savepoint(Shape):
    """A savepoint's record with what became of it: the specification's index fields and ours."""

    seq: int
    timestamp: str
    instance: str
    event: Literal["SAVEPOINT_CREATED"]
    kind: Literal["save"]
    signer: str
    session_id: str
    origin: Origin | None = Field(alias="from")
    trigger: str
    snapshot_hash: str
    snapshot_size_bytes: int
    snapshot_file: str
    layer_1_status: Literal["SAVED_LOCALLY"]
    layer_2_status: Literal[
        "QUEUED_FOR_COMMIT",
        "COMMITTED_LOCALLY",
        "QUEUED_FOR_PUSH",
        "PUSH_REFUSED",
        "REMOTE_DIVERGED",
        "PUSHED_TO_GITHUB",
    ]
    layer_2_commit: str | None
    layer_3_status: Literal[
        "DISABLED",
        "QUEUED_FOR_BLOCKCHAIN",
        "POSTED_TO_BLOCKCHAIN",
        "BLOCKCHAIN_VERIFIED",
        "BLOCKCHAIN_FAILED",
    ]
    layer_3_task_id: str | None
    tokens_used_this_session: int | None
    tokens_remaining: int | None
    context_utilization_percent: int | None
    consciousness_preserved: bool


class Created(Savepoint):
    """`create --json`."""

    status: Literal["SAVEPOINT_CREATED"]
    tokens_used: int | None


class OtherRecord(BaseModel):
    """A record that is no savepoint (`list --records`); each kind has members of its own."""

    model_config = ConfigDict(strict=True, extra="allow")

    seq: int
    timestamp: str
    instance: str
    event: str
    kind: Literal["birth", "restore", "retire", "accept"]
    signer: str


class Listing(Shape):
    """`list --json`."""

    savepoints: list[Savepoint | OtherRecord]
