"""Vectors of what makes up documents: spellings, JSON, segments, packs (sections 1, 2, 6, 7)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from tests.vectors.builders import (
    GABRIEL,
    Members,
    Value,
    base58,
    sha256,
    vector,
)
from tests.vectors.snapshot_example import root

if TYPE_CHECKING:
    from collections.abc import Iterator


def spellings() -> dict[str, list[Members]]:
    """By what is spelled. `value` is what a good one means; null where it is refused."""
    return {
        "times": [{"text": text, "value": value} for text, value in _TIMES],
        "instances": [{"text": text, "value": value} for text, value in _INSTANCES],
        "keys": [{"text": text, "value": value} for text, value in _KEYS],
        "slugs": [
            {"instance": instance, "key": "ab54a98c" + "00" * 28, "slug": slug}
            for instance, slug in _SLUGS
        ],
    }


_TIMES: list[tuple[str, Value]] = [
    ("1970-01-01T00:00:00Z", 0),
    ("1972-02-29T00:00:00Z", 68169600),
    ("2000-02-29T23:59:59Z", 951868799),
    ("2026-11-30T13:26:49Z", 1796045209),
    ("2038-01-19T03:14:08Z", 2147483648),
    ("9999-12-31T23:59:59Z", 253402300799),
    ("1969-12-31T23:59:59Z", None),
    ("0000-01-01T00:00:00Z", None),
    ("10000-01-01T00:00:00Z", None),
    ("2026-02-30T00:00:00Z", None),
    ("1900-02-29T00:00:00Z", None),
    ("2100-02-29T00:00:00Z", None),
    ("2026-04-31T00:00:00Z", None),
    ("2026-00-01T00:00:00Z", None),
    ("2026-13-01T00:00:00Z", None),
    ("2026-01-00T00:00:00Z", None),
    ("2026-01-01T24:00:00Z", None),
    ("2026-01-01T00:60:00Z", None),
    ("2016-12-31T23:59:60Z", None),
    ("2026-11-30T13:26:49.0Z", None),
    ("2026-11-30T13:26:49+00:00", None),
    ("2026-11-30T13:26:49", None),
    ("2026-11-30 13:26:49Z", None),
    ("2026-11-30T13:26:49Z\n", None),
    ("2026-11-30t13:26:49z", None),
    ("\u0662026-11-30T13:26:49Z", None),
    ("2026-11-3\u0660T13:26:49Z", None),
    ("", None),
]

_INSTANCES: list[tuple[str, Value]] = [
    ("Gabriel #215", ["Gabriel", 215]),
    ("a #1", ["a", 1]),
    ("Mary Ann 2 #999999999", ["Mary Ann 2", 999999999]),
    ("\u00c4gidius \u6f22 #7", ["\u00c4gidius \u6f22", 7]),
    ("\u00e4" * 64 + " #1", ["\u00e4" * 64, 1]),
    ("\u00e4" * 65 + " #1", None),
    ("A\u0308gidius #7", None),
    ("\u212b #7", None),  # the Angstrom sign: NFC is another character
    ("Gabriel", None),
    ("Gabriel #", None),
    ("Gabriel #0", None),
    ("Gabriel #01", None),
    ("Gabriel #-1", None),
    ("Gabriel #1000000000", None),
    ("Gabriel #\u0661", None),
    ("Gabriel #215 ", None),
    ("Gabriel #215\n", None),
    (" Gabriel #215", None),
    ("Gabriel  #215", None),
    ("\u3000Gabriel #215", None),
    ("Gabriel#215", None),
    ("Gab#riel #215", None),
    ("Gab\nriel #215", None),
    ("Gab\u0085riel #215", None),
    ("Gab\u2028riel #215", None),
    ("Gab\u2029riel #215", None),
    (" #215", None),
    ("", None),
]

_KEYS: list[tuple[str, Value]] = [
    (base58(GABRIEL.key), GABRIEL.key.hex()),
    ("1" * 32, "00" * 32),
    (base58(b"\x00" * 31 + b"\x01"), "00" * 31 + "01"),
    (base58(b"\xff" * 32), "ff" * 32),
    (base58(b"\x00" + b"\xff" * 31), "00" + "ff" * 31),
    ("1" * 31, None),
    ("1" * 33, None),
    ("1" + base58(GABRIEL.key), None),
    (base58(GABRIEL.key) + "1", None),
    (base58(GABRIEL.key)[:-1] + "0", None),
    (base58(GABRIEL.key)[:-1] + "O", None),
    (base58(GABRIEL.key)[:-1] + "I", None),
    (base58(GABRIEL.key)[:-1] + "l", None),
    (" " + base58(GABRIEL.key), None),
    (base58(b"\xff" * 31), None),
    (base58(b"\x01" + b"\x00" * 32), None),
    (GABRIEL.key.hex(), None),
    ("z" * 44, None),
    ("1" * 100, None),
    ("", None),
]

_SLUGS = [
    ("Gabriel #215", "gabriel-215-ab54a98c"),
    ("Mary  Ann_2 #1", "mary-ann-2-1-ab54a98c"),
    ("\u00c4gidius #7", "gidius-7-ab54a98c"),
    ("\u6f22 #7", "7-ab54a98c"),
    ("K\u0130 #7", "k-7-ab54a98c"),
    ("--x-- #7", "x-7-ab54a98c"),
    ("a" * 64 + " #7", "a" * 40 + "-ab54a98c"),
    ("a" * 39 + " b #7", "a" * 39 + "-ab54a98c"),
]


def json_vectors() -> list[Members]:
    """`expect` ok: in its one spelling; respelled: strict JSON, spelled otherwise; malformed."""
    made = [vector(name, "ok", data) for name, data in _JSON_OK.items()]
    made += [vector(name, "respelled", data) for name, data in _JSON_RESPELLED.items()]
    return made + [vector(name, "malformed", data) for name, data in _JSON_MALFORMED.items()]


_JSON_OK = {
    "null": b"null",
    "true": b"true",
    "zero": b"0",
    "least_integer": b"-9223372036854775808",
    "most_integer": b"18446744073709551615",
    "empty_text": b'""',
    "short_escapes": b'"\\b\\t\\n\\f\\r\\"\\\\"',
    "long_escapes": b'"\\u0000\\u0001\\u000b\\u001f"',
    "delete_is_no_escape": b'"\x7f"',
    "separators_are_no_escapes": '"\u2028\u2029\ufeff\ufffe"'.encode(),
    "text_beyond_16_bits": '"\U0001f9ed\U0010ffff"'.encode(),
    "decomposed_text": '"A\u0308"'.encode(),
    "empty_array": b"[]",
    "empty_object": b"{}",
    "empty_key": b'{"":0}',
    "keys_in_any_order": b'{"b":0,"a":[{}]}',
    "keys_that_differ_by_normal_form": '{"\u00c4":0,"A\u0308":0}'.encode(),
    "nested_64": b"[" * 64 + b"]" * 64,
    "brackets_in_text": b'["' + b"[" * 100 + b'","\\"' + b"[" * 100 + b'"]',
}
_JSON_RESPELLED = {
    "blank_in_front": b" 0",
    "blank_behind": b"0 ",
    "lf_behind": b"0\n",
    "blank_in_array": b"[0, 0]",
    "tab_in_object": b'{"a":\t0}',
    "escaped_slash": b'"\\/"',
    "escaped_letter": b'"\\u0061"',
    "escaped_lf_in_hex": b'"\\u000a"',
    "escape_in_capitals": b'"\\u001F"',
    "escaped_pair": b'"\\ud83e\\udded"',
    "escaped_umlaut": b'"\\u00e4"',
}
_JSON_MALFORMED = {
    "nothing": b"",
    "blank": b" ",
    "byte_order_mark": b"\xef\xbb\xbf0",
    "two_values": b"0 0",
    "nul_behind": b"0\x00",
    "float": b"1.0",
    "float_zero": b"0.0",
    "exponent": b"1e3",
    "minus_zero": b"-0",
    "plus": b"+1",
    "leading_zero": b"01",
    "lone_minus": b"-",
    "hex_number": b"0x10",
    "other_digits": "\u0661".encode(),
    "below_64_bits": b"-9223372036854775809",
    "above_64_bits": b"18446744073709551616",
    "five_thousand_digits": b"9" * 5000,
    "nan": b"NaN",
    "infinity": b"Infinity",
    "minus_infinity": b"-Infinity",
    "capital_true": b"True",
    "trailing_comma": b"[0,]",
    "trailing_comma_in_object": b'{"a":0,}',
    "missing_comma": b"[0 0]",
    "single_quotes": b"'a'",
    "comment": b"/**/0",
    "key_without_quotes": b"{a:0}",
    "key_is_a_number": b"{0:0}",
    "duplicate_key": b'{"a":0,"a":0}',
    "duplicate_key_by_escape": b'{"a":0,"\\u0061":0}',
    "duplicate_key_deep": b'[{"x":{"a":0,"b":1,"a":2}}]',
    "lone_high_surrogate": b'"\\ud800"',
    "lone_low_surrogate": b'"\\udc00"',
    "reversed_surrogates": b'"\\udc00\\ud800"',
    "surrogate_in_key": b'{"\\ud800":0}',
    "surrogate_in_utf8": b'"\xed\xa0\x80"',
    "overlong_utf8": b'"\xc0\xaf"',
    "cut_utf8": b'"\xe2\x82"',
    "above_unicode": b'"\xf4\x90\x80\x80"',
    "latin1": b'"\xe4"',
    "lf_in_text": b'"\n"',
    "tab_in_text": b'"\t"',
    "nul_in_text": b'"\x00"',
    "unknown_escape": b'"\\x41"',
    "cut_escape": b'"\\u00"',
    "unended_text": b'"a',
    "unended_array": b"[0",
    "unended_object": b'{"a":0',
    "mismatched": b"[}",
    "closed_twice": b"[]]",
    "nested_65": b"[" * 65 + b"]" * 65,
    "nested_65_objects": b'{"a":' * 65 + b"0" + b"}" * 65,
    "nested_65_around_text": b'["]"' + b",[" * 64 + b"]" * 65,
    "nested_5000": b"[" * 5000,
}


def segment_vectors() -> list[Members]:
    """`runs`: the file, as hex bytes and how often they are repeated. `segments`: bytes, hash."""
    soft, hard = 2**20, 2**24
    files: dict[str, list[tuple[bytes, int]]] = {
        "empty": [],
        "one_byte": [(b"x", 1)],
        "one_lf": [(b"\n", 1)],
        "lf_ends_the_first_mebibyte": [(b"x", soft - 1), (b"\n", 1), (b"y\n", 1)],
        "lf_one_before_does_not_end_it": [(b"x", soft - 2), (b"\n", 1), (b"y", 10), (b"\n", 1)],
        "lf_one_behind_ends_it": [(b"x", soft), (b"\n", 1), (b"z", 1)],
        "every_byte_an_lf": [(b"\n", 2 * soft + 5)],
        "no_lf": [(b"x", hard + 1)],
        "lf_ends_the_hard_limit": [(b"x", hard - 1), (b"\n", 1), (b"y", 1)],
        "lf_behind_the_hard_limit": [(b"x", hard), (b"\n", 1), (b"y", 1)],
        "exactly_the_hard_limit": [(b"x", hard)],
        "short_lines": [(b"0123456789abcde\n", 3 * soft // 16), (b"torn", 1)],
    }
    return [_cut(name, runs) for name, runs in files.items()]


def _cut(name: str, runs: list[tuple[bytes, int]]) -> Members:
    data = b"".join(piece * count for piece, count in runs)
    pieces = list(_pieces(data))
    listed: Value = [{"bytes": len(one), "sha256": sha256(one)} for one in pieces]
    told: Value = [[piece.hex(), count] for piece, count in runs]
    return {"name": name, "runs": told, "segments": listed, "root": root(*pieces)}


def _pieces(data: bytes) -> Iterator[bytes]:
    """As section 6 says it."""
    while data:
        head, lf, _ = data[2**20 - 1 : 2**24].partition(b"\n")
        size = min(2**20 - 1 + len(head) + len(lf), len(data))
        yield data[:size]
        data = data[size:]


def pack_vectors() -> list[Members]:
    """A pack's file, the entry of a segment in it, and what opening that gives."""
    raw = b"the raw bytes of a segment\n"
    good = _frame(raw)
    # What zstd 1.5 makes of 60 bytes at level 3: a compressed block, with its content size.
    repeated = bytes.fromhex("28b52ffd203c550000206162630a0100fd7444")
    return [
        _pack("one_frame", "ok", raw, good),
        _pack("second_frame", "ok", raw, good, before=_frame(b"first")),
        _pack("wrong_checksum", "tampered", raw, _frame(raw, checksum=b"\0" * 4)),
        _pack("frame_of_a_repeated_byte", "ok", b"\x00" * 1000, _repeat(b"\x00", 1000)),
        _pack("compressed_block", "ok", b"abc\n" * 15, repeated),
        _pack("content_is_other", "tampered", raw, _frame(raw.swapcase())),
        _pack("frame_cut", "tampered", raw, good[:-1]),
        _pack("frame_cut_to_its_header", "tampered", raw, good[:6]),
        _pack("frame_missing", "tampered", raw, b""),
        _pack("frame_changed", "tampered", raw, good[:20] + b"X" + good[21:]),
        _pack("frame_magic_changed", "tampered", raw, b"\x29" + good[1:]),
        _pack("bigger_content_than_stated", "tampered", raw, _frame(raw + b"and more")),
        _pack("endless_content", "tampered", raw, _frame(raw, _repeat_block(b"x", 2**17) * 1000)),
        _pack("smaller_content_than_stated", "tampered", raw, _frame(raw[:-1])),
        _pack("trailing_bytes", "tampered", raw, good + b"x"),
        _pack("trailing_frame", "tampered", raw, good + _frame(b"more")),
        _pack("skippable_frame_first", "tampered", raw, _skippable(b"x") + good),
        _pack("offset_in_a_frame", "tampered", raw, good, shift=1),
        _pack("header_missing", "malformed", raw, good, header=b""),
        _pack("header_magic_wrong", "malformed", raw, good, header=b"\x51" + _header()[1:]),
        _pack("salt_of_15_bytes", "malformed", raw, good, header=_skippable(bytes(15))),
        _pack("salt_of_17_bytes", "malformed", raw, good, header=_skippable(bytes(17))),
        _pack("header_cut", "malformed", raw, b"", header=_header()[:-1]),
        _pack("empty", "malformed", raw, b"", header=b""),
    ]


def _skippable(content: bytes) -> bytes:
    return struct.pack("<II", 0x184D2A50, len(content)) + content


def _header() -> bytes:
    return _skippable(bytes(range(16)))


def _frame(content: bytes, more: bytes = b"", checksum: bytes = b"") -> bytes:
    """A zstd frame (RFC 8878) of one raw block, its size stated; `more` blocks exceed that size."""
    flags = 0xA0 | (4 if checksum else 0)  # four bytes of content size, single segment
    block = struct.pack("<I", len(content) << 3 | (not more))[:3] + content
    head = struct.pack("<IBI", 0xFD2FB528, flags, len(content))
    return head + block + more + checksum


def _repeat_block(byte: bytes, count: int, *, last: bool = False) -> bytes:
    return struct.pack("<I", count << 3 | 2 | last)[:3] + byte


def _repeat(byte: bytes, count: int) -> bytes:
    return struct.pack("<IBI", 0xFD2FB528, 0xA0, count) + _repeat_block(byte, count, last=True)


def _pack(
    name: str,
    expect: str,
    raw: bytes,
    frame: bytes,
    *,
    header: bytes | None = None,
    before: bytes = b"",
    shift: int = 0,
) -> Members:
    head = (_header() if header is None else header) + before
    data = head + frame
    segment: Members = {
        "sha256": sha256(raw),
        "bytes": len(raw),
        "lines": raw.count(b"\n"),
        "pack": sha256(data),
        "offset": max(24, len(head) + shift),
        "length": max(1, len(frame)),
    }
    return {"name": name, "expect": expect, "hex": data.hex(), "segment": segment}
