"""A succession: eight steps, each a function from what the one before it gave, in this order.

    1 freeze         what was read; who became a decree, who was referenced in this reign
    2 compress_dusk  each layer of Dusk one down
    3 day_to_dusk    the entries of Day by type and score; the limits of the layers; the epithet
    4 dawn_to_day    Dawn becomes the new Day
    5 seed_dawn      a new Dawn from git and from what Dusk knows about the current work
    6 check_vault    what was referenced in three reigns holds for good
    7 check_deviants where the vault and a new entry speak of the same file
    8 ceremony       every file as it is to be, and the report

Values in, values out: no file, no clock. Nothing is written unless all eight have come to their end
(keep.py), and no step touches a Why.
"""

from __future__ import annotations

from savepoint.core import spelling
from savepoint.core.named import NamedTuple
from succession.dynasty import ceremony as ceremonies
from succession.dynasty import compress, epithet
from succession.dynasty.constants import DECREE_SESSIONS, VAULT_PROMOTION_SESSIONS
from succession.dynasty.files import archive, carried, deviants, lineage, markdown, tiers, vault
from succession.dynasty.files.archive import Kept
from succession.dynasty.files.entry import DECISION, OBSERVATION, Entry, guarded, trimmed
from succession.dynasty.files.tiers import LINEAGE, Layers, Move
from succession.dynasty.joining import admit
from succession.dynasty.joining.admit import Admitted
from succession.dynasty.session import dawn as dawns
from succession.dynasty.state import State, brief

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from succession.dynasty.files.lineage import Ancestor
    from succession.dynasty.files.markdown import Page
    from succession.dynasty.files.meta import Life, Meta
    from succession.dynasty.session.dawn import Git


class Work(NamedTuple):
    """A succession at work."""

    state: State  # as it was
    now: int  # Unix seconds
    reason: str
    git: Git
    meta: Meta
    day: tuple[Entry, ...]  # of the outgoing ruler
    layers: Layers
    texts: tuple[tuple[str, ...], ...]  # of people in Dusk: before the layers, and in each
    originals: dict[str, tuple[bytes, ...]]  # by id, lines of the archive
    kept: tuple[Kept, ...]  # for the archive
    notes: tuple[str, ...]  # for the report
    moves: tuple[Move, ...] = ()
    gone: tuple[Ancestor, ...] = ()  # to the lineage
    dead: tuple[int, ...] = ()  # rulers whose entries went there from Dusk
    fresh: frozenset[str] = frozenset()  # ids of the entries that came from Day
    epithet: str = ""
    risen: tuple[Entry, ...] = ()  # the new Day's
    new_day: str = ""
    new_dawn: str = ""
    vault: str = ""
    deviants: str = ""


class Succession(NamedTuple):
    """What a succession comes to: every file as it is to be, what is appended, what is told."""

    state: State
    lineage: bytes  # to append
    archive: bytes  # to append
    report: str  # the ceremony
    moves: tuple[Move, ...]
    notes: tuple[str, ...]


def succeed(state: State, git: Git, reason: str, now: int) -> Succession:
    """All eight steps. The same input gives the same bytes."""
    work = freeze(state, git, reason, now)
    work = compress_dusk(work)
    work = day_to_dusk(work)
    work = dawn_to_day(work)
    work = seed_dawn(work)
    work = check_vault(work)
    work = check_deviants(work)
    return ceremony(work)


def freeze(state: State, git: Git, reason: str, now: int) -> Work:
    """Step 1: what was read, with what people changed in it; reigns and decrees are judged here."""
    day, dusk, dawn = state.day_page, state.dusk_page, state.dawn_page
    admitted = admit.admit(Admitted(state.meta), day.entries, "day", now)
    admitted = admit.admit(admitted, dusk.entries, archive.DUSK, now)
    admitted = admit.admit(admitted, dawn.entries, "dawn", now)
    refs: dict[str, int] = {}
    for one in (*day.entries, *dusk.entries):  # a copy and its original have one score
        refs[one.id] = max(one.ref, refs.get(one.id, 0))
    day, dusk = day.with_refs(refs), dusk.with_refs(refs)
    seen: set[str] = set()
    layers = tuple(_once(dusk.layer(number), seen) for number in (1, 2, 3))
    kept, originals = _archived(state, admitted, now)
    return Work(
        state=state,
        now=now,
        reason=reason,
        git=git,
        meta=_reigned(admitted.meta, refs),
        day=_once(day.entries, set()),
        layers=_decreed((layers[0], layers[1], layers[2]), admitted.meta),
        texts=tuple(carried.texts(dusk, state.meta, number) for number in ("", *"123")),
        originals=originals,
        kept=kept,
        notes=carried.notes((day, dusk, dawn), state.meta),
        vault=state.vault,
        deviants=state.deviants,
    )


def compress_dusk(work: Work) -> Work:
    """Step 2: each layer one down; decrees stay."""
    shifted = tiers.shift(work.layers, work.meta.lives, work.meta.current)
    gone = [move.entry for move in shifted.moves if move.target == LINEAGE]
    work = work._replace(layers=shifted.layers, moves=(*work.moves, *shifted.moves))
    return _bury(work, gone, from_dusk=True)


def day_to_dusk(work: Work) -> Work:
    """Step 3: the outgoing Day by type and score; then the limits."""
    known = {one.id: one for layer in work.layers for one in layer}
    known |= {one.entry.id: one.entry for one in work.gone}
    fates = [_fate(one, known.get(one.id), work.meta.lives) for one in work.day]
    entered = tuple(placed for placed, move in fates if move.target == "Layer 1")
    fresh = frozenset(one.id for one in entered)
    rest = [tuple(one for one in layer if one.id not in fresh) for layer in work.layers]
    buried = [placed for placed, move in fates if move.target == LINEAGE]
    work = work._replace(
        layers=((*rest[0], *entered), rest[1], rest[2]),
        moves=(*work.moves, *(move for _, move in fates)),
        fresh=fresh,
        epithet=epithet.of(work.day),
    )
    return _within_limits(_bury(work, buried, from_dusk=False), frozenset(known))


def dawn_to_day(work: Work) -> Work:
    """Step 4: Dawn's git state becomes an observation, its wisdom copies with the same id."""
    before = work.meta
    day, dawn = work.state.day_page, work.state.dawn_page
    alive = {one.id for layer in work.layers for one in layer}
    copies = [one for one in _once(dawn.entries, set()) if _rises(work, one, alive)]
    risen = [*_git_observation(before, dawn), *(_whole(work, one) for one in copies)]
    meta = before._replace(
        current=before.current + 1,
        born=work.now,
        last_succession=work.now,
        sessions_since_succession=0,
        epithets={**before.epithets, before.title(): work.epithet},
        reason=work.reason,
        suggestion=None,
        declined=(),
    )
    theirs = carried.texts(day, work.state.meta, "")
    theirs += carried.texts(dawn, work.state.meta, "", markdown.DUSK_WISDOM)
    admitted = admit.admit(Admitted(meta, work.kept), risen, archive.GIT, work.now)
    born = spelling.time_text(work.now)
    new_day = markdown.day(meta.title(), meta.branch, born, theirs, risen)
    return work._replace(
        meta=admitted.meta, kept=admitted.kept, new_day=new_day, risen=tuple(risen)
    )


def seed_dawn(work: Work) -> Work:
    """Step 5: a new Dawn from git, and what of Dusk fits the branch and the changed files."""
    chosen = [_without_score(one) for one in dawns.wisdom(work.git, work.layers, work.meta.lives)]
    title = work.meta.title(work.meta.current + 1)
    return work._replace(new_dawn=markdown.dawn(title, work.git.lines, chosen))


def check_vault(work: Work) -> Work:
    """Step 6: what was referenced in three reigns goes to the vault, or waits until it has room."""
    lives, text = dict(work.meta.lives), work.vault
    layers: list[list[Entry]] = [[], [], []]
    moves = list(work.moves)
    for number, layer in enumerate(work.layers):
        for one in layer:
            life, line, shown = lives[one.id], vault.bullet(one), one
            if life.reigns >= VAULT_PROMOTION_SESSIONS and not life.vaulted:
                held = vault.holds(text, line)
                if not held and vault.has_room(text, line):
                    text, held = vault.added(text, line), True
                    why = f"referenced in {life.reigns} reigns"
                    moves.append(Move(one, f"Layer {number + 1}", "vault", why))
                lives[one.id] = life._replace(vaulted=held)
                shown = one._replace(candidate=not held)
            layers[number].append(shown)
    return work._replace(
        meta=work.meta._replace(lives=lives),
        vault=text,
        layers=(tuple(layers[0]), tuple(layers[1]), tuple(layers[2])),
        moves=tuple(moves),
    )


def check_deviants(work: Work) -> Work:
    """Step 7: a file that a line of the vault and a new entry name; and the reminders."""
    fresh = [one for layer in work.layers for one in layer if one.id in work.fresh]
    text = work.deviants
    for path, line, named in deviants.conflicts(work.vault, fresh, work.meta.lives):
        description = f"{path} is in the vault and in a new entry"
        text = deviants.filed(text, description, (line, named), work.now)
    return work._replace(deviants=deviants.nudged(text))


def ceremony(work: Work) -> Succession:
    """Step 8: every file, with all scores at 0 for the new reign, and the report."""
    meta, state = work.meta, work.state
    old = meta.current - 1
    layers = tuple(tuple(map(_without_score, layer)) for layer in work.layers)
    live = {one.id for layer in layers for one in layer} | {one.id for one in work.risen}
    lives = {one: life for one, life in meta.lives.items() if one in live}
    unresolved = tuple(one.session for one in deviants.parse(work.deviants) if one.is_open)
    after = State(
        meta=meta._replace(lives=_written(lives, layers[0])),
        day=work.new_day,
        dusk=markdown.dusk(meta.full_title(old), work.texts, layers),
        dawn=work.new_dawn,
        vault=work.vault,
        deviants=work.deviants,
    )
    told = ceremonies.Ceremony(
        meta.name,
        old,
        work.epithet,
        meta.branch,
        tuple((one, meta.epithets.get(meta.title(one), "")) for one in work.dead),
        vault.line_count(work.vault),
        unresolved,
    )
    section = f"{meta.name} — {meta.branch}"
    return Succession(
        state=after._replace(briefing=brief(after)),
        lineage=lineage.addition(state.lineage, section, work.gone),
        archive=b"".join(one.line for one in work.kept),
        report=ceremonies.report(told),
        moves=work.moves,
        notes=work.notes,
    )


def _archived(
    state: State, admitted: Admitted, now: int
) -> tuple[tuple[Kept, ...], dict[str, tuple[bytes, ...]]]:
    """What is new for the archive, and all that it then has of these entries. A text that somebody
    edited, and then back again, is the last one once more.
    """
    pages = {"day": state.day_page, archive.DUSK: state.dusk_page, "dawn": state.dawn_page}
    ids = {one.id for page in pages.values() for one in page.entries}
    lines = b"".join(one.line for one in admitted.kept)
    found = archive.lines_of((state.archive, lines), ids)
    again = [
        Kept(one, source, admitted.meta.branch, admitted.meta.title(), now)
        for source in ("day", archive.DUSK)
        for one in pages[source].entries
        if one.body and not archive.is_latest(found.get(one.id, ()), one, source)
    ]
    for kept in again:
        found[kept.entry.id] = (*found.get(kept.entry.id, ()), kept.line.removesuffix(b"\n"))
    return (*admitted.kept, *again), found


def _once(entries: Iterable[Entry], seen: set[str]) -> tuple[Entry, ...]:
    """The entries without those that were seen before: copied by hand, one is enough."""
    found = []
    for one in entries:
        if one.id not in seen:
            seen.add(one.id)
            found.append(one)
    return tuple(found)


def _reigned(meta: Meta, refs: dict[str, int]) -> Meta:
    lives = dict(meta.lives)
    for one, ref in refs.items():
        if ref > 0:
            lives[one] = lives[one]._replace(reigns=lives[one].reigns + 1)
    return meta._replace(lives=lives)


def _decreed(layers: Layers, meta: Meta) -> Layers:
    """Decisions that two sessions referenced are decrees from now on, where they stand."""
    first, second, third = (
        tuple(one._replace(decree=True) if is_decree(one, meta.lives) else one for one in layer)
        for layer in layers
    )
    return first, second, third


def is_decree(one: Entry, lives: dict[str, Life]) -> bool:
    """Did enough sessions, beside the one that recorded it, reference a decision?"""
    life = lives.get(one.id)
    return one.kind == DECISION and life is not None and len(life.referenced) >= DECREE_SESSIONS


def _bury(work: Work, gone: Sequence[Entry], *, from_dusk: bool) -> Work:
    """To the lineage, with the full text."""
    lives = work.meta.lives
    found = [
        lineage.ancestor(_whole(work, one)._replace(ref=one.ref), lives[one.id].ruler, work.now)
        for one in gone
    ]
    rulers = {one.ruler for one in found} if from_dusk else set[int]()
    return work._replace(gone=(*work.gone, *found), dead=tuple(sorted({*work.dead, *rulers})))


def _whole(work: Work, one: Entry) -> Entry:
    """An entry with its original text, as far as that is known."""
    original = archive.original(work.originals.get(one.id, ()))
    return one._replace(body=original.body) if original else one


def _fate(one: Entry, original: Entry | None, lives: dict[str, Life]) -> tuple[Entry, Move]:
    """What becomes of an entry of Day, and as what it is placed. original: what it is a copy of; a
    copy that was referenced takes its place, and any other goes.
    """
    if original is not None:
        if not one.ref or original.decree:
            why = "its original is a decree" if original.decree else "a copy without a reference"
            return one, Move(one, "Day", "dropped", why)
        placed = compress.for_layer1(one._replace(candidate=original.candidate))
        return placed, Move(one, "Day", "Layer 1", f"score {one.ref}: in its original's place")
    decree = one.decree or is_decree(one, lives)
    if one.kind == OBSERVATION and not one.ref and not decree:
        return one, Move(one, "Day", LINEAGE, "an observation without a reference")
    why = "a decree, as written" if decree else f"score {one.ref}"
    return compress.for_layer1(one._replace(decree=decree)), Move(one, "Day", "Layer 1", why)


def _within_limits(work: Work, old: frozenset[str]) -> Work:
    """The layers within their limits. old: ids of what was in Dusk before."""
    limited = tiers.limit(work.layers, work.meta.lives)
    over = [move for move in limited.moves if move.target == LINEAGE]
    dead = [one.entry for one in over if one.source == "Layer 3" and one.entry.id in old]
    texts = list(work.texts)
    for number, line in limited.pointers:
        texts[number] = (*texts[number], line)
    work = work._replace(
        layers=limited.layers,
        texts=tuple(texts),
        moves=(*work.moves, *limited.moves),
        notes=(*work.notes, *limited.notes),
    )
    young = [one.entry for one in over if one.entry not in dead]
    return _settle(_bury(_bury(work, dead, from_dusk=True), young, from_dusk=False))


def _settle(work: Work) -> Work:
    """Since when each entry is in Layer 3; `None` for those that are not."""
    lives = dict(work.meta.lives)
    for number, layer in enumerate(work.layers, 1):
        for one in layer:
            known = lives[one.id].layer3_since
            since = (known or work.meta.current) if number == len(work.layers) else None
            if since != known:
                lives[one.id] = lives[one.id]._replace(layer3_since=since)
    return work._replace(meta=work.meta._replace(lives=lives))


def _rises(work: Work, one: Entry, alive: set[str]) -> bool:
    """Does an entry of Dawn come to Day? Not if its original has left Dusk meanwhile."""
    return one.id in alive or one.id not in work.state.meta.lives


def _git_observation(meta: Meta, dawn: Page) -> list[Entry]:
    texts = carried.texts(dawn, meta, markdown.GIT_STATE)
    text = trimmed("\n\n".join(texts).split("\n"))
    if not text:
        return []
    title = f"Git state of {meta.branch} before {meta.title(meta.current + 1)}"
    return [Entry(OBSERVATION, title, "", guarded(text, is_what=False))]


def _without_score(one: Entry) -> Entry:
    return one._replace(ref=0) if one.ref else one


def _written(lives: dict[str, Life], first: Sequence[Entry]) -> dict[str, Life]:
    """With the texts that Layer 1 shows: they are ours, not an edit."""
    return {**lives, **{one.id: admit.shown(lives[one.id], one.body) for one in first}}
