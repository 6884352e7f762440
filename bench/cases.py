"""The cases of the table: each prepares, measures in interleaved rounds, and gives rows."""

from __future__ import annotations

import glob
import os
import shutil
import statistics
from typing import TYPE_CHECKING, NamedTuple

from bench import references
from bench.grow import grow
from bench.measure import Series
from bench.report import Row, bound, shown
from bench.world import settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from bench.measure import Command
    from bench.world import Home, Transcript, World

MB = 10**6  # bytes


class Scale(NamedTuple):
    """How much of everything."""

    rounds: int  # of each case, after one that does not count
    session: int  # bytes of a long session
    longest: int  # bytes of a very long one
    new: int  # bytes that are new at a save
    few: int  # savepoints in a young store
    many: int  # savepoints in an old one
    chain: int  # savepoints of the session that is verified
    rest: float  # seconds that a transcript has been still


FULL = Scale(11, 100 * MB, 1000 * MB, MB, 10, 10_000, 100, 1.0)
QUICK = Scale(1, 3 * MB, 6 * MB, MB // 5, 3, 12, 5, 0.3)

START = "`python -I -c pass`"
PENDING = 3  # exit code of `verify` where savepoints are not in git yet
_SMALL_STEP = 3000  # bytes that a session grows by where the number of savepoints is the question
_SAVES_A_SESSION = 100


def steady(world: World, scale: Scale) -> list[Row]:
    """Sessions that are saved already, and go on: what is new is saved, or nothing is new."""
    home = world.new_home()
    session, longest = (world.new_session(size) for size in (scale.session, scale.longest))
    _first_save(home, session).seconds()
    peak = _first_save(home, longest).peak_bytes()
    series, stored = Series(), list[tuple[float, float, float]]()
    for number in range(scale.rounds + 1):
        new = _appended(session, scale.new)
        longest.grow(scale.new)
        settle(scale.rest, home)
        round_of = Series() if number == 0 else series
        before = home.files()
        round_of.add("bare", world.python("-c", "pass").seconds())
        round_of.add("new", home.timed(home.hook(session)))
        if number:
            here, in_git = _grown(before, home.files())
            stored.append((here, here + in_git, references.compressed_bytes(new)))
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
        _amount("stored bytes, a save of 1 MB new text, this disk's own", stored, 0, 2),
        _amount("the same, with the encrypted copy in git", stored, 1, 4),
        Row(f"first save of {long} (`create`), peak memory", f"{peak / MB:.0f} MB", "", None, None),
    ]


def _amount(case: str, stored: list[tuple[float, float, float]], which: int, target: float) -> Row:
    amount, plain = (statistics.median(one[at] / 1000 for one in stored) for at in (which, 2))
    ratio = statistics.median(one[which] / one[2] for one in stored)
    against = f"`zstd -3` of the new bytes: {plain:.0f} kB"
    return Row(case, f"{amount:.0f} kB", against, ratio, target)


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
    for number in range(scale.rounds + 1):
        home = world.new_home()
        settle(scale.rest)
        round_of = Series() if number == 0 else series
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
    for number in range(scale.rounds + 1):
        for _, session in stores.values():
            session.grow(_SMALL_STEP)
        settle(scale.rest, *(home for home, _ in stores.values()))
        round_of = Series() if number == 0 else series
        for count, (home, session) in stores.items():
            round_of.add(str(count), home.timed(home.hook(session)))
    few, many = f"{scale.few:,}", f"{scale.many:,}"
    name = f"savepoint number {many}"
    return [bound(name, series, str(scale.many), str(scale.few), f"number {few}", 1.5)]


def verify(world: World, scale: Scale) -> list[Row]:
    """Every savepoint of one long session, proven: on this disk alone, and with git's copies."""
    empty, home, twice = world.new_home(), world.new_home(), world.new_home()
    for one, commits in ((home, False), (twice, True)):
        session = world.new_session(0)
        step = scale.session // scale.chain
        grow(world, one, session, scale.chain, step, commits=commits)
    opening = world.python(references.__file__, "open", *_packs_folder(home))
    command = ("verify", "--all")
    series = Series()
    settle(scale.rest)
    for number in range(scale.rounds + 1):
        round_of = Series() if number == 0 else series
        round_of.add("open", opening.seconds())
        round_of.add("local", home.savepoint(*command, code=PENDING).seconds())
        round_of.add("git", twice.savepoint(*command).seconds())
    local = home.savepoint(*command, code=PENDING)
    read = local.bytes_read() - empty.savepoint(*command, code=None).bytes_read()
    evidence = sum(size for path, size in home.files().items() if _is_evidence(path))
    name = f"`verify --all`, {scale.chain} savepoints of one session of {scale.session // MB} MB"
    against = "decompressing and hashing all that is stored"
    return [
        bound(f"{name}, not in git yet", series, "local", "open", against, 2),
        Row(
            "the same, bytes read",
            f"{read / MB:.1f} MB",
            f"packs, snapshots, index: {evidence / MB:.1f} MB",
            read / evidence,
            1.01,
        ),
        Row("the same, peak memory", f"{local.peak_bytes() / MB:.0f} MB", "", None, None),
        bound(f"{name}, and all of it in git", series, "git", "open", "the same", None),
    ]


ALL: tuple[Callable[[World, Scale], list[Row]], ...] = (steady, beside, first, old_store, verify)


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


def _packs_folder(home: Home) -> list[str]:
    return glob.glob(os.path.join(home.path, "stores", "*", "objects"))


def _is_evidence(path: str) -> bool:
    return path.endswith((".pack", "/precompact-savepoint.jsonl")) or "/precompact-saves/" in path
