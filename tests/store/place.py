"""A store with one session that can be saved again and again."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from savepoint.capture.request import Request
from savepoint.core.spelling import Instance
from savepoint.save import save_consciousness_state
from savepoint.store import birth
from savepoint.store.layout import Home, InstancePaths
from savepoint.store.witness import witness

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from savepoint.core.verdicts import Verdict


class Place:
    """A store with one session that can be saved again and again."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        self.project.mkdir()
        self.home = Home(str(folder / "home"))
        self.transcript = folder / "11111111-1111-4111-8111-111111111111.jsonl"
        store = birth.create_store(self.home, str(self.project), Instance("Ada", 1), 1_800_000_000)
        slug = next((folder / "home/stores" / store.id / "instances").iterdir()).name
        self.paths: InstancePaths = store.instance(slug)

    def say(self, record: Mapping[str, object]) -> None:
        """One more line of the transcript."""
        with self.transcript.open("a") as file:
            file.write(json.dumps(record) + "\n")

    def save(self) -> int:
        """One more savepoint; its sequence."""
        self.say({"type": "user", "message": {"content": "hello"}})
        request = Request(
            home=self.home.path,
            project=str(self.project),
            cwd=str(self.project),
            config_dir=str(self.project),
            session_id="",
            transcript=str(self.transcript),
            trigger="manual",
            now=1_800_000_000,
            deadline=time.monotonic() + 120,
            environment={},
            even_if_unchanged=True,
        )
        saved = save_consciousness_state(request)
        assert saved is not None
        return saved.record.seq

    def verdict(self) -> Verdict:
        """What the local witness says of everything."""
        return witness.verify_local(self.paths).verdict

    def verdicts(self) -> list[Verdict]:
        """What it says of each savepoint."""
        return [one.verdict for one in witness.verify_local(self.paths).savepoints]
