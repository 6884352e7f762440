"""What fsck checks besides the rules of verification: config, caches, keys, leftovers of crashes.

Shares no code with what writes these files, but for the spelling of a trusted head.
"""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from savepoint.core import limits
from savepoint.core import trusted_head as head_document
from savepoint.core.errors import MalformedError, SavepointError, UnsupportedFormatError
from savepoint.core.strict_json import Json, dump, parse
from savepoint.core.verdicts import Lack
from savepoint.store.fsck import key_items
from savepoint.store.fsck.items import Item, damage, note, warning
from savepoint.store.layout import THREADS
from savepoint.store.witness import evidence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from savepoint.core.trusted_head import TrustedHead
    from savepoint.core.verify_index import Index
    from savepoint.store.fsck.survey import Survey
    from savepoint.store.layout import InstancePaths, Store

_TAMPERED, _ROLLED_BACK, _UNSUPPORTED, _DISK = 20, 22, 23, 40  # exit codes
_REGAIN = "`savepoint fsck --repair` brings back what the remote has"


def trusted_head(paths: InstancePaths) -> TrustedHead | Lack | None:
    """What is in trusted/; None where there is none, or none that can be understood."""
    data = evidence.read(paths.trusted, limits.SMALL_DOCUMENT_BYTES)
    if isinstance(data, Lack):
        return data if data.unreadable else None
    try:
        return head_document.parse(data)
    except UnsupportedFormatError as failure:
        return Lack(failure.message, unreadable=True, unsupported=True)
    except MalformedError:
        return None


def items(store: Store, seen: Survey, indexes: Mapping[str, Index], now: float) -> Iterator[Item]:
    """Everything that the rules do not say. indexes: by slug. now: Unix seconds."""
    for folder, reason in seen.unlisted:
        yield damage(f"{folder} cannot be listed: {reason}", _DISK)
    yield from _config(store, seen, indexes)
    for slug, index in indexes.items():
        yield from key_items.of_instance(store.instance(slug), index)
        yield from _origin(store.instance(slug), index)
        yield from _arrival(store.instance(slug))
    if indexes:
        yield from key_items.of_age(store)
    yield from _heads(store, seen)
    yield from _caches(store, seen, indexes)
    yield from _pending(store, seen)
    yield from _leftovers(seen, indexes, now)


def _config(store: Store, seen: Survey, indexes: Mapping[str, Index]) -> Iterator[Item]:
    """The config names an instance that exists; stores.json, its cache, leads back to the store."""
    config = _document(store.config)
    if isinstance(config, Lack):
        if any(index.saves for index in indexes.values()) or config.reason != evidence.MISSING:
            code = _DISK if config.unreadable else _TAMPERED
            hint = "" if config.unreadable else _way_out(store)
            yield damage(f"config.json {config.reason}", code, hint)
        else:
            yield note("config.json is missing: the store was being made, and nothing finds it")
        return
    version = config.get("v")
    if type(version) is int and version > 1:
        yield damage(f"config.json is of version {version}", _UNSUPPORTED)
        return
    if config.get("instance") not in indexes and not seen.unlisted:
        yield damage("config.json names an instance that has no record here", hint=_REGAIN)
    try:
        paths = {str(_members(one)["path"]) for one in _items(config["projects"])}
    except (MalformedError, KeyError):
        yield damage("config.json names no projects", hint=_way_out(store))
        return
    yield from _way_back(store, paths)


def _origin(paths: InstancePaths, index: Index) -> Iterator[Item]:
    """A successor has the document that says so; without one it looks like the first of a line."""
    restored = any(one.kind == "restore" for one, _ in index.records)
    if restored and not os.path.lexists(paths.bootstrap):
        name = os.path.basename(paths.bootstrap)
        yield damage(f"instances/{paths.slug}/{name} is missing", hint=_REGAIN)


def _arrival(paths: InstancePaths) -> Iterator[Item]:
    """What a resurrection has left to do; half of the list would pass for all of it."""
    name = f"instances/{paths.slug}/{os.path.basename(paths.arrival)}"
    match _document(paths.arrival, limits.ARRIVAL_BYTES):
        case Lack(reason=evidence.MISSING):
            return
        case Lack(reason=reason):
            pass
        case {"v": 1, "sha256": sha256, "waits": waits} if sha256 == _digest(waits):
            yield note(f"{name}: a resurrection that was not finished; the next one finishes it")
            return
        case _:
            reason = "is not as it was written"
    hint = "`savepoint resurrect` gives it up, and brings everything back anew"
    yield warning(f"{name} {reason}: what waited for its place is not known", hint)


def _way_out(store: Store) -> str:
    return f"`savepoint init --adopt {store.id[:8]}` in the project's folder writes a new one"


def _way_back(store: Store, projects: set[str]) -> Iterator[Item]:
    known = _document(os.path.join(store.home, "stores.json"))
    if isinstance(known, Lack):
        yield note(f"stores.json {known.reason}; it is rebuilt from the configs")
        return
    stores = known.get("stores")
    mapped = {} if not isinstance(stores, dict) else stores
    for path in sorted(projects):
        if mapped.get(path) != store.id:
            yield note(f"stores.json does not lead from {path} to this store; it is rebuilt")


def _heads(store: Store, seen: Survey) -> Iterator[Item]:
    """A trusted head whose instance is gone; one that cannot be understood counts as missing."""
    for path in seen.trusted:
        slug = os.path.basename(path).removesuffix(".json")
        if slug == THREADS:  # of the log of threads, which no index has
            continue
        if slug not in seen.instances and not seen.unlisted:
            yield damage(f"{path} has seen an instance that is gone", _ROLLED_BACK, _REGAIN)
        elif trusted_head(store.instance(slug)) is None:
            yield note(f"{path} is damaged, which counts as missing")


def _caches(store: Store, seen: Survey, indexes: Mapping[str, Index]) -> Iterator[Item]:
    """Caches of sessions are never evidence: every save ignores what does not fit the index. What
    else is kept of a session (`<key>.guidance.json` …) is no cache of the index.
    """
    known = {one.hash for index in indexes.values() for one, _ in index.records}
    for path in seen.files:
        if not path.startswith("sessions/") or not path.endswith(".json") or path.count(".") > 1:
            continue
        cache = _document(os.path.join(store.path, path), limits.SESSION_CACHE_BYTES)
        if isinstance(cache, Lack):
            yield note(f"{path} {cache.reason}; it is rebuilt")
        elif cache.get("record") not in known:
            yield note(f"{path} does not fit the index; it is ignored and rebuilt")


def _pending(store: Store, seen: Survey) -> Iterator[Item]:
    """What a deadline, a kill or a missing key left; the next save finishes it."""
    for path in seen.files:
        if not path.startswith("pending/"):
            continue
        left = _document(os.path.join(store.path, path), 2 * limits.SNAPSHOT_BYTES)
        if not isinstance(left, Lack):
            yield note(f"{path}: a save that was not finished; the next one finishes it")
        elif path.endswith(".draft"):
            yield warning(f"{path} {left.reason}; what it held of a session is not saved")
        else:
            yield note(f"{path} {left.reason}; it is ignored")


def _leftovers(seen: Survey, indexes: Mapping[str, Index], now: float) -> Iterator[Item]:
    """What crashes leave, what does not belong here, and what others may read."""
    for index in indexes.values():
        if index.leftover:
            yield note(f"{index.names.index_file} has {index.leftover}")
    for path in seen.files:
        if ".torn-" in path:
            yield note(f"{path}: a torn end, set aside")
        if ".damaged-" in path:
            yield note(f"{path}: damaged, and set aside")
    if seen.temporaries:
        age = max(0, int(now - min(seen.temporaries)))
        yield note(f"{len(seen.temporaries)} temporary files, the oldest {age} seconds old")
    for path, mode in seen.open_to_others:
        yield warning(f"{path} has mode {mode:04o}: others may read or change it")
    for path in seen.unknown:
        yield note(f"{path} does not belong into a store")


def _document(path: str, limit: int = limits.SMALL_DOCUMENT_BYTES) -> dict[str, Json] | Lack:
    data = evidence.read(path, limit)
    if isinstance(data, Lack):
        return data
    try:
        return _members(parse(data, limit))
    except SavepointError as failure:
        return Lack(f"is damaged: {failure.message}")


def _digest(value: Json) -> str:
    return hashlib.sha256(dump(value)).hexdigest()


def _members(value: Json) -> dict[str, Json]:
    if not isinstance(value, dict):
        raise MalformedError("not an object")
    return value


def _items(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise MalformedError("not a list")
    return value
