"""What a person or the agent does to a dynasty, as values: record, promote, decree, decline."""

from __future__ import annotations

from savepoint.core.errors import SelectorError, UsageError
from savepoint.core.named import NamedTuple
from succession.dynasty import admit, lineage, markdown, triggers, vault
from succession.dynasty.admit import Admitted
from succession.dynasty.archive import SAVEPOINT
from succession.dynasty.constants import VAULT_MAX_LINES
from succession.dynasty.entry import DECISION, Entry, to_bytes, to_text
from succession.dynasty.meta import Suggestion
from succession.dynasty.state import brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from succession.dynasty.archive import Kept
    from succession.dynasty.state import State

_ID_DIGITS = 6  # of an id, at least


class Done(NamedTuple):
    """The dynasty afterwards, and what is new for the archive."""

    state: State
    kept: tuple[Kept, ...] = ()

    @property
    def archive(self) -> bytes:
        """What to append."""
        return b"".join(one.line for one in self.kept)


def record(state: State, one: Entry, now: int, origin: str, source: str = "record") -> Done:
    """With a new entry in Day. origin: key of the session, or empty. Raises UsageError where the
    dynasty has it already.
    """
    places = {
        "Day": state.day_page.entries,
        "Dusk": state.dusk_page.entries,
    }
    hint = "its text can be edited there; another entry needs another title"
    for name, entries in places.items():
        if any(one.id == other.id for other in entries):
            raise UsageError(f"{name} has an entry of that title and Why", hint=hint)
    if is_buried(state, one):
        raise UsageError("the lineage has an entry of that title and Why", hint=hint)
    admitted = admit.admit(Admitted(state.meta), [one], source, now, origin)
    state = state._replace(meta=admitted.meta, day=markdown.appended(state.day, one))
    return Done(_briefed(state), admitted.kept)


def observe(state: State, found: Sequence[Entry], now: int, origin: str) -> Done:
    """With what was drawn from a savepoint. What Day has under that title gets the newer text; what
    is known elsewhere stays as it is.
    """
    done = Done(state)
    for one in found:
        day = done.state.day_page
        if any(other.id == one.id for other in day.entries):
            text = markdown.replaced(day, one).raw
        elif one.id in done.state.meta.lives or is_buried(state, one):
            continue
        else:
            text = markdown.appended(done.state.day, one)
        admitted = admit.admit(Admitted(done.state.meta, done.kept), [one], SAVEPOINT, now, origin)
        done = Done(done.state._replace(meta=admitted.meta, day=text), admitted.kept)
    return done._replace(state=_briefed(done.state))


def is_buried(state: State, one: Entry) -> bool:
    """Is it in the lineage of this branch? An entry is in one place alone."""
    if to_bytes(f"[{one.kind}] {one.title}\n") not in state.lineage:
        return False  # as nearly always: it need not be read for that
    own = f"{state.meta.name} — {state.meta.branch}"
    found = lineage.parse(to_text(state.lineage))
    return any(other.entry.id == one.id and other.section == own for other in found)


def welcome(state: State, now: int) -> Done:
    """With a life for what people wrote into Day and Dusk by hand: it is born now."""
    admitted = admit.admit(Admitted(state.meta), state.day_page.entries, "day", now)
    admitted = admit.admit(admitted, state.dusk_page.entries, "dusk", now)
    return Done(state._replace(meta=admitted.meta), admitted.kept)


def decree(state: State, wanted: str) -> Done:
    """With an entry of Dusk as a decree. Raises SelectorError, UsageError."""
    one = find(state.dusk_page.entries, wanted, "Dusk")
    if one.kind != DECISION:
        raise UsageError("only a decision can be a decree")
    page = state.dusk_page
    parts = [
        part._replace(raw=_tagged(part.raw)) if part.entry and part.entry.id == one.id else part
        for part in page.parts
    ]
    if one.decree:
        return Done(state)
    return Done(_briefed(state._replace(dusk="".join(part.raw for part in parts))))


def promote(state: State, wanted: str) -> Done:
    """With an entry of Dusk or Day in the vault. Raises SelectorError, UsageError (no room)."""
    entries = {one.id: one for one in (*state.dusk_page.entries, *state.day_page.entries)}
    one = find(list(entries.values()), wanted, "Day or Dusk")
    line = vault.bullet(one)
    if vault.holds(state.vault, line):
        raise UsageError("the vault holds it already")
    if not vault.has_room(state.vault, line):
        used = vault.line_count(state.vault)
        raise UsageError(
            f"the vault has {used} of {VAULT_MAX_LINES} lines, and this takes "
            f"{vault.line_count(line)}",
            hint="take out by hand what holds no longer",
        )
    lives = dict(state.meta.lives)
    if one.id in lives:
        lives[one.id] = lives[one.id]._replace(vaulted=True)
    dusk = "".join(
        part.raw.replace("[vault-candidate] ", "", 1)
        if part.entry and part.entry.id == one.id
        else part.raw
        for part in state.dusk_page.parts
    )
    meta = state.meta._replace(lives=lives)
    return Done(
        _briefed(state._replace(meta=meta, dusk=dusk, vault=vault.added(state.vault, line)))
    )


def decline(state: State) -> Done:
    """Without the succession that is suggested, until another reason comes. Raises UsageError."""
    asked = state.meta.suggestion
    if asked is None:
        raise UsageError("no succession is suggested", hint="`savepoint succession status`")
    declined = tuple(sorted({*state.meta.declined, *asked.triggers}))
    meta = state.meta._replace(suggestion=None, declined=declined)
    dawn = markdown.suggesting(markdown.parse(state.dawn), "")
    return Done(_briefed(state._replace(meta=meta, dawn=dawn)))


def suggest(state: State, session: str) -> State:
    """With what the triggers say, noted in Dawn; the same suggestion stays as it was noted."""
    fired = triggers.fired(state.day_page.entries, state.meta)
    names = tuple(one.name for one in fired)
    if not set(names) - set(state.meta.declined):
        fired, names = (), ()
    asked = state.meta.suggestion
    if not fired:
        suggestion = None
    elif asked is not None:
        suggestion = asked._replace(reason=triggers.reason(fired), triggers=names)
    else:
        suggestion = Suggestion(triggers.reason(fired), names, session)
    if suggestion == asked:
        return state
    page = markdown.parse(state.dawn)
    dawn = markdown.suggesting(page, suggestion.reason if suggestion else "")
    return _briefed(state._replace(meta=state.meta._replace(suggestion=suggestion), dawn=dawn))


def find(entries: Sequence[Entry], wanted: str, where: str) -> Entry:
    """The entry whose id begins so, or whose title it is. Raises SelectorError."""
    found = [one for one in entries if wanted == one.title]
    if not found and len(wanted) >= _ID_DIGITS:
        found = [one for one in entries if one.id.startswith(wanted)]
    if len(found) != 1:
        count = "no entry" if not found else f"{len(found)} entries"
        hint = f"name its title, or {_ID_DIGITS} or more digits of its id"
        raise SelectorError(f"{where} has {count} {wanted!r}", hint=hint)
    return found[0]


def _briefed(state: State) -> State:
    return state._replace(briefing=brief(state))


def _tagged(raw: str) -> str:
    """An entry as it is written, as a decree."""
    at = raw.find(f"[{DECISION}]")
    return f"{raw[:at]}[decree] {raw[at:]}"
