"""Each savepoint is one commit that holds all of it, and nothing in clear text."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from savepoint.core.errors import CommitError, KeyFileError, TamperedError
from savepoint.gitlayer.commits import commit as gitlayer
from tests.gitlayer.layer import Layer, shim
from tests.verify.builder import flip

if TYPE_CHECKING:
    from savepoint.core.strict_json import Json

MARKER = b"xylophone-marmalade"


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    return Layer.new(tmp_path)


def test_a_commit_is_one_whole_savepoint(layer: Layer, zstd: str) -> None:
    done = layer.saved(b"one\n" * 1000, loaded={"a.py": b"print(1)\n"})
    one = layer.built.records()[-1]
    assert (done.cursor.seq, done.cursor.record) == (2, one.hash)
    assert layer.tip() == done.cursor.commit
    layer.check_whole(layer.tip(), one)
    (pack,) = layer.built.packs()
    assert set(layer.tree(layer.tip())) == {
        "README.md",
        "RECOVER.tsv.age",
        "logs/precompact-savepoint.jsonl",
        f"{one.snapshot_file}.zst.age",
        f"objects/{pack.stem[:2]}/{pack.stem}.pack.age",
    }
    assert layer.fsck() == ""


def test_message_author_and_trailers(layer: Layer) -> None:
    layer.saved(b"one\n", document={"session_token_budget": 200_000})
    one = layer.built.records()[-1]
    raw = layer.git("cat-file", "commit", layer.tip()).decode()
    who = f"{layer.paths.slug} <{layer.paths.slug}@savepoint.invalid> {one.timestamp} +0000"
    head, _, message = raw.partition("\n\n")
    assert head.splitlines()[1:] == [f"author {who}", f"committer {who}"]
    assert message == (
        "[Gabriel #215] PRECOMPACT: Savepoint before context compaction\n\n"
        "Instance: Gabriel #215\n"
        "Timestamp: 2026-09-21T14:15:20Z\n"
        f"Snapshot hash: {one.body['snapshot_hash']}\n"
        "Tokens used: 1000/200000\n\n"
        "Savepoint-Seq: 2\n"
        f"Savepoint-Record: {one.hash}\n"
    )
    trailers = layer.lines("log", "-1", "--format=%(trailers:only)", layer.ref)
    assert trailers[:2] == ["Savepoint-Seq: 2", f"Savepoint-Record: {one.hash}"]


def test_what_is_in_git_already_is_not_stored_again(layer: Layer, zstd: str) -> None:
    text = os.urandom(700_000).hex().encode() + b"\n"  # closes a segment
    first = layer.saved(text)
    second = layer.saved(text + b"more\n")
    before, after = layer.tree(first.cursor.commit), layer.tree(second.cursor.commit)
    shared = {path for path in before.keys() & after.keys() if before[path] == after[path]}
    assert any(path.startswith("objects/") for path in shared)
    assert layer.history() == [first.cursor.commit, second.cursor.commit]
    for commit, one in zip(layer.history(), layer.built.records()[1:], strict=True):
        layer.check_whole(commit, one)
    small = layer.lines("cat-file", "--batch-all-objects", "--batch-check=%(objectsize)")
    assert sum(int(size) > 500_000 for size in small) == 1


def test_a_commit_has_only_the_packs_that_it_needs(layer: Layer, zstd: str) -> None:
    layer.saved(b"first\n", loaded={"a.py": b"a\n"})
    layer.saved(b"other\n")
    packs = [path for path in layer.tree(layer.tip()) if path.startswith("objects/")]
    assert len(packs) == 1
    layer.check_whole(layer.tip(), layer.built.records()[-1])


def test_lists_outside_the_snapshot_come_with_their_packs(layer: Layer, zstd: str) -> None:
    layer.saved(b"one\n", loaded={"a.py": b"a\n"}, spilled=True)
    layer.check_whole(layer.tip(), layer.built.records()[-1])


def test_the_index_goes_in_chunks_of_which_closed_ones_stay(layer: Layer) -> None:
    transcript = b""
    for number in range(69):
        transcript += b"%d\n" % number
        layer.saved(transcript)
    tree = layer.tree(layer.tip())
    closed = [path for path in tree if path.startswith("logs/precompact-savepoint/")]
    assert sorted(closed) == [
        "logs/precompact-savepoint/1.jsonl",
        "logs/precompact-savepoint/33.jsonl",
    ]
    assert {layer.blob(tree[path]).count(b"\n") for path in closed} == {32}
    whole = layer.built.index_file.read_bytes()
    for commit, one in zip(layer.history(), layer.built.records()[1:], strict=True):
        assert layer.index_in(commit) == whole[: whole.index(one.line) + len(one.line) + 1]
    full = layer.history()[30]  # record 32 closes the first chunk
    assert layer.blob(layer.tree(full)["logs/precompact-savepoint.jsonl"]) == b""
    assert layer.fsck() == ""


def test_what_was_left_behind_is_committed_in_order(layer: Layer, zstd: str) -> None:
    """A git failure fails no save; the next run has all of them to do."""
    for number in range(3):
        layer.save(b"left\n" * (number + 1))
    done = layer.commit(layer.save(b"newest\n"))
    assert done is not None
    assert [seq for seq, _ in done.commits] == [2, 3, 4, 5]
    assert [commit for _, commit in done.commits] == layer.history()
    for commit, one in zip(layer.history(), layer.built.records()[1:], strict=True):
        layer.check_whole(commit, one)
    assert layer.commit() is None
    assert layer.fsck() == ""


def test_a_long_queue_is_done_in_several_runs(
    layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "COMMITS_AT_ONCE", 2)
    for number in range(5):
        layer.save(b"left\n" * (number + 1))
    left = []
    while done := layer.commit():
        left.append(done.left)
    assert left == [3, 1, 0]
    assert len(layer.history()) == 5


def test_nothing_to_do(layer: Layer) -> None:
    assert layer.commit() is None, "a birth rides with the first savepoint"
    layer.saved(b"one\n")
    tip = layer.tip()
    assert layer.commit() is None
    assert layer.tip() == tip


def append(layer: Layer, kind: str, **body: Json) -> None:
    last = layer.built.records()[-1]
    one = layer.built.make(kind, last.seq + 1, last.hash, body, layer.built.seed)
    layer.built.write_lines(*layer.built.lines, one.line)


def test_records_that_are_no_savepoints_ride_in_the_next_commit(layer: Layer) -> None:
    layer.saved(b"one\n")
    append(layer, "accept", reason="recreated", first=None, last=None, tip=None)
    assert layer.commit() is None
    layer.saved(b"two\n")
    assert len(layer.history()) == 2
    assert layer.index_in(layer.tip()) == layer.built.index_file.read_bytes()


@pytest.mark.parametrize("forget", [False, True])
def test_a_retirement_keeps_the_tree_of_the_last_savepoint(layer: Layer, *, forget: bool) -> None:
    layer.saved(b"one\n")
    before = layer.tree(layer.tip())
    append(layer, "retire")
    if forget:
        layer.forget()
    done = layer.commit()
    assert done is not None
    after = layer.tree(layer.tip())
    changed = {path for path in before | after if before.get(path) != after.get(path)}
    assert changed == {"logs/precompact-savepoint.jsonl"}
    assert done.cursor.seq == 3
    assert b"RETIRE" in layer.git("cat-file", "commit", layer.tip())


def test_the_birth_of_a_successor_has_a_commit_of_its_own(layer: Layer) -> None:
    Path(layer.paths.bootstrap).write_bytes(b'{"between":[]}\n')
    done = layer.commit()
    assert done is not None
    assert done.cursor.seq == 1
    assert set(layer.tree(layer.tip())) == {
        "README.md",
        "BOOTSTRAP_VERIFICATION.json",
        "logs/precompact-savepoint.jsonl",
    }
    layer.saved(b"one\n")
    tree = layer.tree(layer.tip())
    assert layer.blob(tree["BOOTSTRAP_VERIFICATION.json"]) == b'{"between":[]}\n'
    assert len(layer.history()) == 2


# what does not fit


def test_nothing_above_a_gap_is_committed_until_it_is_accepted(layer: Layer) -> None:
    layer.saved(b"one\n")
    one = layer.built.records()[-1]
    body = dict(one.body)
    far = layer.built.make("save", 6, "ab" * 32, body, layer.built.seed)
    layer.built.write_lines(*layer.built.lines, far.line)
    with pytest.raises(CommitError, match="lacks the records 3 to 5"):
        layer.commit()
    append(layer, "accept", reason="gap", first=3, last=5, tip=None)
    done = layer.commit()
    assert done is not None
    assert [seq for seq, _ in done.commits] == [6, 7], "who fetches must see that it is accepted"


def test_a_record_that_does_not_follow_is_refused(layer: Layer) -> None:
    layer.saved(b"one\n")
    body = dict(layer.built.records()[-1].body)
    other = layer.built.make("save", 3, "ab" * 32, body, layer.built.seed)
    layer.built.write_lines(*layer.built.lines, other.line)
    with pytest.raises(CommitError, match="does not follow"):
        layer.commit()


@pytest.mark.parametrize("forget", [False, True])
@pytest.mark.parametrize("line", [0, 1])
def test_a_changed_index_is_not_carried_into_git(layer: Layer, *, forget: bool, line: int) -> None:
    layer.saved(b"one\n")
    layer.saved(b"two\n")
    tip = layer.tip()
    lines = layer.built.lines
    lines[line] = lines[line].replace(b"Gabriel", b"Gabriela")
    layer.built.write_lines(*lines)
    new = layer.save(b"three\n")
    if forget:
        layer.forget()
    with pytest.raises(CommitError, match="not the index that"):
        layer.commit(new)
    assert layer.tip() == tip


def test_an_index_that_git_is_ahead_of_is_not_gone_on_with(layer: Layer) -> None:
    layer.saved(b"one\n")
    lines = layer.built.lines
    layer.saved(b"two\n")
    layer.built.write_lines(*lines)
    with pytest.raises(CommitError, match="lacks record 3, which git has"):
        layer.commit()


def test_a_damaged_savepoint_keeps_no_later_one_from_git(layer: Layer, zstd: str) -> None:
    layer.saved(b"one\n")
    snapshot, pack = layer.save(b"two\n"), layer.save(b"three\n")
    flip(layer.built.snapshot(snapshot.record), 10)
    flip(Path(layer.paths.store.pack(next(iter(pack.written)))), -1)
    newest = layer.save(b"four\n")
    done = layer.commit(newest)
    assert done is not None
    assert [seq for seq, _ in done.skipped] == [3, 4]
    assert [seq for seq, _ in done.commits] == [5]
    layer.check_whole(layer.tip(), newest.record)


def test_nothing_but_a_damaged_savepoint_is_an_error(layer: Layer) -> None:
    flip(layer.built.snapshot(layer.save(b"one\n").record), 10)
    with pytest.raises(TamperedError):
        layer.commit()


# caches are never evidence


def test_a_lost_cache_changes_nothing(layer: Layer, zstd: str) -> None:
    text = os.urandom(700_000).hex().encode() + b"\n"
    for number in range(40):
        text += b"%d\n" % number
        layer.saved(text)
        if number % 13 == 0:
            layer.forget()
            layer.blobs.clear()
    for commit, one in zip(layer.history(), layer.built.records()[1:], strict=True):
        assert layer.index_in(commit).endswith(one.line + b"\n")
    layer.check_whole(layer.tip(), layer.built.records()[-1])
    sizes = layer.lines("cat-file", "--batch-all-objects", "--batch-check=%(objectsize)")
    assert sum(int(size) > 500_000 for size in sizes) == 1, "its blob was looked up"


def test_a_cache_of_nonsense_is_ignored(layer: Layer) -> None:
    layer.saved(b"one\n")
    (layer.git_dir / "savepoint" / layer.paths.slug).write_bytes(b"{}")
    layer.saved(b"two\n")
    assert len(layer.history()) == 2


def test_nothing_foreign_is_carried_on_from_a_tip_that_was_not_made_here(layer: Layer) -> None:
    layer.saved(b"one\n")
    layer.forge({"evil.yml": layer.store_blob(b"on: push\n")})
    layer.saved(b"two\n")
    assert "evil.yml" not in layer.tree(layer.tip())


def test_a_blob_that_is_lost_is_stored_again(layer: Layer, zstd: str) -> None:
    layer.saved(b"one\n" * 9)
    layer.blobs.update(dict.fromkeys(layer.blobs, "ab" * 20))
    layer.saved(b"one\n" * 9)
    layer.check_whole(layer.tip(), layer.built.records()[-1])


def test_packs_of_another_session_are_looked_up(layer: Layer, zstd: str) -> None:
    """A savepoint that was left behind knows no blobs; the commit it goes on from has them."""
    text = os.urandom(700_000).hex().encode() + b"\n"
    layer.saved(text)
    first = layer.built.records()[-1]
    layer.saved(b"in between\n")
    layer.blobs.clear()
    new = layer.save(text)
    body = {**new.record.body, "from": first.origin()}
    again = layer.built.make("save", 4, new.record.prev, body, layer.built.seed)
    layer.built.write_lines(*layer.built.lines[:-1], again.line)
    assert layer.commit(new._replace(record=again)) is not None
    sizes = layer.lines("cat-file", "--batch-all-objects", "--batch-check=%(objectsize)")
    assert sum(int(size) > 500_000 for size in sizes) == 1


# secrets


def test_no_clear_text_in_any_object(layer: Layer, tmp_path: Path) -> None:
    layer.saved(MARKER * 100 + b"\n", loaded={f"{MARKER.decode()}.py": MARKER})
    broken = shim(tmp_path / "bin", 'sh -c "exit 9"')
    with pytest.raises(CommitError):
        layer.commit(layer.save(MARKER * 200), env=broken)
    assert layer.commit(layer.save(MARKER * 300)) is not None
    listed = layer.lines("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    assert len(listed) > 10
    for name in listed:
        assert MARKER not in layer.git("cat-file", "-p", name)
    for path in layer.git_dir.rglob("*"):
        assert MARKER.decode() not in path.name
        assert not path.is_file() or MARKER not in path.read_bytes()


def test_the_identity_is_not_read_to_save(layer: Layer) -> None:
    Path(layer.paths.store.age_identity).unlink()
    layer.saved(b"one\n")
    assert layer.tip()


def test_without_recipients_nothing_is_committed(layer: Layer) -> None:
    Path(layer.paths.store.recipients).unlink()
    with pytest.raises(KeyFileError):
        layer.commit(layer.save(b"one\n"))
    assert not layer.ref_file.exists()


def test_two_equal_savepoints_are_not_seen_to_be_equal(layer: Layer) -> None:
    first, second = layer.saved(b"same\n"), layer.saved(b"same\n")
    assert first.blobs == second.blobs, "the pack is stored once"
    trees = [layer.tree(commit) for commit in layer.history()]
    recover = {tree["RECOVER.tsv.age"] for tree in trees}
    assert len(recover) == 2


def test_a_usual_save_runs_git_once(layer: Layer, tmp_path: Path) -> None:
    env = shim(tmp_path / "bin", f'echo "$*" >> {tmp_path}/calls\nexec $REAL "$@"')
    layer.commit(layer.save(b"one\n"), env=env)
    (tmp_path / "calls").unlink()
    layer.commit(layer.save(b"two\n"), env=env)
    (call,) = (tmp_path / "calls").read_text().splitlines()
    assert "fast-import" in call
    assert not re.search(r"\bone\b|\btwo\b", call)


def test_the_snapshots_name_leads_to_the_file_of_the_record(layer: Layer) -> None:
    first = layer.saved(b"one\n")
    layer.saved(b"two\n")
    one = layer.built.records()[1]
    assert f"{one.snapshot_file}.zst.age" in layer.tree(first.cursor.commit)
    assert f"{one.snapshot_file}.zst.age" not in layer.tree(layer.tip())


def test_what_a_run_gives_back(layer: Layer) -> None:
    done = layer.saved(b"one\n")
    (pack,) = layer.built.packs()
    assert done.blobs == {
        pack.stem: layer.tree(layer.tip())[f"objects/{pack.stem[:2]}/{pack.stem}.pack.age"]
    }
    opened = layer.opened(done.blobs[pack.stem])
    assert hashlib.sha256(opened).hexdigest() == pack.stem
    assert gitlayer.Committed._fields[:2] == ("cursor", "commits")
