"""What `doctor` checks of a store: keys, index, trusted head, what is pending, missed or unsafe."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from savepoint.cli import place, terminal
from savepoint.cli.doctor.checks import Check, fail, good, tried, warn
from savepoint.cli.succession import dynasty
from savepoint.cli.view import status
from savepoint.core import limits, spelling
from savepoint.core.errors import KeyFileError, NoStoreError
from savepoint.store import birth, index, registry, savepoints, trusted
from savepoint.store.fsck.survey import survey
from savepoint.store.keys import agekeys, keyring, safekeeping
from savepoint.store.session import missed

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.errors import SavepointError
    from savepoint.store.layout import Home
    from savepoint.store.session.missed import Fire

_VERIFY = "run `savepoint verify --all`"
_RESTORE = "move it away; `savepoint keys restore FILE` brings it back from a backup"
_REPAIR = "run `savepoint fsck --repair`"


def run(home: Home, at: place.Place) -> list[Check]:
    """All of them, for a folder that has a store."""
    return [
        good("store", f"{at.title} in {at.store.path}, {_size(at)}"),
        _key("root key", lambda: _root_key(at)),
        _key("signing key", lambda: _signing_key(at)),
        _key("age keys", lambda: _age_keys(at)),
        _backup(at),
        tried("index", lambda: _index(at)),
        tried("trusted head", lambda: _trusted(at)),
        *_in_the_way(at),
        _modes(at),
        *_out_of_reach(home, at),
        *_pending(at),
        tried("missed fires", lambda: _missed(home, at)),
        *_dynasty(at),
        tried("threads", lambda: _threads(at)),
        _in_the_clear(at),
    ]


def without(home: Home, where: str, *, installed: bool) -> list[Check]:
    """For a folder that has none. installed: does the agent run our hook?"""
    moved = registry.moved(home, where)
    todo = place.adopting(moved[0]) if moved else NoStoreError.default_hint
    found = [fail("store", f"no store for {where}", todo)]
    if installed and not moved:
        found = [good("store", f"none for {where} yet; the agent's next event makes it")]
    found += [
        fail("moved", f"{where} was perhaps moved from store {one.id}", place.adopting(one))
        for one in moved
    ]
    fires = missed.below(home, where)
    if fires:
        detail = f"{terminal.counted(len(fires), 'fire')} found no store since {fires[0].timestamp}"
        found.append(fail("missed fires", detail, "`savepoint init` catches them up"))
    return found


def broken(failure: SavepointError) -> Check:
    """For a store that cannot be used at all."""
    return fail("store", failure.message, failure.hint)


def _size(at: place.Place) -> str:
    return terminal.size(status.bytes_below(at.store.path))


def _root_key(at: place.Place) -> Check:
    """The root seed gives the key that signed the birth record; that of a retired one, an older."""
    keyring.root_seed(at.store)
    first = index.birth(at.paths)
    if first is None or first.kind != "birth":
        return fail("root key", "the birth record cannot be read", _VERIFY)
    if birth.root_of(at.paths) is None:
        detail = f"{at.store.root_seed} does not give the key of {at.paths.slug}"
        return fail("root key", detail, _RESTORE)
    return good("root key", at.store.root_seed)


def _signing_key(at: place.Place) -> Check:
    keyring.authority(at.paths)
    return good("signing key", at.paths.authority)


def _age_keys(at: place.Place) -> Check:
    """What is committed can be encrypted, and opened again."""
    agekeys.check(at.store)
    return good("age keys", f"{at.store.age_identity}, {at.store.recipients}")


def _key(name: str, check: Callable[[], Check]) -> Check:
    """As `tried`; where a key file knows no better way out, it is the backup."""
    found = tried(name, check)
    return found._replace(todo=_RESTORE) if found.todo == KeyFileError.default_hint else found


def _backup(at: place.Place) -> Check:
    made = safekeeping.backed_up(at.store)
    if made is None:
        return warn("backup", "KEYS NOT BACKED UP", "run `savepoint keys backup -o FILE`")
    return good("backup", f"of the keys, made {spelling.time_text(made)}")


def _index(at: place.Place) -> Check:
    known = savepoints.records(at.paths)
    if known.unreadable:
        detail = f"{terminal.counted(known.unreadable, 'line')} cannot be read"
        return fail("index", detail, _VERIFY)
    return good("index", terminal.counted(len(known.saves), "savepoint"))


def _trusted(at: place.Place) -> Check:
    head = trusted.load(at.paths)
    if head is None or head.recreated:
        state = "is missing" if head is None else "was made anew"
        return warn("trusted head", f"{at.paths.trusted} {state}", _REPAIR)
    if lost := index.lost(at.paths, index.last(at.paths)):
        return fail("trusted head", lost, _REPAIR)
    return good("trusted head", f"record {head.seq}")


def _in_the_way(at: place.Place) -> list[Check]:
    """What is none of ours may stand where something of ours should: a folder in the place of a
    session's cache has all of it read again at each fire.
    """
    unknown = survey(at.store).unknown
    if not unknown:
        return []
    more = f", and {len(unknown) - 1} more" if len(unknown) > 1 else ""
    detail = f"{unknown[0]} does not belong into a store{more}"
    return [warn("store's folder", detail, "move it away")]


def _modes(at: place.Place) -> Check:
    """Permissions are all that protects what is stored here."""
    unsafe = survey(at.store).open_to_others
    if not unsafe:
        return good("permissions", "nobody else can read the store or its keys")
    path, mode = unsafe[0]
    more = f", and {len(unsafe) - 1} more" if len(unsafe) > 1 else ""
    detail = f"{path} has mode {mode:04o}{more}"
    return fail("permissions", detail, f"chmod -R go= {at.store.home}")


def _out_of_reach(home: Home, at: place.Place) -> list[Check]:
    """What lies in the project goes with it: `git clean`, `rm -rf`, a commit of all that is new."""
    inside = [one.path for one in at.config.projects if place.is_in(home.path, one.path)]
    todo = "move it, and set SAVEPOINT_HOME to where it is then"
    return [warn("place", f"{home.path} lies in the project {one}", todo) for one in inside]


def _pending(at: place.Place) -> list[Check]:
    found = []
    for one in status.unfinished(at.store, int(time.time())):
        age = int(str(one["age_seconds"]))
        detail = f"session {one['session_id']}, for {terminal.span(age)}: {one['reason']}"
        if one["drafts"]:
            detail += f"; {terminal.counted(int(str(one['drafts'])), 'draft')} to sign"
        found.append(warn("pending", detail, "`savepoint create` finishes it"))
    return found or [good("pending", "nothing")]


def _missed(home: Home, at: place.Place) -> Check:
    fires = missed.of_store(home, at.store, savepoints.instances(at.store))
    left = [one for one in fires if one.can_be_caught_up]
    if left:
        return warn("missed fires", _told(left), "`savepoint init` catches them up")
    if fires:
        return good("missed fires", f"{_told(fires)}; their transcripts are gone")
    misspelt = missed.misspelt(home, at.store)
    if misspelt:
        count = terminal.counted(len(misspelt), "fire")
        detail = f"{misspelt[-1].reason} ({count}, the last at {misspelt[-1].timestamp})"
        return good("missed fires", f"none; {detail}")
    return good("missed fires", "none")


def _dynasty(at: place.Place) -> list[Check]:
    """What is learned reaches no session where a file of it cannot be read."""
    found = [fail("dynasty", one.message, one.hint) for one in dynasty.damage(at.store)]
    return found or [good("dynasty", "its files can be read")]


def _threads(at: place.Place) -> Check:
    """Their log, as every command reads it. Raises SavepointError."""
    from savepoint.cli.handoff import place as handoff_place
    from succession.handoff import log

    known = handoff_place.known(at)
    if unseen := log.unseen(at.store):
        return warn("threads", unseen, log.COMPARE)
    count = terminal.counted(len(known.threads), "thread") if known else "none"
    return good("threads", f"{count}; the log holds" if known else count)


def _told(fires: list[Fire]) -> str:
    reasons = ", ".join(list(dict.fromkeys(one.reason for one in fires))[: limits.LISTED])
    return f"of {terminal.counted(len(fires), 'session')} since {fires[0].timestamp} ({reasons})"


def _in_the_clear(at: place.Place) -> Check:
    """Said, since nobody would guess it: what an agent printed may hold secrets."""
    return good(
        "in the clear",
        f"{at.store.path} holds conversations unencrypted, with all that the agent read or "
        "printed; file permissions alone protect it",
    )
