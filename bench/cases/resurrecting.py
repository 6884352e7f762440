"""What it costs to bring a savepoint back: here, and on a machine that has nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, NamedTuple

from bench.grow import grow
from bench.measure import Command, Series
from bench.report import Row, bound, passed_over
from bench.scale import MB, megabytes
from bench.world import settle

if TYPE_CHECKING:
    from bench.scale import Scale
    from bench.world import Home, Transcript, World

_NEEDED = ("git", "age", "zstd")
# Fetch, open, unpack, and nothing else: less than a savepoint's README says for it by hand, which
# checks each pack and each piece, and puts the pieces together to files.
_BY_HAND = """
set -e
git clone -q --bare --no-local --depth 1 -b "$2" "file://$1" "$4"
cd "$4"
git ls-tree -r --name-only HEAD | grep -E '[.](pack|zst)[.]age$' | while read -r path; do
  git cat-file blob "HEAD:$path" | age -d -i "$3" | zstd -dc
done > opened
"""
_AGAINST = "fetching, opening and unpacking it with `git`, `age`, `zstd`"
_TIMES = 3
_PEAK_MB = 256


def resurrect(world: World, scale: Scale) -> list[Row]:
    """The newest savepoint of a typical session, and of a long one beside the same by hand."""
    rows = [_typical(world, scale, anchors=anchors) for anchors in (False, True)]
    lacking = _lacking()
    session = world.new_session(scale.session)
    series = Series()
    for round_of in series.rounds(scale.rounds):
        home = _saved(world, session)
        settle(scale.rest, home)
        if not lacking:
            store = home.store
            (branch,) = _branches(store.repository)
            by_hand = _by_hand(world, store.repository, branch, store.age_identity)
            round_of.add("by hand", by_hand.seconds())
            _demand_size(world, session)
        round_of.add("resurrect", home.savepoint("resurrect").seconds())
        _forget(home, session)
    peak = _saved(world, session).savepoint("resurrect").peak_bytes()
    what = f"`resurrect` of {megabytes(scale.session)}"
    beside = (
        passed_over(what, f"there is no {lacking}")
        if lacking
        else bound(what, series, "resurrect", "by hand", _AGAINST, _TIMES)
    )
    return [*rows, beside, _peak(peak, _PEAK_MB)]


def bootstrap(world: World, scale: Scale) -> list[Row]:
    """The same from a remote with several savepoints and a backup of the keys, on a machine that
    has nothing else.
    """
    lacking = _lacking()
    if lacking:
        return [passed_over("`bootstrap`", f"there is no {lacking}")]
    session = world.new_session(0)
    pushed = _pushed(world, session, scale)
    series = Series()
    for round_of in series.rounds(scale.rounds):
        settle(scale.rest)
        pushed.forget_successors()
        by_hand = _by_hand(world, pushed.remote, pushed.branch, pushed.identity)
        round_of.add("by hand", by_hand.seconds())
        _demand_size(world, session)
        home = world.no_home()
        round_of.add("bootstrap", pushed.bootstrap(home).seconds())
        _forget(home, session)
    pushed.forget_successors()
    peak, transferred = _watched(world, pushed)
    blobs = _blob_bytes(pushed)
    what = f"`bootstrap` of {megabytes(scale.session)}, the newest of {scale.few} savepoints"
    return [
        bound(what, series, "bootstrap", "by hand", _AGAINST, None),
        _peak(peak, None),
        Row(
            "the same, bytes that the remote sends",
            f"{transferred / MB:.2f} MB",
            f"the blobs of that commit: {blobs / MB:.2f} MB",
            transferred / blobs,
            1.1,
        ),
    ]


class _Pushed(NamedTuple):
    """What is left of a machine: a remote, and the backup of the keys."""

    remote: str
    branch: str  # the only one
    identity: str  # what a person would open it with
    backup: str
    passphrase: str

    def bootstrap(self, home: Home, url: str = "") -> Command:
        """On a machine that has nothing else."""
        args = ("--remote", url or self.remote, "--keys", self.backup)
        return home.savepoint("bootstrap", *args, "--passphrase-file", self.passphrase)

    def forget_successors(self) -> None:
        """Each bootstrap pushes one, and the next would come back as its child."""
        for branch in _branches(self.remote):
            if branch != self.branch:
                _git(self.remote, "update-ref", "-d", f"refs/heads/{branch}")


def _pushed(world: World, session: Transcript, scale: Scale) -> _Pushed:
    home = world.new_home()
    grow(world, home, session, scale.few, scale.session // scale.few, commits=True)
    remote, backup, passphrase = (
        os.path.join(world.folder, name) for name in ("remote.git", "keys.age", "passphrase")
    )
    subprocess.run(["git", "init", "-q", "--bare", remote], check=True)
    home.savepoint("config", "remote", remote).seconds()
    home.savepoint("sync", "--wait").seconds()
    with open(passphrase, "w", opener=_private, encoding="ascii") as file:
        file.write("correct horse battery staple\n")
    args = ("keys", "backup", "-o", backup, "--passphrase-file", passphrase)
    home.savepoint(*args).seconds()
    (branch,) = _branches(remote)
    return _Pushed(remote, branch, home.store.age_identity, backup, passphrase)


def _typical(world: World, scale: Scale, *, anchors: bool) -> Row:
    session = world.new_session(scale.typical)
    series = Series()
    for round_of in series.rounds(scale.rounds):
        home = _saved(world, session, anchors=anchors)
        settle(scale.rest, home)
        round_of.add("resurrect", home.savepoint("resurrect").seconds())
        _forget(home, session)
    seconds = series.median("resurrect")
    ledger = "anchored on the embedded ledger" if anchors else "no ledger"
    what = f"newest savepoint of {megabytes(scale.typical)} restored, {ledger}, seconds"
    measured = f"{seconds:.2f} s (least {series.least('resurrect'):.2f})"
    return Row(what, measured, "", seconds, 1)


def _saved(world: World, session: Transcript, *, anchors: bool = False) -> Home:
    """A new home with one savepoint of the session."""
    home = world.new_home(anchors=anchors)
    home.timed(home.hook(session))
    home.rest()
    return home


def _forget(home: Home, session: Transcript) -> None:
    """The home goes, and what came back in it."""
    home.rest()
    shutil.rmtree(home.path)
    folder = os.path.dirname(session.path)
    for name in set(os.listdir(folder)) - {os.path.basename(session.path)}:
        path = os.path.join(folder, name)
        with contextlib.suppress(NotADirectoryError):
            shutil.rmtree(path)
            continue
        os.unlink(path)


def _by_hand(world: World, repository: str, branch: str, identity: str) -> Command:
    """As a person does it who has only git's copy and the key that opens it."""
    target = os.path.join(world.folder, "by-hand")
    shutil.rmtree(target, ignore_errors=True)
    args = ("/bin/sh", "-c", _BY_HAND, "sh", repository, branch, identity, target)
    return Command(args, world.environment(), world.folder)


def _demand_size(world: World, session: Transcript) -> None:
    """A pipe whose first part fails ends well: is it all there?"""
    opened = os.path.getsize(os.path.join(world.folder, "by-hand", "opened"))
    if opened < os.path.getsize(session.path):
        raise SystemExit("bench: error: by hand, not all of the session came back")


def _watched(world: World, pushed: _Pushed) -> tuple[int, int]:
    """Peak memory of a bootstrap over ssh, and the bytes that the remote sends in it. The ssh is
    ours: it runs the remote's side here, and counts.
    """
    sent, programs = (os.path.join(world.folder, name) for name in ("sent", "programs"))
    os.mkdir(programs)
    with open(os.path.join(programs, "ssh"), "w", encoding="ascii", opener=_executable) as file:
        file.write(f'#!/bin/sh\nfor last; do :; done\nsh -c "$last" | tee -a "{sent}"\n')
    command = pushed.bootstrap(world.no_home(), f"ssh://bench.invalid{pushed.remote}")
    path = os.pathsep.join((programs, command.env["PATH"]))
    peak = command._replace(env={**command.env, "PATH": path}).peak_bytes()
    return peak, os.path.getsize(sent)


def _blob_bytes(pushed: _Pushed) -> int:
    """Of the commit at the tip, each blob once."""
    listed = _git(pushed.remote, "ls-tree", "-r", "-l", pushed.branch).splitlines()
    fields = [line.split() for line in listed]
    return sum({blob: int(size) for _, _, blob, size, _ in fields}.values())


def _branches(repository: str) -> list[str]:
    names = _git(repository, "for-each-ref", "--format=%(refname:short)", "refs/heads")
    return names.split()


def _git(repository: str, *args: str) -> str:
    ran = subprocess.run(
        ["git", "-C", repository, *args], capture_output=True, text=True, check=True
    )
    return ran.stdout


def _lacking() -> str:
    """What of the programs that a person would use is not here."""
    return ", ".join(f"`{name}`" for name in _NEEDED if shutil.which(name) is None)


def _peak(peak: float, target: float | None) -> Row:
    name = "the same, peak memory of the process tree"
    ratio = None if target is None else peak / MB
    return Row(name, f"{peak / MB:.0f} MB", "", ratio, target)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _executable(path: str, flags: int) -> int:
    return os.open(path, flags, 0o700)
