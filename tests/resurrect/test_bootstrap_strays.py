"""A bootstrap from a remote that somebody else can write to, or whose branch does not end with a
savepoint: what is whole there comes back.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from tests.gitlayer import remotes
from tests.resurrect.test_bootstrap import Machine, branches, cheap_scrypt, machine

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["cheap_scrypt", "machine"]

STRAYS = ("gabriel-998-11111111", "gabriel-999-22222222")


def pushed(machine: Machine) -> tuple[remotes.Bare, str]:
    """The remote, and the commit that the branch ends with."""
    machine.scene.good("sync")
    machine.back_up()
    (slug,) = branches(machine)
    machine.lose()
    bare = remotes.Bare(machine.remote)
    return bare, bare.tip(slug)


def put(bare: remotes.Bare, name: str, what: str) -> None:
    """As git itself does not let a branch be."""
    (bare.path / "refs/heads/savepoints" / name).write_text(what + "\n")


def _tag(bare: remotes.Bare, tip: str) -> str:
    said = f"object {tip}\ntype commit\ntag x\ntagger a <a@example.invalid> 0 +0000\n\nx\n"
    return bare.git("hash-object", "-w", "-t", "tag", "--stdin", stdin=said.encode())


def _unsound(bare: remotes.Bare, _: str) -> str:
    blob = bare.git("hash-object", "-w", "--stdin", stdin=b"x")
    entry = b"100644 .git\0" + bytes.fromhex(blob)
    whole = bare.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", stdin=entry)
    return bare.git("commit-tree", "-m", "x", whole)


def _hollow(bare: remotes.Bare, _: str) -> str:
    whole = bare.git("mktree", "--missing", stdin=b"040000 tree " + b"2" * 40 + b"\tlogs\n")
    return bare.git("commit-tree", "-m", "x", whole)


def _blob(bare: remotes.Bare, _: str) -> str:
    return bare.git("hash-object", "-w", "--stdin", stdin=b"x")


@pytest.fixture(autouse=True)
def _somebody(monkeypatch: pytest.MonkeyPatch) -> None:
    for who in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{who}_NAME", "a")
        monkeypatch.setenv(f"GIT_{who}_EMAIL", "a@example.invalid")


@pytest.mark.parametrize(
    "made",
    [lambda _, tip: tip, lambda *_: "1" * 40, _tag, _unsound, _hollow, _blob],
    ids=["same", "missing", "tag", "unsound", "hollow", "blob"],
)
def test_stray_branches_do_not_keep_it_away(
    machine: Machine, made: Callable[[remotes.Bare, str], str]
) -> None:
    """It said "R cannot be reached: fatal: Cannot fetch both …", for good."""
    bare, tip = pushed(machine)
    for name in STRAYS:
        put(bare, name, made(bare, tip))
    ran = machine.bootstrap()
    assert ran.code == 0, ran.err


def test_names_that_no_instance_has_are_no_branches_of_ours(machine: Machine) -> None:
    bare, tip = pushed(machine)
    for name in ("-oProxyCommand=x", "gabriel-999-2222222G", "\N{CYRILLIC SMALL LETTER A}"):
        put(bare, name, tip)
    checked = machine.scene("verify", "--repository", str(bare.path))
    assert "ProxyCommand" not in checked.err
    assert machine.bootstrap().code == 0


def test_very_many_stray_branches_are_not_looked_at_where_one_is_named(machine: Machine) -> None:
    """It said "git cannot be started: Argument list too long", and a hint with all their names."""
    bare, tip = pushed(machine)
    (slug,) = branches(machine)
    many = "".join(
        f"{tip} refs/heads/savepoints/gabriel-{number}-{number:08x}\n"
        for number in range(300, 300 + 20 * limits.GLANCED_BRANCHES)
    )
    with Path(bare.path / "packed-refs").open("a", encoding="ascii") as file:
        file.write(many)
    ran = machine.bootstrap()
    assert (ran.code, "name one with --instance" in ran.err) == (1, True), ran.err
    told = machine.scene("verify", "--repository", str(bare.path)).err
    assert f"and {20 * limits.GLANCED_BRANCHES + 1 - limits.LISTED} more" in told
    ran = machine.bootstrap("--instance", slug)
    assert ran.code == 0, ran.err


def test_a_branch_that_ends_with_a_retirement_comes_back_verified(machine: Machine) -> None:
    """The commit of its savepoint was behind the border, and VERIFY-9 refused it."""
    machine.scene.good("keys", "retire")
    pushed(machine)
    ran = machine.bootstrap()
    assert ran.code == 0, ran.err


def test_a_branch_that_ends_with_an_acceptance_comes_back_verified(machine: Machine) -> None:
    machine.scene.good("sync")
    (slug,) = branches(machine)
    bare = remotes.Bare(machine.remote)
    bare.put(slug, bare.foreign_commit(bare.tip(slug)))
    machine.scene.good("sync", "--accept-remote")
    pushed(machine)
    ran = machine.bootstrap()
    assert ran.code == 0, ran.err
