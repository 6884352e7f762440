"""What a save costs: of long sessions, a first one, in old stores, and beside what else saves."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from bench import references
from bench.grow import grow
from bench.measure import Series
from bench.report import Row, bound, shown
from bench.scale import MB, START
from bench.world import settle

if TYPE_CHECKING:
    from bench.measure import Command
    from bench.scale import Scale
    from bench.world import Home, Transcript, World

_SMALL_STEP = 3000  # bytes that a session grows by where the number of savepoints is the question
_SAVES_A_SESSION = 100


def steady(world: World, scale: Scale) -> list[Row]:
    """Sessions that are saved already, and go on: what is new is saved, or nothing is new."""
    home = world.new_home()
    session, longest = (world.new_session(size) for size in (scale.session, scale.longest))
    _first_save(home, session).seconds()
    peak = _first_save(home, longest).peak_bytes()
    series = Series()
    for round_of in series.rounds(scale.rounds):
        session.grow(scale.new)
        longest.grow(scale.new)
        settle(scale.rest, home)
        round_of.add("bare", world.python("-c", "pass").seconds())
        round_of.add("new", home.timed(home.hook(session)))
        home.rest()
        round_of.add("longest", home.timed(home.hook(longest)))
        home.rest()
        round_of.add("bare again", world.python("-c", "pass").seconds())
        round_of.add("nothing", home.timed(home.hook(session), new=0))
    size, long = f"{scale.session // MB} MB", f"{scale.longest // MB} MB"
    return [
        shown(START, series, "bare"),
        bound(f"{size} transcript + 1 MB new, to acknowledged", series, "new", "bare", START, 8),
        bound(f"{long} + 1 MB new", series, "longest", "new", f"that of {size}", 1.3),
        bound("nothing new", series, "nothing", "bare again", START, 3),
        *_stored(home, session, scale),
        Row(f"first save of {long} (`create`), peak memory", f"{peak / MB:.0f} MB", "", None, None),
    ]


def _stored(home: Home, session: Transcript, scale: Scale) -> list[Row]:
    """What saves of 1 MB new text store. The open segment, 0 to 1 MiB, is stored again by the next
    save: only a whole cycle of them says what one costs.
    """
    here = in_git = plain = 0
    for _ in range(scale.cycle):
        new = _appended(session, scale.new)
        settle(scale.rest, home)
        before = home.files()
        home.timed(home.hook(session))
        grown = _grown(before, home.files())
        here, in_git = here + grown[0], in_git + grown[1]
        plain += references.compressed_bytes(new)
    against = f"`zstd -3` of the new bytes: {plain / scale.cycle / 1000:.0f} kB"
    what = f"stored bytes, a save of 1 MB new text, mean of {scale.cycle}, this disk's own"
    both = here + in_git
    return [
        Row(what, f"{here / scale.cycle / 1000:.0f} kB", against, here / plain, 2),
        Row(
            "the same, with the encrypted copy in git",
            f"{both / scale.cycle / 1000:.0f} kB",
            against,
            both / plain,
            4,
        ),
    ]


def beside(world: World, scale: Scale) -> list[Row]:
    """What is shown and not bounded: saves by hand, fires of an automatic compaction, which watch
    the transcript for 250 ms, and what a user would pick instead.
    """
    home = world.new_home()
    session = world.new_session(scale.session)
    _first_save(home, session).seconds()
    instead = world.instead(session)
    for command in instead.values():
        command.seconds()
    series = Series()
    for _ in range(scale.rounds):
        session.grow(scale.new)
        settle(scale.rest, home)
        series.add("bare", world.python("-c", "pass").seconds())
        by_hand = home.savepoint("create", "--transcript", session.path)
        series.add("`create`", home.timed(by_hand))
        for name, command in instead.items():
            series.add(name, command.seconds())
        session.grow(scale.new)
        settle(scale.rest, home)
        series.add("fire of an auto compaction", home.timed(home.hook(session, "auto")))
    size = f"{scale.session // MB} MB + 1 MB new"
    return [
        bound(f"{name}, {size}", series, name, "bare", START, None)
        for name in ("`create`", "fire of an auto compaction", *instead)
    ]


def first(world: World, scale: Scale) -> list[Row]:
    """The first save of a long session, each time into a new store."""
    session = world.new_session(scale.session)
    hashing = world.python(references.__file__, "hash", session.path)
    series = Series()
    for round_of in series.rounds(scale.rounds):
        home = world.new_home()
        settle(scale.rest)
        round_of.add("hash", hashing.seconds())
        round_of.add("first", home.timed(home.hook(session)))
        home.rest()
        shutil.rmtree(home.path)
    peak = world.new_home().hook(session).peak_bytes()
    size = f"{scale.session // MB} MB"
    return [
        bound(f"first save of {size}", series, "first", "hash", "hashing it with `hashlib`", 8),
        Row("the same, peak memory of the process tree", f"{peak / MB:.0f} MB", "", peak / MB, 128),
    ]


def old_store(world: World, scale: Scale) -> list[Row]:
    """The same save in a store with few savepoints and in one with very many."""
    stores = {count: _store_of(world, count - 1) for count in (scale.few, scale.many)}
    series = Series()
    for round_of in series.rounds(scale.rounds):
        for _, session in stores.values():
            session.grow(_SMALL_STEP)
        settle(scale.rest, *(home for home, _ in stores.values()))
        for count, (home, session) in stores.items():
            round_of.add(str(count), home.timed(home.hook(session)))
    few, many = f"{scale.few:,}", f"{scale.many:,}"
    name = f"savepoint number {many}"
    return [bound(name, series, str(scale.many), str(scale.few), f"number {few}", 1.5)]


def _first_save(home: Home, session: Transcript) -> Command:
    return home.savepoint("create", "--transcript", session.path)


def _appended(session: Transcript, size: int) -> bytes:
    before = os.path.getsize(session.path)
    session.grow(size)
    with open(session.path, "rb") as file:
        file.seek(before)
        return file.read()


def _grown(before: dict[str, int], after: dict[str, int]) -> tuple[int, int]:
    """Bytes by which the files of a store grew: its own, and those of its git repository."""
    grown = {path: size - before.get(path, 0) for path, size in after.items()}
    in_git = sum(max(0, more) for path, more in grown.items() if "/repo.git/" in path)
    return sum(max(0, more) for more in grown.values()) - in_git, in_git


def _store_of(world: World, count: int) -> tuple[Home, Transcript]:
    """A store with `count` savepoints of sessions, and the last of these, which goes on."""
    home = world.new_home()
    session = None
    last = min(count, (count % _SAVES_A_SESSION) or _SAVES_A_SESSION)
    for saves in [*[_SAVES_A_SESSION] * ((count - last) // _SAVES_A_SESSION), last]:
        session = world.new_session(10 * _SMALL_STEP)
        grow(world, home, session, saves, _SMALL_STEP, commits=True)
    assert session is not None  # noqa: S101  # `last` is always there
    return home, session
