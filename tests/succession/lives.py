"""Dynasties as values, driven through any number of successions, and what must hold after each."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from hypothesis import strategies as st

from succession.dynasty import record, state, steps
from succession.dynasty.constants import LAYERS_MAX, VAULT_MAX_LINES
from succession.dynasty.files import entry, lineage, tiers, vault
from succession.dynasty.session import dawn

if TYPE_CHECKING:
    from collections.abc import Iterable

    from succession.dynasty.files.entry import Entry
    from succession.dynasty.state import State
    from succession.dynasty.steps import Succession

NOW = 1_764_500_000  # Unix seconds
NO_GIT = dawn.Git()
STRUCTURE = [
    *("# a", "## Layer 2 (compressed)", "### [ref:99] [decision] injected", "#\theading", "text"),
    *(
        "- [ref:1] [observation] injected — Why: no",
        "Why: w",
        "What: x",
        "",
        "     in",
        "  ",
        "====",
    ),
    *(
        "---",
        "- [decree] d",
        "\r",
        "a\r",
        "<!-- Branch: a | Born: b -->",
        "Succession suggested: y",
    ),
    *("     ", "# ☀️ Day — Claude 3", "\u2028", "| a | b |", "src/auth/jwt.ts", "\x00", "\u0301é"),
]
TEXTS = st.lists(st.one_of(st.sampled_from(STRUCTURE), st.text(max_size=12)), max_size=6).map(
    "\n".join
)


class Life(NamedTuple):
    """A dynasty, what was ever recorded in it, and when it is."""

    state: State
    recorded: dict[str, Entry]  # by id, as recorded
    now: int

    @classmethod
    def begin(cls, branch: str = "main") -> Life:
        """One that begins."""
        return cls(state.begun(branch, NOW), {}, NOW)

    def record(self, one: Entry, session: str = "session-1") -> Life:
        """With an entry in Day; as it was where the dynasty has it already."""
        if one.id in self.recorded:
            return self
        done = record.record(self.state, one, self.now, session)
        after = done.state._replace(archive=self.state.archive + done.archive)
        return Life(after, {**self.recorded, one.id: one}, self.now + 10)

    def touch(self, refs: dict[str, int], session: str = "") -> Life:
        """With these scores, and a session that referenced the entries."""
        pages = (self.state.day_page, self.state.dusk_page)
        day, dusk = (page.with_refs(refs) for page in pages)
        lives = dict(self.state.meta.lives)
        for one, ref in refs.items():
            if one in lives and ref and session:
                known = lives[one].referenced
                lives[one] = lives[one]._replace(referenced=tuple({*known, session}))
        meta = self.state.meta._replace(lives=lives)
        return self._replace(state=self.state._replace(day=day.raw, dusk=dusk.raw, meta=meta))

    def succeed(self, git: dawn.Git = NO_GIT, reason: str = "manual trigger") -> Passed:
        """A succession, with what it appends appended."""
        result = steps.succeed(self.state, git, reason, self.now)
        after = result.state._replace(
            lineage=self.state.lineage + result.lineage, archive=self.state.archive + result.archive
        )
        return Passed(Life(after, self.recorded, self.now + 1000), result)

    def tiers(self) -> dict[str, list[Entry]]:
        """What each tier holds; Day without copies of what is in Dusk."""
        dusk = self.state.dusk_page
        held = {one.id for one in dusk.entries}
        return {
            "Day": [one for one in self.state.day_page.entries if one.id not in held],
            **{f"Layer {number}": list(dusk.layer(number)) for number in (1, 2, 3)},
            "lineage": [one.entry for one in self.ancestors()],
        }

    def ancestors(self) -> list[lineage.Ancestor]:
        """The lineage."""
        return list(lineage.parse(entry.to_text(self.state.lineage)))


class Passed(NamedTuple):
    """A life after a succession, and that."""

    life: Life
    result: Succession


def problems(life: Life) -> list[str]:
    """Everything that must hold after each succession, and does not."""
    return [*_lost(life), *_changed(life), *_too_much(life), *_unstable(life)]


def _lost(life: Life) -> Iterable[str]:
    """Every entry is in exactly one tier, or in the lineage, once."""
    places: dict[str, list[str]] = {}
    for name, entries in life.tiers().items():
        for one in entries:
            places.setdefault(one.id, []).append(name)
    yield from (f"{key[:8]} is in {where}" for key, where in places.items() if len(where) != 1)
    yield from (f"{key[:8]} is nowhere" for key in life.recorded if key not in places)


def _changed(life: Life) -> Iterable[str]:
    """The Why is that which was recorded; in the lineage What and body are as well."""
    for name, entries in life.tiers().items():
        for one in entries:
            original = life.recorded.get(one.id)
            if original is None:
                continue
            if one.why != original.why or one.title != original.title:
                yield f"{name}: another Why: {one.why!r} for {original.why!r}"
            if name == "lineage" and one.body != original.body:
                yield f"{name}: another text: {one.body!r} for {original.body!r}"


def _too_much(life: Life) -> Iterable[str]:
    """Limits hold, unless decrees alone are above them."""
    for number, most in enumerate(LAYERS_MAX, 1):
        layer = life.state.dusk_page.layer(number)
        decrees = sum(tiers.lines(one, number) for one in layer if one.decree)
        used = sum(tiers.lines(one, number) for one in layer)
        if used > max(most, decrees):
            yield f"layer {number} has {used} lines, {decrees} of decrees"
    if vault.line_count(life.state.vault) > VAULT_MAX_LINES:
        yield "the vault is too long"
    lines = vault.bullets(life.state.vault)
    if len(lines) != len(set(lines)):
        yield "the vault has a line twice"


def _unstable(life: Life) -> Iterable[str]:
    """What was written is read back as the same."""
    pages = (life.state.day_page, life.state.dusk_page, life.state.dawn_page)
    for page, text in zip(pages, (life.state.day, life.state.dusk, life.state.dawn), strict=True):
        if page.raw != text:
            yield "parse and write are not the identity"
    if any(one.ref for one in (*life.state.day_page.entries, *life.state.dusk_page.entries)):
        yield "a score outlives its reign"


_LETTERS = st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"])
TITLES = st.text(_LETTERS, max_size=20).map(lambda text: "t" + text)
TOLD = TEXTS.map(lambda text: text.replace("\0", "0"))  # a NUL is refused
ENTRIES = st.one_of(
    st.builds(
        entry.make,
        st.just(entry.DECISION),
        TITLES,
        TOLD.map(lambda text: text if text.strip() else "because"),
        TOLD,
    ),
    st.builds(entry.make, st.just(entry.OBSERVATION), TITLES, st.just(""), TOLD),
)
