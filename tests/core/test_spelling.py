"""Times, keys, instance ids, slugs, names of files: what is written is read, and nothing else."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from savepoint.core import limits, spelling
from savepoint.core.errors import MalformedError
from savepoint.core.spelling import Instance
from tests.core.values import mutations, texts, times

if TYPE_CHECKING:
    from collections.abc import Callable

KEYS = st.binary(min_size=32, max_size=32)


@given(times)
def test_times_are_those_of_the_calendar(seconds: int) -> None:
    text = spelling.time_text(seconds)
    moment = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(seconds=seconds)
    assert text == moment.strftime("%Y-%m-%dT%H:%M:%SZ").rjust(20, "0")
    assert spelling.time_seconds(text) == seconds


@pytest.mark.parametrize("seconds", [-1, spelling.LAST_TIME + 1, 2**63])
def test_times_beyond_four_digits_of_a_year_are_refused(seconds: int) -> None:
    with pytest.raises(MalformedError):
        spelling.time_text(seconds)


@given(times, st.data())
def test_no_second_spelling_of_a_time(seconds: int, data: st.DataObject) -> None:
    text = spelling.time_text(seconds)
    changed = data.draw(mutations(text.encode())).decode("latin-1")
    try:
        found = spelling.time_seconds(changed)
    except MalformedError:
        return
    assert spelling.time_text(found) == changed != text


@given(st.binary(max_size=32))
def test_base58_keeps_bytes_apart(data: bytes) -> None:
    text = spelling.base58(data)
    if len(data) == 32:
        assert spelling.key_bytes(text) == data
    else:
        with pytest.raises(MalformedError):
            spelling.key_bytes(text)


@given(KEYS, st.data())
def test_no_second_spelling_of_a_key(key: bytes, data: st.DataObject) -> None:
    text = spelling.base58(key)
    changed = data.draw(mutations(text.encode())).decode("latin-1")
    try:
        found = spelling.key_bytes(changed)
    except MalformedError:
        return
    assert found != key
    assert spelling.base58(found) == changed


@given(texts, st.integers(0, 10**10))
def test_an_instance_is_read_as_it_was_written(name: str, number: int) -> None:
    try:
        found = Instance.parse(f"{name} #{number}")
    except MalformedError:
        return
    assert found == Instance(name, number)
    assert str(found) == f"{name} #{number}"
    assert 1 <= len(name) <= limits.INSTANCE_NAME_CHARS
    assert 1 <= number < 10**9
    assert "#" not in name
    assert name == name.strip()


@given(
    st.text("abcXYZ09 -_.\u00e4\u6f22", min_size=1, max_size=80), st.integers(1, 999999999), KEYS
)
def test_a_slug_is_a_safe_name_of_a_folder(name: str, number: int, key: bytes) -> None:
    slug = Instance(name, number).slug(key)
    words, _, prefix = slug.rpartition("-")
    assert prefix == key[:4].hex()
    assert words
    assert set(words) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
    assert words == words.strip("-")
    assert "--" not in words
    assert len(words) <= limits.SLUG_CHARS


@pytest.mark.parametrize(
    ("read", "good"),
    [
        (spelling.digest, "ab" * 32),
        (spelling.prefixed_digest, "sha256:" + "ab" * 32),
        (lambda text: spelling.hex_bytes(text, 4), "00ff10ab"),
        (spelling.session_key, "a" * 64),
        (spelling.word, "context_limit_approaching"),
        (spelling.snapshot_file, "logs/precompact-saves/snapshot_2026-11-30T13-26-49Z_12.json"),
    ],
)
def test_names_are_matched_as_a_whole(read: object, good: str) -> None:
    assert callable(read)
    read(good)
    bad = ["", good[:-1] + "\n", good + "\n", " " + good, good + "\0", good[:-1] + "/", good + good]
    for text in [*bad, good[:-1] + "\u0661", good[:-1] + "\uff11", "../" + good, good[:-1] + "."]:
        with pytest.raises(MalformedError):
            read(text)


def _accepts(parse: Callable[[str], object], text: str) -> bool:
    try:
        return parse(text) is not False
    except MalformedError:
        return False


EXPRESSIONS: dict[str, tuple[Callable[[str], object], str]] = {
    "digest": (spelling.digest, r"[0-9a-f]{64}"),
    "hex": (lambda text: spelling.hex_bytes(text, 3), r"[0-9a-f]{6}"),
    "session": (spelling.is_session_key, r"[A-Za-z0-9-]{1,64}"),
    "word": (spelling.is_word, r"[A-Za-z][A-Za-z0-9_-]{0,31}"),
    "instance": (Instance.parse, r"[\w+.:-]([\w+.: -]{0,62}[\w+.:-])? #[1-9][0-9]{0,8}"),
    "snapshot": (
        spelling.snapshot_file,
        (
            r"logs/precompact-saves/snapshot_[0-9]{4}(-[0-9]{2}){2}T([0-9]{2}-){2}[0-9]{2}Z"
            r"(_[1-9][0-9]{0,18})?\.json"
        ),
    ),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
@given(data=st.data())
def test_what_is_compared_by_hand_is_what_an_expression_would_match(
    name: str, data: st.DataObject
) -> None:
    parse, expression = EXPRESSIONS[name]
    good = data.draw(st.from_regex(re.compile(expression, re.ASCII), fullmatch=True))
    assert _accepts(parse, good)
    at = data.draw(st.integers(0, len(good)))
    cut = data.draw(st.integers(0, 2))
    other = good[:at] + data.draw(st.text(ODD, max_size=2)) + good[at + cut :]
    assert _accepts(parse, other) == bool(re.fullmatch(expression, other))


ODD = "0aAfgGzZ9_-+ #.:TZ\n\u0660\u00b2\uff11"  # also digits of other scripts, which `int` takes
