"""What a person runs where the remote has something else, and how the store is looked at then."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from savepoint.gitlayer.remote import accept, adopt
from savepoint.gitlayer.witness import check
from savepoint.store import savepoints
from savepoint.store.fsck import fsck
from savepoint.store.keys import agekeys
from savepoint.store.layout import Home
from savepoint.store.witness import witness
from tests.gitlayer.layer import Layer
from tests.gitlayer.remotes import Pushing
from tests.verify.builder import NOW, Built

if TYPE_CHECKING:
    from pathlib import Path

    from savepoint.gitlayer.remote.accept import Accepted


def accept_remote(it: Pushing) -> Accepted:
    identities = agekeys.identities(it.layer.paths.store)
    return accept.accept(it.remote(), it.layer.paths, identities, NOW + 1_000_000)


def adopt_remote(it: Pushing) -> adopt.Adopted:
    return adopt.adopt(it.remote(), it.layer.paths, agekeys.identities(it.layer.paths.store))


def twin_of(it: Pushing, folder: Path) -> Pushing:
    """The store as it is, gone on with on another machine."""
    home = it.layer.paths.store.home
    shutil.copytree(home, folder)
    store = Home(str(folder)).store(it.layer.paths.store.id)
    built = Built(store.instance(it.slug), dict(it.layer.built.known))
    return Pushing(Layer(built, dict(it.layer.blobs)), it.bare)


def finish(it: Pushing) -> None:
    """What follows an acceptance: ours is committed, and pushed."""
    it.layer.commit()
    assert it.push()


def check_whole(it: Pushing) -> None:
    """Pushed, and every witness at hand says that all is well."""
    it.check_pushed()
    assert it.layer.fsck() == ""
    report = witness.verify_local(it.layer.paths)
    assert str(report.verdict) == "VERIFIED", report.to_json()
    remote = it.remote()
    checked = check.check(remote.repo, it.layer.paths, agekeys.identities(it.layer.paths.store))
    assert checked.faults == []
    found = fsck.fsck(it.layer.paths.store, NOW)
    assert [item for item in found.items if item.severity != "note"] == []


def conversations(it: Pushing) -> dict[str, bytes]:
    """Snapshot hash → transcript, of all savepoints."""
    found = {}
    for one in savepoints.records(it.layer.paths).saves:
        document = savepoints.open_snapshot(it.layer.paths, one).document
        (file,) = savepoints.files(it.layer.paths.store, document)
        found[one.snapshot_hash] = b"".join(savepoints.content(it.layer.paths.store, file))
    return found
