"""What a person or the agent does to a dynasty, as values: record, promote, decree, decline."""

from __future__ import annotations

from savepoint.core.errors import SelectorError, UsageError
from savepoint.core.named import NamedTuple
from succession.dynasty.constants import VAULT_MAX_LINES
from succession.dynasty.files import archive, lineage, markdown, vault
from succession.dynasty.files.archive import SAVEPOINT
from succession.dynasty.files.entry import DECISION, Entry, to_bytes, to_text
from succession.dynasty.files.meta import Suggestion
from succession.dynasty.joining import admit
from succession.dynasty.joining.admit import Admitted
from succession.dynasty.session import triggers
from succession.dynasty.state import briefed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from succession.dynasty.files.archive import Kept
    from succession.dynasty.state import State

_ID_DIGITS = 6  # of an id, at least


class Done(NamedTuple):
    """The dynasty afterwards, and what is new for the archive."""

    state: State
    kept: tuple[Kept, ...] = ()
    recorded: Entry | None = None  # as it stands in Day

    @property
    def archive(self) -> bytes:
        """What to append."""
        return b"".join(one.line for one in self.kept)


def record(state: State, one: Entry, now: int, origin: str, source: str = "record") -> Done:
    """With a new entry in Day. origin: key of the session, or empty. An observation of a title that
    there is, with another text, is another one: its title gets a number. state: with lineage and
    archive. Raises UsageError where the dynasty has it already.
    """
    places = {"Day": state.day_page.entries, "Dusk": state.dusk_page.entries}
    taken = {other.id: name for name, entries in places.items() for other in entries}
    taken = dict.fromkeys(_buried(state, one), "the lineage") | taken
    if one.id in taken:
        one = _another(state, one, taken)
    admitted = admit.admit(Admitted(state.meta), [one], source, now, origin)
    state = state._replace(meta=admitted.meta, day=markdown.appended(state.day, one))
    return Done(briefed(state), admitted.kept, one)


def _another(state: State, one: Entry, taken: Mapping[str, str]) -> Entry:
    """The observation under the first title that is free. taken: id of an entry → where it is."""
    if one.kind == DECISION:
        where = taken[one.id]
        hint = "another decision needs another title or Why"
        if where != "the lineage":
            hint = f"its text can be edited there; {hint}"
        raise UsageError(f"{where} has an entry of that title and Why", hint=hint)
    number, same = 1, one
    known: dict[str, str] = {}
    while same.id in taken:
        known[same.id] = taken[same.id]
        number += 1
        same = one._replace(title=f"{one.title} ({number})")
    texts = [other for other in state.day_page.entries if other.id in known]
    for lines in archive.lines_of((state.archive,), known).values():
        kept = archive.read(b"\n".join(lines))
        texts += [other.entry for other in kept if other.branch == state.meta.branch]
    for other in texts:
        if other.body == one.body:
            hint = "tell what is new: another text makes another observation"
            raise UsageError(f"{known[other.id]} has an entry of that title and text", hint=hint)
    return same


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
    return done._replace(state=briefed(done.state))


def is_buried(state: State, one: Entry) -> bool:
    """Is it in the lineage of this branch? An entry is in one place alone."""
    return one.id in _buried(state, one)


def _buried(state: State, one: Entry) -> set[str]:
    """Ids in the lineage of this branch, if one whose title begins so is there at all."""
    if to_bytes(f"[{one.kind}] {one.title}") not in state.lineage:
        return set()  # as nearly always: it need not be read for that
    own = f"{state.meta.name} — {state.meta.branch}"
    found = lineage.parse(to_text(state.lineage))
    return {other.entry.id for other in found if other.section == own}


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
    return Done(briefed(state._replace(dusk="".join(part.raw for part in parts))))


def promote(state: State, wanted: str) -> Done:
    """With an entry of Dusk or Day in the vault. Raises SelectorError, UsageError (no room)."""
    entries = {one.id: one for one in (*state.dusk_page.entries, *state.day_page.entries)}
    one = find(list(entries.values()), wanted, "Day or Dusk")
    line = vault.bullet(one)
    if vault.holds(state.vault, line):
        return Done(state)
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
    return Done(briefed(state._replace(meta=meta, dusk=dusk, vault=vault.added(state.vault, line))))


def decline(state: State) -> Done:
    """Without the succession that is suggested, until another reason comes. Raises UsageError."""
    asked = state.meta.suggestion
    if asked is None:
        raise UsageError("no succession is suggested", hint="`savepoint succession status`")
    declined = tuple(sorted({*state.meta.declined, *asked.triggers}))
    meta = state.meta._replace(suggestion=None, declined=declined)
    dawn = markdown.suggesting(state.dawn, asked.reason, "")
    return Done(briefed(state._replace(meta=meta, dawn=dawn)))


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
    reasons = (one.reason if one else "" for one in (asked, suggestion))
    dawn = markdown.suggesting(state.dawn, *reasons)
    return briefed(state._replace(meta=state.meta._replace(suggestion=suggestion), dawn=dawn))


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


def _tagged(raw: str) -> str:
    """An entry as it is written, as a decree."""
    at = raw.find(f"[{DECISION}]")
    return f"{raw[:at]}[decree] {raw[at:]}"
