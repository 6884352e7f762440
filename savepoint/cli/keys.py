"""`savepoint keys`: what keys a store has, their backup, and for whom savepoints are encrypted."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from savepoint.cli import options, passphrase, place, terminal
from savepoint.cli.ledger import config
from savepoint.core import limits, spelling
from savepoint.core.errors import KeyFileError, OutputExistsError, SavepointError
from savepoint.core.keys import public_key
from savepoint.core.spelling import Instance
from savepoint.gitlayer.remote import remote_url
from savepoint.store import durable, index, savepoints
from savepoint.store.keys import agekeys, keyring, retirement, safekeeping
from savepoint.store.keys import backup as kept_in
from savepoint.store.locks import Lock
from savepoint.work import start

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.strict_json import Json
    from savepoint.store.keys.backup import Backup
    from savepoint.store.keys.safekeeping import Restored, Taken
    from savepoint.store.layout import InstancePaths, Store

app = typer.Typer(
    help="Show, back up, restore and retire keys.",
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.command("show")
def show(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Show keys and recipients, and whether there is a backup."""
    at = place.find(project)
    value = _shown(at)
    if as_json:
        from savepoint.cli.shapes.shape import shaped
        from savepoint.cli.shapes.store import Keys

        terminal.document(shaped(Keys, value))
    else:
        _print(value)


@app.command("backup")
def backup(
    output: options.OutputFile,
    passphrase_file: passphrase.File = "",
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Write all secrets of the store into one encrypted file."""
    at = place.find(project)
    target = place.output(output)
    if os.path.lexists(target) and not force:
        raise OutputExistsError(f"{target} exists")  # before anybody types a passphrase
    taken = safekeeping.take(at.store, at.config, int(time.time()), _genesis(at))
    secret = passphrase.get(passphrase_file, twice=True)
    if len(secret) < limits.PASSPHRASE_SHORT:
        weak = f"a passphrase of less than {limits.PASSPHRASE_SHORT} characters can be guessed"
        terminal.note(f"{weak}: take several words, and make the backup again")
    size = _make(at.store, target, taken.backup, secret, force=force)
    if as_json:
        terminal.document(_made(taken, target, size))
    else:
        count = terminal.counted(len(taken.backup.instances), "instance")
        terminal.say(f"keys of store {at.store.id}, {count}, in {target}: {size} bytes")
        terminal.note("keep it on another machine, and its passphrase somewhere else")
    for slug in taken.left_out:
        terminal.note(f"{slug} is not in it: its birth record or its root is not here")


@app.command("restore")
def restore(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What `keys backup` made.")],
    passphrase_file: passphrase.File = "",
    as_json: options.AsJson = False,
) -> None:
    """Put the keys of a backup back where they were."""
    sealed = kept_in.read(file)
    secret = passphrase.get(passphrase_file, twice=False)
    with terminal.busy("decrypting"):
        document = kept_in.unseal(sealed, secret, file)
    kept = kept_in.parse(document)
    done = safekeeping.restore(place.home(), kept)
    if as_json:
        terminal.document(_restored(kept, done))
    else:
        _tell(kept, done)
    if done.other_recipients:
        terminal.note(f"{done.store.recipients} is not that of the backup; it stays as it is")


@app.command("retire")
def retire(as_json: options.AsJson = False, project: options.Project = ".") -> None:
    """Retire a key that is no longer trusted.

    The current instance ends, and so do its savepoints. A new root is made first; the old one is
    kept, since what it signed is verified with its key.
    """
    at = place.find(project)
    with Lock(at.store.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
        done = retirement.retire(at.paths, int(time.time()))
    start.start(at.store, place.around())
    if as_json:
        value: Json = {
            "retired": {"slug": done.old.slug, "instance": at.instance, "seq": done.seq},
            "root": done.root,
            "instance": savepoints.name_of(done.new),
            "slug": done.new.slug,
        }
        terminal.document(value)
    else:
        terminal.say(f"{at.title} is retired by its record {done.seq}")
        terminal.say(f"{place.title(done.new)} is the current instance from now on")
        terminal.say(f"  the old root is kept in {done.root}")
    terminal.note("git and ledger are told by the worker; `savepoint sync --wait` waits for it")
    terminal.note(place.KEYS_NOTE)


@app.command("add-recipient")
def add_recipient(
    recipient: Annotated[
        str,
        typer.Argument(metavar="RECIPIENT", help="A public key: age1… or 'ssh-ed25519 AAAA…'."),
    ],
    as_json: options.AsJson = False,
    project: options.Project = ".",
) -> None:
    """Let another key open what is committed from now on."""
    at = place.find(project)
    with Lock(at.store.lock, time.monotonic() + limits.LOCK_WAIT_SECONDS):
        is_new = agekeys.add_recipient(at.store, recipient)
    lines = agekeys.recipient_lines(at.store)
    if as_json:
        terminal.document({"added": is_new, "recipients": list(lines)})
    else:
        what = "is encrypted to it too from now on" if is_new else "was encrypted to it already"
        terminal.say(f"what is committed {what}: {terminal.counted(len(lines), 'key')} in all")
    if is_new:
        terminal.note("older commits are not encrypted again: the new key does not open them")
    if is_new and safekeeping.backed_up(at.store) is not None:
        terminal.note("the backup does not know it; `savepoint keys backup` makes one that does")


def _genesis(at: place.Place) -> str | None:
    """Of the ledger, if anything is anchored there."""
    if at.config.ledger is None:
        return None
    from anchor_service import queue

    rows = queue.rows(at.store, at.paths.slug)
    last = queue.newest_verified(rows, at.config.ledger, at.config.program)
    return last.genesis if last else None


def _shown(at: place.Place) -> dict[str, Json]:
    store = at.store
    made = safekeeping.backed_up(store)
    return {
        "store": store.id,
        "path": store.keys,
        "instances": [_instance(one, at.paths.slug) for one in _instances(store)],
        "roots": [_file(path, partial(keyring.read_seed, path)) for path in _roots(store)],
        "identity": _file(store.age_identity, lambda: agekeys.identities(store)),
        "recipients_file": _file(store.recipients, lambda: agekeys.check(store)),
        "recipients": list(_recipients(store)),
        "backed_up": made is not None,
        "backup_made": spelling.time_text(made) if made is not None else None,
    }


def _instances(store: Store) -> list[InstancePaths]:
    """Those that have records, and those of which only the key is there, as after a restore."""
    slugs = {one.slug for one in savepoints.instances(store)} | keyring.slugs(store)
    return [store.instance(slug) for slug in sorted(slugs)]


def _instance(paths: InstancePaths, current: str) -> Json:
    birth, name = index.birth(paths), savepoints.name_of(paths)
    return {
        "instance": name or None,
        "number": Instance.parse(name).number if name else None,
        "key": spelling.base58(birth.signer) if birth else _key(paths),
        "key_prefix": paths.slug[-8:],
        "slug": paths.slug,
        "current": paths.slug == current,
        "file": _file(paths.authority, lambda: keyring.authority(paths)),
    }


def _key(paths: InstancePaths) -> str | None:
    """The public half of the key file, where no record tells it."""
    try:
        return spelling.base58(public_key(keyring.authority(paths)))
    except KeyFileError:
        return None


def _file(path: str, check: Callable[[], object]) -> Json:
    """Whether a key file is there, is what it must be, and is nobody else's to read."""
    try:
        check()
    except SavepointError as failure:
        return {"path": path, "safe": False, "problem": failure.message}
    return {"path": path, "safe": True, "problem": None}


def _roots(store: Store) -> list[str]:
    try:
        return keyring.root_files(store)
    except KeyFileError:
        return [store.root_seed]  # reading it says why


def _recipients(store: Store) -> list[str]:
    try:
        return agekeys.recipient_lines(store)
    except KeyFileError:
        return []


def _print(shown: dict[str, Any]) -> None:
    terminal.say(f"keys of store {shown['store']} in {shown['path']}")
    for one in shown["instances"]:
        name = one["instance"] or one["slug"]
        mark = ", the current one" if one["current"] else ""
        terminal.say(f"  {name} (key {one['key_prefix']}){mark}")
        terminal.say(f"    key       {one['key'] or 'unknown'}")
        _print_file("    file      ", one["file"])
    for one in shown["roots"]:
        _print_file("  root        ", one)
    _print_file("  identity    ", shown["identity"])
    _print_file("  recipients  ", shown["recipients_file"])
    for line in shown["recipients"]:
        terminal.say(f"    {line}")
    if shown["backed_up"]:
        terminal.say(f"  backup      made {shown['backup_made']}")
    else:
        terminal.note(place.KEYS_NOTE)


def _print_file(head: str, file: dict[str, Any]) -> None:
    if file["safe"]:
        terminal.say(head + file["path"])
    else:
        terminal.say(head + file["problem"], "red")


def _make(store: Store, target: str, made: Backup, secret: str, *, force: bool) -> int:
    """The backup at `target`, and a note that there is one; its size in bytes."""
    with terminal.busy("encrypting"):
        sealed = kept_in.seal(made.to_bytes(), secret)
    if force:
        durable.replace(target, sealed)
    elif not durable.create_exclusive(target, sealed):
        raise OutputExistsError(f"{target} exists")
    safekeeping.note_made(store, made)
    return len(sealed)


def _made(taken: Taken, target: str, size: int) -> dict[str, Json]:
    return {
        "store": taken.backup.store,
        "file": target,
        "bytes": size,
        "created": spelling.time_text(taken.backup.created),
        "instances": [one.slug for one in taken.backup.instances],
        "left_out": list(taken.left_out),
    }


def _restored(kept: Backup, done: Restored) -> dict[str, Json]:
    return {
        "store": done.store.id,
        "path": done.store.keys,
        "instances": [one.slug for one in kept.instances],
        "remote": _remote(kept),
        "created": spelling.time_text(kept.created),
        "written": list(done.written),
        "kept": list(done.kept),
    }


def _tell(kept: Backup, done: Restored) -> None:
    what = "restored to" if done.written else "were there already, in"
    terminal.say(f"keys of store {done.store.id} {what} {done.store.keys}")
    for one in kept.instances:
        terminal.say(f"  instance  {one.instance} (key {one.slug[-8:]})")
    terminal.say(f"  remote    {_remote(kept) or 'none'}")
    terminal.say(f"  ledger    {config.name_of(kept.ledger) or 'none'}")
    if done.store.config in done.written:
        adopt = f"`savepoint init --adopt {done.store.id[:8]}` in the project's folder"
        back = ", then `savepoint fsck --repair`, bring back what the remote has"
        terminal.advise(f"{adopt}{back if kept.remote else ' goes on with that store'}")


def _remote(kept: Backup) -> str | None:
    return remote_url.without_secrets(kept.remote) if kept.remote else None
