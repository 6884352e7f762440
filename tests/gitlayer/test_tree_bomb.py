"""A few trees that name each other many times over: whoever can write to a remote can put them
there. Each is bounded work, and told as what it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import RemoteDivergedError
from savepoint.core.verdicts import Verdict
from savepoint.gitlayer import tree
from tests.gitlayer import remotes
from tests.gitlayer.accepting import accept_remote, check_whole, finish
from tests.gitlayer.test_check import checked, repo_of

if TYPE_CHECKING:
    from pathlib import Path

    from tests.gitlayer.layer import Layer
    from tests.gitlayer.remotes import Pushing


def bomb(git_dir: Path, parent: str, *, on: str, hollow: bool) -> str:
    """A commit after `parent`, with the tree and the words of commit `on` and a folder of 16 ** 12
    files beside; hollow: of as many folders without a file.
    """

    def git(*args: str, stdin: bytes = b"") -> str:
        return remotes.git(f"--git-dir={git_dir}", *args, stdin=stdin)

    blob = git("hash-object", "-w", "--stdin", stdin=b"x")
    below = git("mktree", stdin=b"" if hollow else f"100644 blob {blob}\tf\n".encode())
    for _ in range(12):
        entries = (f"040000 tree {below}\t{number:02}\n" for number in range(16))
        below = git("mktree", stdin="".join(entries).encode())
    listing = git("ls-tree", on) + f"\n040000 tree {below}\tzz\n"
    whole = git("mktree", stdin=listing.encode())
    said = git("log", "-1", "--format=%B", on)
    return git("commit-tree", whole, "-p", parent, "-F", "-", stdin=said.encode())


@pytest.mark.parametrize("hollow", [True, False])
def test_a_tree_bomb_is_no_savepoint(layer: Layer, *, hollow: bool) -> None:
    layer.saved(b"one\n")
    made = bomb(layer.git_dir, layer.tip(), on=layer.tip(), hollow=hollow)
    with pytest.raises(tree.ForeignEntryError, match="more entries"):
        tree.list_files(repo_of(layer), made)


def test_a_tree_bomb_in_a_branch_is_found_by_its_check(layer: Layer) -> None:
    """`git diff-tree -r` took 24 GB before the first byte of its output. Hollow, it went on until
    the time was over, and nothing was known of the commit.
    """
    for number in range(4):
        layer.saved(b"%d\n" % number)
    *_, parent, tip = layer.history()
    layer.ref_file.write_text(bomb(layer.git_dir, parent, on=tip, hollow=True) + "\n")
    (fault,) = checked(layer).faults
    assert (fault.seq, fault.verdict) == (5, Verdict.TAMPERED)
    assert "more entries" in fault.detail


def test_a_tree_bomb_at_the_remote_is_divergence_and_can_be_accepted(it: Pushing) -> None:
    """Pushing ended for ever, with words of git's output and no way out."""
    it.saved(2)
    it.push()
    it.bare.put(it.slug, bomb(it.bare.path, it.layer.tip(), on=it.layer.tip(), hollow=False))
    with pytest.raises(RemoteDivergedError, match="more entries"):
        it.push()
    assert accept_remote(it).record is not None
    it.saved(1)
    finish(it)
    check_whole(it)
