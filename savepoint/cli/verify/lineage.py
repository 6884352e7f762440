"""`savepoint verify --lineage`: the line that an instance comes of, through its documents, indexes,
branches and accounts, back to the first.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

from savepoint.cli import place, terminal
from savepoint.cli.ledger import chain
from savepoint.core import bootstrap_document, limits, spelling, verify_lineage
from savepoint.core.errors import CommitError, MalformedError, SavepointError
from savepoint.core.spelling import Instance
from savepoint.core.verdicts import Finding, Report, Witness, tampered, unchecked
from savepoint.gitlayer import repository, tree
from savepoint.store import index, savepoints
from savepoint.store.config import EMBEDDED
from savepoint.store.files import read_bounded
from savepoint.store.witness.witness import verify_local

if TYPE_CHECKING:
    from savepoint.core.bootstrap_document import Bootstrap
    from savepoint.core.strict_json import Json
    from savepoint.gitlayer.repository import Repository
    from savepoint.store.layout import InstancePaths


class Link(NamedTuple):
    """One instance of the line, and what was found of how it came to be."""

    paths: InstancePaths
    name: str
    document: Bootstrap | None  # None: it is the first of its line, or nobody can read it
    findings: tuple[Finding, ...]

    def to_json(self) -> Json:
        """As in `verify --lineage --json`."""
        found: list[Json] = [one.to_json() for one in self.findings]
        return {
            "instance": self.name,
            "key": self.paths.slug[-8:],
            "from": self._origin(),
            "findings": found,
        }

    def _origin(self) -> Json:
        if self.document is None:
            return None
        before, one = self.document.predecessor, self.document.savepoint
        return {
            "instance": before.instance,
            "key": before.key[:4].hex(),
            "seq": one.seq,
            "snapshot_hash": one.snapshot_hash,
        }


def verify(at: place.Place, wanted: chain.Wanted, *, as_json: bool) -> int:
    """Walk the line back from an instance, and show it; the exit code. Raises DiskError."""
    walk = _Walk(at, wanted)
    line = list(walk.line())
    found = tuple(finding for one in line for finding in one.findings)
    report = Report(Witness(found), ())
    if as_json:
        shown: list[Json] = [one.to_json() for one in line]
        terminal.document({"verdict": str(report.verdict), "lineage": shown})
    else:
        for one in line:
            _print(one)
        terminal.say(f"{report.verdict}: {terminal.counted(len(line), 'instance')} of one line")
        if report.hint:
            terminal.advise(report.hint)
    return report.exit_code


class _Walk:
    """From an instance to its predecessors."""

    def __init__(self, at: place.Place, wanted: chain.Wanted) -> None:
        self._at = at
        self._wanted = wanted
        self._repo = place.repository(at.store)

    def line(self) -> list[Link]:
        """The instance and those before it. Numbers fall from each to the next, or modulo zero does
        not hold and the walk ends: so it does end.
        """
        found: list[Link] = []
        at: InstancePaths | None = self._at.paths
        while at is not None:
            link = self._link(at)
            found.append(link)
            lawful = any(f.rule == "LINEAGE-1" and f.result == "pass" for f in link.findings)
            at = self._before(link.document) if link.document and lawful else None
        return found

    def _before(self, document: Bootstrap) -> InstancePaths | None:
        holder = document.predecessor
        paths = self._at.store.instance(Instance.parse(holder.instance).slug(holder.key))
        return paths if os.path.lexists(paths.index_file) else None

    def _link(self, paths: InstancePaths) -> Link:
        own = verify_local(paths, lambda _: [])
        faults = tuple(one for one in own.chain.findings if one.result != "pass")
        birth = index.birth(paths)
        name = savepoints.name_of(paths) or paths.slug
        if birth is None or birth.kind != "birth":
            lost = unchecked("LINEAGE-1", f"{paths.slug}: its birth record cannot be read")
            return Link(paths, name, None, (*faults, lost))
        data = read_bounded(paths.bootstrap, limits.SMALL_DOCUMENT_BYTES)
        if data is None:
            first = verify_lineage.first(index.origin(paths), paths.slug)
            return Link(paths, name, None, (*faults, first))
        try:
            document = bootstrap_document.parse(data)
        except MalformedError as failure:
            bad = tampered("LINEAGE-1", f"{paths.slug}: {failure.message}")
            return Link(paths, name, None, (*faults, bad))
        lawful = verify_lineage.lawful(document, birth, paths.slug)
        if lawful.result != "pass":
            return Link(paths, name, document, (*faults, lawful))
        return Link(paths, name, document, (*faults, lawful, *self._found(paths, document)))

    def _found(self, paths: InstancePaths, document: Bootstrap) -> tuple[Finding, ...]:
        before = self._before(document)
        theirs = savepoints.records(before).all if before else None
        return (
            verify_lineage.origin(document, theirs),
            verify_lineage.restored(document, savepoints.records(paths).all),
            self._committed(paths, document),
            *self._anchored(paths, document),
        )

    def _committed(self, paths: InstancePaths, document: Bootstrap) -> Finding:
        try:
            return _committed(self._repo, paths, document)
        except SavepointError as failure:
            return unchecked("LINEAGE-4", failure.message, hint=failure.hint)

    def _anchored(self, paths: InstancePaths, document: Bootstrap) -> tuple[Finding, ...]:
        choice = self._wanted.ledger or self._at.config.ledger
        if choice is None:
            return (verify_lineage.not_anchored("no ledger is configured"),)
        if choice == EMBEDDED and not os.path.exists(paths.store.ledger_db):
            return (verify_lineage.not_anchored("the embedded ledger is not on this machine"),)
        if self._wanted.offline and choice != EMBEDDED:
            return (unchecked("LINEAGE-5", "the ledger was not asked"),)
        try:
            return self._asked(choice, paths, document)
        except SavepointError as failure:
            return (unchecked("LINEAGE-5", failure.message, hint=failure.hint),)

    def _asked(self, choice: str, paths: InstancePaths, document: Bootstrap) -> tuple[Finding, ...]:
        from anchor_service import witness
        from savepoint.core.verify_chain import Who

        program = chain.program_of(self._at.config, choice)
        known = chain.key("--program", self._wanted.program) or program
        ledger = chain.opened(choice, paths.store, known)
        if known is None:
            return (unchecked("LINEAGE-5", "no id of a program is known", hint=chain.NO_PROGRAM),)
        own, before = document.successor, document.predecessor
        who = Who(own.instance, own.key, known)
        looked = witness.look(ledger, who, self._repo, paths)
        found = (*looked.anchor.findings, *(looked.vouched.findings if looked.vouched else ()))
        faults = tuple(one for one in found if one.result != "pass")
        if faults and looked.anchor.account is not None:
            return faults
        account, _ = Who(before.instance, before.key, known).address
        named = spelling.base58(account)
        return (verify_lineage.anchored(document, looked.anchor.account, named),)


def _committed(repo: Repository, paths: InstancePaths, document: Bootstrap) -> Finding:
    """LINEAGE-4. Raises CommitError, DiskError."""
    name = repository.branch(paths.slug)
    if not os.path.lexists(repo.path) or repository.read_ref(repo, name) is None:
        return verify_lineage.committed(document, None, None)
    first = repo.run("rev-list", "--max-parents=0", name).decode("ascii", "replace").split()
    if not first:
        raise CommitError(f"the branch of {paths.slug} has no beginning")
    files = tree.list_files(repo, first[-1], tree.BOOTSTRAP)
    blobs = list(files.values())
    held = tree.contents(repo, blobs, limits.SMALL_DOCUMENT_BYTES)[0] if blobs else None
    return verify_lineage.committed(document, held, first[-1])


def _print(link: Link) -> None:
    terminal.say(place.title(link.paths))
    for one in link.findings:
        colour = None if one.result == "pass" else "red"
        terminal.say(f"    {one.rule} {one.result}: {one.detail}", colour)
