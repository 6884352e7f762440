"""A dynasty with a long past, by the code that passes it on: only the last state is written."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from bench import material
from succession.dynasty import branch, keep, steps
from succession.dynasty.constants import DAY_ENTRY_LIMIT, DETAILED_REF
from succession.dynasty.files import entry, markdown
from succession.dynasty.files.entry import DECISION, OBSERVATION
from succession.dynasty.files.seen import Seen
from succession.dynasty.session import dawn
from succession.dynasty.state import begun

if TYPE_CHECKING:
    from bench.world import Home, World

_REIGN = 60  # entries of each Day of the past: enough to fill all layers of Dusk
_WHOLE = 25  # of these that were needed so often that they keep their whole text
_BURIED = b"\n### [dynasty:"  # begins an entry of the lineage
_PATIENCE_SECONDS = 60.0


class Reigns:
    """Rulers, one after another."""

    def __init__(self, world: World) -> None:
        env = world.environment()
        self._branch = branch.current(world.project, world.project, env)
        self._language = material.Language(material.random_of(2))
        self._paths = [os.path.relpath(path, world.project) for path in world.paths]
        self._now = int(time.time())
        self.state = begun(self._branch.name, self._now, self._branch.commit)

    def pass_on(self, ancestors: int) -> None:
        """Until the lineage has so many entries, and Day is full."""
        while self.state.lineage.count(_BURIED) < ancestors:
            self._record(_REIGN)
            result = steps.succeed(self.state, dawn.Git(), "measured", self._now)
            self.state = result.state._replace(
                lineage=self.state.lineage + result.lineage,
                archive=self.state.archive + result.archive,
            )
        self._record(DAY_ENTRY_LIMIT)

    def write(self, home: Home) -> str:
        """As the dynasty of the home's store; its folder."""
        end = time.monotonic() + _PATIENCE_SECONDS
        with keep.opened(home.store, self._branch, self._now, end) as held:
            held.write(self.state, Seen(), self.state.lineage, self.state.archive)
        return held.folder

    def _record(self, upto: int) -> None:
        """Entries in Day, as people write them there, until it has so many."""
        day = self.state.day
        for number in range(len(self.state.day_page.entries), upto):
            day = markdown.appended(day, self._entry(number))
        self.state = self.state._replace(day=day)

    def _entry(self, number: int) -> entry.Entry:
        """Three of four are decisions; each names a file."""
        words = self._language.words
        kind = OBSERVATION if number % 4 == 3 else DECISION
        path = self._paths[number * 7 % len(self._paths)]
        title = f"{' '.join(words(5))} {self.state.meta.current}-{number}"
        what = "\n".join(
            (f"{path}: {' '.join(words(12))}", " ".join(words(14)), " ".join(words(9)))
        )
        why = " ".join(words(16)) if kind == DECISION else ""
        one = entry.make(kind, title, why, what)
        return one._replace(ref=DETAILED_REF if number < _WHOLE else 1)
