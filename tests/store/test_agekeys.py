"""age keys: made once with the store, refused where they are unsafe or no keys."""

from __future__ import annotations

import os
from pathlib import Path

import pyrage  # type: ignore[import-untyped]  # it ships no types
import pytest

from savepoint.core import limits
from savepoint.core.errors import KeyFileError
from savepoint.store.keys import agekeys
from savepoint.store.layout import Home, Store


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Home(str(tmp_path)).store("ab" * 16)
    agekeys.create(store, 1_790_000_000)
    return store


def test_what_is_made_is_what_age_keygen_makes(store: Store) -> None:
    text = Path(store.age_identity).read_text()
    created, public, secret = text.splitlines()
    assert created == "# created: 2026-09-21T14:13:20Z"
    assert secret.startswith("AGE-SECRET-KEY-1")
    recipient = public.removeprefix("# public key: ")
    assert Path(store.recipients).read_text() == f"{recipient}\n"
    assert {os.stat(p).st_mode & 0o777 for p in (store.age_identity, store.recipients)} == {0o600}


def test_the_identity_opens_what_the_recipients_were_sent(store: Store) -> None:
    sealed = pyrage.encrypt(b"x", agekeys.recipients(store))
    assert pyrage.decrypt(sealed, agekeys.identities(store)) == b"x"


def test_it_is_never_made_anew(store: Store) -> None:
    before = Path(store.age_identity).read_bytes()
    with pytest.raises(KeyFileError, match="exists already"):
        agekeys.create(store, 0)
    assert Path(store.age_identity).read_bytes() == before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n\n",
        "age1banana\n",
        "ssh-dss AAAA\n",
        "AGE-SECRET-KEY-1QQQ\n",
        "age1pq1xyz\n",
        "ssh-ed25519 AAAA\n",
    ],
)
def test_recipients_that_are_none(store: Store, text: str) -> None:
    Path(store.recipients).write_text(text)
    with pytest.raises(KeyFileError):
        agekeys.recipients(store)


def test_too_many_recipients(store: Store) -> None:
    one = Path(store.recipients).read_text()
    Path(store.recipients).write_text(one * limits.RECIPIENTS)
    assert len(agekeys.recipients(store)) == limits.RECIPIENTS
    Path(store.recipients).write_text(one * (limits.RECIPIENTS + 1))
    with pytest.raises(KeyFileError):
        agekeys.recipients(store)


@pytest.mark.parametrize("mode", [0o644, 0o660, 0o602])
@pytest.mark.parametrize("which", ["recipients", "age_identity"])
def test_files_that_others_may_touch_are_refused(store: Store, which: str, mode: int) -> None:
    """Who can write recipients.txt could read every later savepoint."""
    os.chmod(getattr(store, which), mode)
    with pytest.raises(KeyFileError, match="mode"):
        agekeys.recipients(store) if which == "recipients" else agekeys.identities(store)


@pytest.mark.parametrize("text", ["", "age1abc\n", "AGE-SECRET-KEY-1QQQ\n", "\udcff"])
def test_an_identity_that_is_none_is_not_printed(store: Store, text: str) -> None:
    Path(store.age_identity).write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(KeyFileError) as raised:
        agekeys.identities(store)
    assert "QQQ" not in str(raised.value)


def test_a_link_in_the_place_of_the_recipients(store: Store, tmp_path: Path) -> None:
    other = tmp_path / "other"
    os.rename(store.recipients, other)
    os.symlink(other, store.recipients)
    with pytest.raises(KeyFileError):
        agekeys.recipients(store)
