"""Vectors of snapshots (docs/format.md, section 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vectors.builders import (
    GABRIEL,
    Members,
    Value,
    record,
    save_body,
    sha256,
    spell,
    swap,
    vector,
)
from tests.vectors.snapshot_example import (
    FULL,
    LONG,
    PACK,
    SHORT,
    bare,
    change,
    file,
    full,
    loaded,
    nested,
    root,
    seal,
    sealed,
    segment,
    with_member,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


def vectors() -> list[Members]:
    """All of them."""
    return [*_valid(), *_versions(), *_spilled(), *_sealed_wrongly(), *_edited(), *_bound()]


def _ok(name: str, data: bytes, **more: Value) -> Members:
    return vector(name, "ok", data, hash=sha256(data), **more)


def _valid() -> Iterator[Members]:
    yield _ok("full", sealed(full()))
    yield _ok("bare", sealed(bare()))
    yield _ok("name_in_unicode", with_member("instance_id", "Ägidius 漢 #215"))
    yield _ok(
        "state_holds_any_json", with_member("session_state", [None, -1, {"": "\u0000\u007f\u2028"}])
    )
    yield _ok(
        "state_holds_an_integrity_member",
        with_member("session_state", {"a": 0, "integrity": {"a": 1}}),
    )
    yield _ok("path_holds_integrity_text", with_member("notes", ['a,"integrity":b']))
    yield _ok(
        "loaded_file_named_count", with_member("loaded_files", {"count": loaded("read", True)})
    )
    yield _ok("state_nested_to_the_limit", with_member("session_state", nested(62)))


def _versions() -> Iterator[Members]:
    yield vector("format_2", "unsupported", seal(swap(FULL, '"format":1', '"format":2')))
    yield vector("format_2_of_another_shape", "unsupported", b'{"format":2,"x":[]}\n')
    yield vector("format_0", "malformed", with_member("format", 0))
    yield vector("format_true", "malformed", with_member("format", True))
    yield vector("format_missing", "malformed", seal(swap(FULL, '"format":1,', "")))


_FILES = "git_state|changes|files"
_TRANSCRIPT = "conversation_history|transcript"


def _spilled() -> Iterator[Members]:
    """Lists that are kept outside the document, and the bytes that their segments open to."""
    lists: dict[str, Value] = {
        "conversation_history|companions": [file("a/subagents/agent-1.jsonl", SHORT)],
        "loaded_files": {"src/main.py": loaded("read", False, b"print(1)\n")},
        _FILES: [change("a", "working", SHORT)],
        "git_state|changes|deleted": ["gone.py", {"b64": "/w=="}],
        "git_state|changes|excluded": [{"path": ".env", "reason": "environment file"}],
        _TRANSCRIPT + "|segments": [segment(LONG), segment(SHORT)],
    }
    for path, value in lists.items():
        yield _spill("spilled_" + path.replace("|", "_"), "ok", path, spell(value), len(value))  # type: ignore[arg-type]  # lists and objects
    yield _spill("spilled_empty_list", "ok", "git_state|changes|deleted", b"[]", 0)
    files = spell([change("a", "working", SHORT)])
    wrong = {
        "spilled_count_wrong": ("tampered", _FILES, files, 2),
        "spilled_object_for_list": ("malformed", _FILES, b'{"a":{}}', 1),
        "spilled_list_for_object": ("malformed", "loaded_files", b'["a"]', 1),
        "spilled_items_of_other_shape": ("malformed", _FILES, b'["a"]', 1),
        "spilled_with_blank": ("malformed", _FILES, files[:-1] + b" ]", 1),
        "spilled_with_lf": ("malformed", _FILES, files + b"\n", 1),
        "spilled_not_json": ("malformed", _FILES, b"[", 0),
        "spilled_root_not_fitting": (
            "tampered",
            "conversation_history|companions",
            spell([file("a", SHORT) | {"root": "ab" * 32}]),
            1,
        ),
    }
    for name, (expect, path, data, count) in wrong.items():
        yield _spill(name, expect, path, data, count)
    outside: Members = {"list": [segment(b"[]")], "count": -1}
    yield vector("spilled_count_negative", "malformed", with_member(_FILES, outside))
    reverse: Members = {"count": 0, "list": [segment(b"[]")]}
    yield vector("spilled_member_order", "malformed", with_member(_FILES, reverse))
    more: Members = {"list": [segment(b"[]")], "count": 0, "more": 0}
    yield vector("spilled_extra_member", "malformed", with_member(_FILES, more))
    listed: Members = {"list": [segment(b"[]")], "count": 0}
    yield vector("spilled_where_none_may_be", "malformed", with_member("notes", listed))
    companion = file("a") | {"segments": listed}
    yield vector(
        "spilled_segments_of_a_companion",
        "malformed",
        with_member("conversation_history|companions|0", companion),
    )


def _spill(name: str, expect: str, path: str, data: bytes, count: int) -> Members:
    """The list cut into two segments, so that their order matters."""
    pieces = [one for one in (data[: len(data) // 2], data[len(data) // 2 :]) if one]
    held: Members = {"list": [segment(one) for one in pieces], "count": count}
    opened: Members = {sha256(one): one.decode() for one in pieces}
    data = with_member(path, held)
    more: Members = {"hash": sha256(data)} if expect == "ok" else {}
    return vector(name, expect, data, **more, opened=opened)


def _sealed_wrongly() -> Iterator[Members]:
    whole = sealed(full())
    yield vector("integrity_hash_wrong", "tampered", seal(FULL, hash_sha256="ab" * 32))
    yield vector("integrity_size_wrong", "tampered", seal(FULL, size_bytes=len(FULL)))
    yield vector("changed_after_sealing", "tampered", swap(whole, "87500", "87501"))
    uncovered = sha256(FULL[:-1] + b"\n")
    yield vector("integrity_without_brace", "tampered", seal(FULL, hash_sha256=uncovered))
    yield vector("integrity_without_lf", "tampered", seal(FULL, hash_sha256=sha256(FULL)))
    tail = whole[whole.rindex(b',"integrity"') :]
    files = {
        "empty": b"",
        "integrity_missing": FULL + b"\n",
        "integrity_extra_member": seal(FULL, by="ada"),
        "integrity_hash_uppercase": seal(FULL, hash_sha256=sha256(FULL + b"\n").upper()),
        "integrity_hash_with_prefix": seal(FULL, hash_sha256="sha256:" + sha256(FULL + b"\n")),
        "integrity_time_wrong": seal(FULL, created_at="2026-02-30T13:03:49Z"),
        "integrity_size_negative": seal(FULL, size_bytes=-1),
        "integrity_size_bool": seal(FULL, size_bytes=True),
        "integrity_twice": whole[:-2] + tail,
        "integrity_first": b"{" + tail[1:-2] + b"," + FULL[1:] + b"\n",
        "missing_lf": whole[:-1],
        "crlf": whole[:-1] + b"\r\n",
        "second_lf": whole + b"\n",
        "trailing_bytes": whole + b"x",
        "trailing_document": whole + whole,
        "byte_order_mark": b"\xef\xbb\xbf" + whole,
        "cut": whole[:2000],
        "pretty": whole.replace(b",", b", "),
        "not_an_object": b"[" + whole[:-1] + b"]\n",
        "not_utf8": swap(whole, "gone.py", "gone@py").replace(b"gone@py", b"gone\xffpy"),
    }
    for name, data in files.items():
        yield vector(name, "malformed", data)


def _edited() -> Iterator[Members]:
    """One member is wrong; the integrity covers what is written."""
    for name, path, value in _MALFORMED:
        yield vector(name, "malformed", with_member(path, value))
    for name, path, value in _TAMPERED:
        yield vector(name, "tampered", with_member(path, value))
    edits = {
        "duplicate_key": ('"format":1', '"format":1,"format":1'),
        "float": ("87500", "87500.0"),
        "nan": ("87500", "NaN"),
        "integer_of_65_bits": ("87500", str(2**64)),
        "lone_surrogate": ("gone.py", "gone\\udc80"),
        "escaped_slash": ("origin", "origin\\/"),
        "escaped_letter": ("gone.py", "\\u0067one.py"),
        "escape_in_capitals": ("gone.py", "gone\\u001F"),
        "escape_longer_than_needed": ("gone.py", "gone\\u000a"),
        "member_order": (
            '"format":1,"type":"PRECOMPACT_SAVEPOINT"',
            '"type":"PRECOMPACT_SAVEPOINT","format":1',
        ),
        "extra_member": ('"notes":', '"host":"ada","notes":'),
        "missing_member": ('"token_source":"usage of the last message",', ""),
    }
    for name, edit in edits.items():
        yield vector(name, "malformed", seal(swap(FULL, *edit)))


_SEGMENT = _TRANSCRIPT + "|segments|0"
_MALFORMED: list[tuple[str, str, Value]] = [
    ("type_unknown", "type", "SAVEPOINT"),
    ("timestamp_feb_30", "timestamp_iso8601", "2026-02-30T13:03:49Z"),
    ("instance_number_other", "instance_number", 216),
    ("instance_number_text", "instance_number", "215"),
    ("instance_not_nfc", "instance_id", "A\u0308gidius #215"),
    ("salt_short", "salt", "00" * 15),
    ("tokens_negative", "tokens_remaining", -1),
    ("tokens_bool", "tokens_remaining", True),
    ("token_source_number", "token_source", 1),
    ("state_nested_too_deep", "session_state", nested(64)),
    ("scope_unknown", "conversation_history|scope", "other"),
    ("prefix_check_unknown", "conversation_history|prefix_check", "none"),
    ("sessions_list", "conversation_history|sessions", []),
    ("companions_object", "conversation_history|companions", {}),
    ("transcript_without_root", _TRANSCRIPT, {"path": "a", "bytes": 0, "segments": []}),
    ("path_null", _TRANSCRIPT + "|path", None),
    ("path_b64_of_utf8", _TRANSCRIPT + "|path", {"b64": "YQ=="}),
    ("path_b64_unpadded", _TRANSCRIPT + "|path", {"b64": "/w"}),
    ("path_b64_spare_bits", _TRANSCRIPT + "|path", {"b64": "/x=="}),
    ("path_b64_url_alphabet", _TRANSCRIPT + "|path", {"b64": "_w=="}),
    ("path_b64_with_blank", _TRANSCRIPT + "|path", {"b64": "/w== "}),
    ("path_b64_empty", _TRANSCRIPT + "|path", {"b64": ""}),
    ("segment_bytes_zero", _SEGMENT + "|bytes", 0),
    ("segment_bytes_negative", _SEGMENT + "|bytes", -1),
    ("segment_bytes_bool", _SEGMENT + "|bytes", True),
    ("segment_bytes_above_the_hard_limit", _SEGMENT + "|bytes", 2**24 + 1),
    ("segment_lines_negative", _SEGMENT + "|lines", -1),
    ("segment_offset_in_the_header", _SEGMENT + "|offset", 23),
    ("segment_offset_text", _SEGMENT + "|offset", "24"),
    ("segment_length_zero", _SEGMENT + "|length", 0),
    ("segment_length_above_the_limit", _SEGMENT + "|length", 17 * 2**20 + 1),
    ("segment_hash_uppercase", _SEGMENT + "|sha256", "AB" * 32),
    ("segment_pack_null", _SEGMENT + "|pack", None),
    ("segment_as_list", _SEGMENT, ["ab" * 32, 1, 0, PACK, 24, 14]),
    ("segment_extra_member", _SEGMENT, segment(SHORT) | {"level": 3}),
    ("segment_member_order", _SEGMENT, dict(reversed(segment(SHORT).items()))),
    ("loaded_known_unknown", "loaded_files|.env|known", "guessed"),
    ("loaded_stored_without_hash", "loaded_files|src/main.py|sha256", None),
    ("loaded_stored_without_size", "loaded_files|src/main.py|size", None),
    ("loaded_list", "loaded_files", []),
    ("change_kind_unknown", _FILES + "|0|kind", "deleted"),
    ("change_mode_number", _FILES + "|0|mode", 100644),
    ("deleted_number", "git_state|changes|deleted", [1]),
    ("roots_missing", "git_state|roots", {"project": "/x"}),
    ("guidance_null", "guidance", None),
    ("succession_state_null", "succession_state", None),
    ("session_current_without_numbers", "session_current", file("session_current.json")),
    ("notes_number", "notes", [1]),
    ("omitted_text", "omitted", ["a"]),
    ("priming_unknown", "checkpoint_verification|contextual_priming", "FULL"),
    ("modulo_zero_null", "checkpoint_verification|modulo_zero", None),
]
_TAMPERED: list[tuple[str, str, Value]] = [
    ("root_not_fitting", _TRANSCRIPT + "|root", "ab" * 32),
    ("root_of_other_length", _TRANSCRIPT + "|segments|1|bytes", len(SHORT) + 1),
    ("segments_reordered", _TRANSCRIPT + "|segments", [segment(SHORT), segment(LONG)]),
    ("segment_missing", _TRANSCRIPT + "|segments", [segment(LONG)]),
    ("size_not_fitting", _TRANSCRIPT + "|bytes", len(LONG)),
    ("companion_root_not_fitting", "conversation_history|companions|0|root", root()),
    ("session_current_size_not_fitting", "session_current|bytes", 1),
    ("loaded_size_not_fitting", "loaded_files|src/main.py|size", 1),
    ("loaded_hash_not_fitting", "loaded_files|src/main.py|sha256", "ab" * 32),
    ("loaded_hash_of_an_empty_file", "loaded_files|empty.py|sha256", "ab" * 32),
    ("change_size_not_fitting", _FILES + "|0|bytes", 1),
]


def _bound() -> Iterator[Members]:
    """A snapshot and the record that names it."""
    data = sealed(full())

    def told(**edits: Value) -> str:
        named: Members = {
            "snapshot_hash": "sha256:" + sha256(data),
            "snapshot_size_bytes": len(data),
        }
        line = GABRIEL.line(spell(record("save", 3, "ab" * 32, save_body(3) | named) | edits))
        return line.decode()

    yield _ok("record_agrees", data, record=told())
    edits: list[tuple[str, str, Value]] = [
        ("record_of_other_hash", "snapshot_hash", "sha256:" + "ab" * 32),
        ("record_of_other_size", "snapshot_size_bytes", len(data) - 1),
        ("record_of_other_time", "timestamp", "2026-11-30T13:03:48Z"),
        ("record_of_other_instance", "instance", "Gabriel #216"),
        ("record_of_other_session", "session_id", "a"),
        ("record_of_other_tokens", "tokens_remaining", None),
    ]
    for name, member, value in edits:
        yield vector(name, "tampered", data, record=told(**{member: value}))
    strange = with_member("conversation_history|session_id", "../ada")
    body = save_body(3) | {
        "session_id": sha256(b"../ada"),
        "snapshot_hash": "sha256:" + sha256(strange),
        "snapshot_size_bytes": len(strange),
    }
    line = GABRIEL.line(spell(record("save", 3, "ab" * 32, body)))
    yield _ok("record_of_a_session_id_that_is_no_key", strange, record=line.decode())
