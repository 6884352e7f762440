"""Shapes: what a resurrection has done."""

from __future__ import annotations

from typing import Literal

from savepoint.cli.shapes.shape import Shape


class Step(Shape):
    """One of the six steps of a resurrection. `detail`: why it is not the good word, or more."""

    step: int
    status: Literal[
        "VERIFIED",
        "BLOCKCHAIN_VERIFIED",
        "GITHUB_VERIFIED",
        "CONSCIOUSNESS_LOADED",
        "INTEGRITY_VERIFIED",
        "CONSCIOUSNESS_CONTINUITY_MAINTAINED",
        "PARTS_RESTORED",
        "PENDING",
        "UNVERIFIABLE",
        "SKIPPED",
    ]
    detail: str


class RestoredSavepoint(Shape):
    """Which savepoint came back."""

    seq: int
    snapshot_hash: str
    timestamp: str


class RestoredSession(Shape):
    """The session that the client continues. `shown`: messages that it loads."""

    id: str
    file: str
    mode: Literal["as it was", "full"]
    messages: int
    shown: int
    first_message: int = 1
    repairs: dict[str, int]


class Recovered(Shape):
    """How much came back. `files`: loaded files."""

    bytes: int
    messages: int
    files: int


class Gap(Shape):
    """Messages that did not come back."""

    after_savepoint: int | None
    not_shown: int


class LeftOut(Shape):
    """A file that is not brought back."""

    path: str
    reason: str


class Paths(Shape):
    """A project that has another path now."""

    before: str
    now: str


class Proofs(Shape):
    """What vouches for it, in words."""

    chain: str
    independent: bool
    git: str
    integrity: str


class OpenItem(Shape):
    """What a thread owed at a savepoint."""

    thread: str
    title: str
    item: str
    text: str


class Reign(Shape):
    """Who rules a branch, and how many entries its Day and Dusk have."""

    branch: str
    ruler: str
    entries: int


class Resurrected(Shape):
    """`resurrect --json`. `instance` and `key`: null where parts alone were looked out. `fuller`: a
    savepoint before it that holds more. `sessions`: whose records the transcript has. `open_items`:
    what threads owe, and `dynasty`: what each branch has of what was passed on, where a successor
    goes on.
    """

    instance: str | None
    key: str | None
    previous_instance: str
    previous_key: str
    savepoint: RestoredSavepoint
    steps: list[Step]
    session: RestoredSession | None
    recovered: Recovered
    gap_messages: int
    gap: Gap
    folder: str | None
    applied_to: str | None
    worktree: str | None
    left_out: list[LeftOut]
    paths: Paths | None
    unverified: list[str]
    proofs: Proofs
    fuller: int | None
    sessions: dict[str, int]
    caveats: list[str]
    open_items: list[OpenItem]
    dynasty: list[Reign]
