"""Vectors of single records (docs/format.md, section 3)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.vectors import edwards
from tests.vectors.builders import (
    GABRIEL,
    STRANGER,
    ZEROS,
    Identity,
    Members,
    Value,
    base58,
    birth,
    domain,
    identity,
    origin,
    record,
    save_body,
    sha256,
    spell,
    swap,
    vector,
    with_signature,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PREV = "ab" * 32
SAVE = spell(record("save", 3, PREV, save_body(3)))
BIRTH = spell(birth())
KEY = base58(GABRIEL.key)


def vectors() -> list[Members]:
    """All of them."""
    made = [*_valid(), *_versions(), *_forged()]
    made += [vector(name, "malformed", GABRIEL.line(swap(SAVE, *edit))) for name, *edit in _EDITS]
    made += [
        vector(name, "malformed", GABRIEL.line(swap(BIRTH, *edit))) for name, *edit in _BIRTH_EDITS
    ]
    return [*made, *_reshaped(), *_other_kinds(), *_rewritten()]


def _line(kind: str, body: Members, who: Identity = GABRIEL) -> bytes:
    return who.line(spell(record(kind, 3, PREV, body, who)))


def _accept(reason: str, first: Value, last: Value, tip: Value) -> bytes:
    return _line("accept", {"reason": reason, "first": first, "last": last, "tip": tip})


def _restore(*unverified: Value) -> bytes:
    return _line("restore", {"from": origin(7, STRANGER), "unverified": list(unverified)})


def _valid() -> Iterator[Members]:
    unknown: Members = {
        "tokens_used_this_session": None,
        "tokens_remaining": None,
        "context_utilization_percent": None,
        "consciousness_preserved": False,
    }
    accented = identity("Ägidius 漢 \U0001f9ed #999999999", bytes(16))
    lines = {
        "birth": GABRIEL.line(BIRTH),
        "birth_of_a_name_in_unicode": accented.line(spell(birth(accented))),
        "save": GABRIEL.line(SAVE),
        "save_first_of_its_session": GABRIEL.line(spell(record("save", 2, PREV, save_body(2)))),
        "save_with_nothing_known": _line("save", save_body(3) | unknown),
        "save_of_a_successor": _line("save", save_body(3) | {"from": origin(7, STRANGER)}),
        "save_in_a_taken_second": GABRIEL.line(swap(SAVE, "49Z.json", "49Z_3.json")),
        "save_of_the_largest_count": GABRIEL.line(swap(SAVE, "87500", str(2**64 - 1))),
        "restore": _restore(),
        "restore_of_something_unverified": _restore("VERIFY-4", "chain"),
        "retire": _line("retire", {}),
        "accept_gap": _accept("gap", 4, 9, None),
        "accept_gap_of_one": _accept("gap", 4, 4, None),
        "accept_remote": _accept("remote", None, None, "cd" * 32),
        "accept_remote_that_set_records_aside": _accept("remote", 4, 9, "cd" * 32),
        "accept_remote_that_is_empty": _accept("remote", None, None, None),
        "accept_recreated": _accept("recreated", None, None, None),
        "line_of_8192_bytes": _long(8192),
    }
    for name, line in lines.items():
        yield vector(name, "ok", line, hash=sha256(line))


def _long(size: int) -> bytes:
    words: list[Value] = ["x" * 32] * 200
    spare = size - len(_restore(*words))
    while spare > 35:
        words.append("x" * 32)
        spare -= 35
    return _restore(*words, "y" * (spare - 3))


def _versions() -> Iterator[Members]:
    newer = swap(SAVE, '"v":1', '"v":2')
    yield vector("version_2", "unsupported", GABRIEL.line(newer))
    shape = b'{"v":2,"anything":["that","version",2,"may","hold"]}'
    yield vector("version_2_of_another_shape", "unsupported", shape)
    yield vector("version_2_with_a_blank", "malformed", swap(shape, ':["', ': ["'))
    yield vector("version_0", "malformed", GABRIEL.line(swap(SAVE, '"v":1', '"v":0')))
    yield vector("version_true", "malformed", GABRIEL.line(swap(SAVE, '"v":1', '"v":true')))
    yield vector("version_text", "malformed", GABRIEL.line(swap(SAVE, '"v":1', '"v":"1"')))
    yield vector("version_missing", "malformed", GABRIEL.line(swap(SAVE, '"v":1,', "")))


def _forged() -> Iterator[Members]:
    """The spelling is right and the signature is not."""
    good = GABRIEL.sign(SAVE).hex()
    signatures = {
        "signature_by_other_key": STRANGER.sign(SAVE),
        "signature_other_domain": GABRIEL.sign(SAVE, "entry"),
        "signature_without_domain": _sign_bare(GABRIEL, SAVE),
        "signature_covers_lf": GABRIEL.sign(SAVE + b"\n"),
        "signature_without_brace": GABRIEL.sign(SAVE[:-1]),
        "signature_of_other_record": GABRIEL.sign(BIRTH),
        "signature_of_zeros": bytes(64),
        "signature_flipped_bit": bytes.fromhex(good[:-1] + f"{int(good[-1], 16) ^ 1:x}"),
        "S_plus_L": _s_plus_l(bytes.fromhex(good)),
        "low_order_R": _low_order_r(SAVE, edwards.IDENTITY.encoded()),
        "non_canonical_R": _low_order_r(SAVE, (edwards.P + 1).to_bytes(32, "little")),
    }
    for name, signature in signatures.items():
        yield vector(name, "tampered", with_signature(SAVE, signature.hex()))
    yield vector("signed_text_changed", "tampered", swap(GABRIEL.line(SAVE), "87500", "87501"))
    weak = {
        "small_order_key": edwards.IDENTITY.encoded(),
        "non_canonical_key": (edwards.P + 1).to_bytes(32, "little"),
    }
    for name, key in weak.items():  # S = 0 and R = A verify over every message, where allowed
        bare = swap(SAVE, f'"signer":"{KEY}"}}', f'"signer":"{base58(key)}"}}')
        yield vector(name, "tampered", with_signature(bare, (key + bytes(32)).hex()))


def _sign_bare(who: Identity, message: bytes) -> bytes:
    """Ed25519 without any domain."""
    return Ed25519PrivateKey.from_private_bytes(who.seed).sign(message)


def _s_plus_l(signature: bytes) -> bytes:
    number = int.from_bytes(signature[32:], "little") + edwards.L
    return signature[:32] + number.to_bytes(32, "little")


def _low_order_r(bare: bytes, commitment: bytes) -> bytes:
    k = edwards.challenge(commitment, GABRIEL.key, domain("record") + bare)
    number = k * edwards.secret_scalar(GABRIEL.seed) % edwards.L
    return commitment + number.to_bytes(32, "little")


_EDITS = [
    ("duplicate_key", '"kind":"save"', '"kind":"save","kind":"save"'),
    ("nan", "112500", "NaN"),
    ("infinity", "112500", "Infinity"),
    ("float", "112500", "112500.0"),
    ("float_exponent", "112500", "1125e2"),
    ("minus_zero", "112500", "-0"),
    ("negative_count", "112500", "-1"),
    ("leading_zero", "112500", "0112500"),
    ("integer_of_65_bits", "112500", str(2**64)),
    ("integer_of_5000_digits", "112500", "9" * 5000),
    ("count_true", "112500", "true"),
    ("count_text", "112500", '"112500"'),
    ("lone_surrogate", "0d3a6b1e", "\\ud800"),
    ("escaped_letter", "Gabriel", "\\u0047abriel"),
    ("escaped_slash", "logs/", "logs\\/"),
    ("blank_after_colon", '"seq":3', '"seq": 3'),
    ("blank_after_comma", ',"seq":3', ', "seq":3'),
    ("tab_after_comma", ',"seq":3', ',\t"seq":3'),
    ("uppercase_hex", PREV, PREV.upper()),
    ("digest_short", PREV, PREV[:-1]),
    ("digest_long", PREV, PREV + "a"),
    ("digest_with_prefix", PREV, "sha256:" + PREV),
    ("digest_null", f'"{PREV}"', "null"),
    ("snapshot_hash_bare", f'"snapshot_hash":"sha256:{3:064x}"', f'"snapshot_hash":"{3:064x}"'),
    ("snapshot_hash_uppercase_prefix", f"sha256:{3:064x}", f"SHA256:{3:064x}"),
    ("timestamp_feb_30", "2026-11-30T13:03:49Z", "2026-02-30T13:03:49Z"),
    ("timestamp_feb_29_of_no_leap_year", "2026-11-30T13:03:49Z", "2100-02-29T13:03:49Z"),
    ("timestamp_second_60", "2026-11-30T13:03:49Z", "2026-11-30T13:03:60Z"),
    ("timestamp_hour_24", "2026-11-30T13:03:49Z", "2026-11-30T24:00:00Z"),
    ("timestamp_offset", "2026-11-30T13:03:49Z", "2026-11-30T13:03:49+00:00"),
    ("timestamp_fraction", "2026-11-30T13:03:49Z", "2026-11-30T13:03:49.0Z"),
    ("timestamp_lowercase", "2026-11-30T13:03:49Z", "2026-11-30t13:03:49z"),
    ("timestamp_before_1970", "2026-11-30T13:03:49Z", "1969-12-31T23:59:59Z"),
    ("timestamp_number", '"2026-11-30T13:03:49Z"', "1796045029"),
    ("seq_zero", '"v":1,"seq":3', '"v":1,"seq":0'),
    ("seq_one_of_a_save", '"v":1,"seq":3', '"v":1,"seq":1'),
    ("seq_negative", '"v":1,"seq":3', '"v":1,"seq":-3'),
    ("seq_bool", '"v":1,"seq":3', '"v":1,"seq":true'),
    ("seq_text", '"v":1,"seq":3', '"v":1,"seq":"3"'),
    ("wrong_event_for_kind", "SAVEPOINT_CREATED", "KEY_RETIRED"),
    ("unknown_event", "SAVEPOINT_CREATED", "SAVEPOINT_DELETED"),
    ("unknown_kind", '"kind":"save"', '"kind":"delete"'),
    ("kind_null", '"kind":"save"', '"kind":null'),
    ("kind_of_other_members", '"kind":"save"', '"kind":"retire"'),
    ("extra_member", '"trigger":', '"host":"ada","trigger":'),
    ("missing_member", '"trigger":"auto",', ""),
    ("member_order", '"v":1,"seq":3', '"seq":3,"v":1'),
    ("member_case", '"trigger":', '"Trigger":'),
    ("instance_name_not_nfc", "Gabriel", "Gabrie\u0301l"),
    ("instance_number_leading_zero", "#215", "#0215"),
    ("instance_number_zero", "#215", "#0"),
    ("instance_number_of_ten_digits", "#215", "#1000000000"),
    ("instance_number_in_other_digits", "#215", "#\u0662\u0661\u0665"),
    ("instance_without_number", "Gabriel #215", "Gabriel"),
    ("instance_with_two_hashes", "Gabriel #215", "Gabriel #2 #15"),
    ("instance_blank_end", "Gabriel #215", "Gabriel  #215"),
    ("instance_no_break_space_end", "Gabriel #215", "\u00a0Gabriel #215"),
    ("instance_control_character", "Gabriel", "Gab\\u001briel"),
    ("instance_line_separator", "Gabriel", "Gab\u2028riel"),
    ("instance_name_empty", "Gabriel #215", " #215"),
    ("instance_name_of_65_characters", "Gabriel", "\u00e4" * 65),
    ("session_id_empty", "0d3a6b1e-5f0c-4f43-9d0e-7c2b8a1f9e55", ""),
    ("session_id_traversal", "0d3a6b1e-5f0c-4f43-9d0e-7c2b8a1f9e55", "../../keys/root"),
    ("session_id_of_65_characters", "0d3a6b1e-5f0c-4f43-9d0e-7c2b8a1f9e55", "a" * 65),
    ("trigger_empty", '"auto"', '""'),
    ("trigger_with_a_terminal_escape", '"auto"', '"auto\\u001b[2J"'),
    ("trigger_of_33_letters", '"auto"', f'"{"a" * 33}"'),
    ("snapshot_file_traversal", "saves/snapshot", "saves/../snapshot"),
    ("snapshot_file_absolute", "logs/precompact", "/logs/precompact"),
    ("snapshot_file_backslash", "saves/snapshot", "saves\\\\snapshot"),
    ("snapshot_file_other_folder", "precompact-saves", "forks"),
    ("snapshot_file_colons", "2026-11-30T13-03-49Z", "2026-11-30T13:03:49Z"),
    ("snapshot_file_suffix_zero", "49Z.json", "49Z_0.json"),
    ("snapshot_file_long_suffix", "49Z.json", f"49Z_{'1' * 20}.json"),
    ("layer_1_status_unknown", "SAVED_LOCALLY", "QUEUED"),
    ("preserved_as_number", '"consciousness_preserved":true', '"consciousness_preserved":1'),
    ("from_false", '"from":{', '"from":false,"was":{'),
    ("from_seq_zero", '"seq":2', '"seq":0'),
    ("from_with_extra_member", '"seq":2', '"seq":2,"kind":"save"'),
    ("from_of_other_order", '"from":{"signer":', '"from":{"seq":2,"signer":'),
    ("signer_with_leading_one", f'"signer":"{KEY}"}}', f'"signer":"1{KEY}"}}'),
    ("signer_not_base58", f'"signer":"{KEY}"}}', f'"signer":"{KEY[:-1]}0"}}'),
    ("signer_of_31_bytes", f'"signer":"{KEY}"}}', f'"signer":"{base58(b"x" * 31)}"}}'),
    ("signer_of_33_bytes", f'"signer":"{KEY}"}}', f'"signer":"{base58(b"x" * 33)}"}}'),
    ("signer_null", f'"signer":"{KEY}"}}', '"signer":null}'),
    ("deep_nesting", f'"{PREV}"', "[" * 65 + "]" * 65),
]

_BIRTH_EDITS = [
    ("birth_with_seq_2", '"seq":1', '"seq":2'),
    ("birth_after_a_record", ZEROS, PREV),
    ("birth_nonce_short", GABRIEL.nonce.hex(), GABRIEL.nonce[1:].hex()),
    ("birth_nonce_uppercase", GABRIEL.nonce.hex(), GABRIEL.nonce.hex().upper()),
    ("birth_without_nonce", f'"nonce":"{GABRIEL.nonce.hex()}",', ""),
]


def _reshaped() -> Iterator[Members]:
    """The line as a whole is not one JSON object in its one spelling."""
    line = GABRIEL.line(SAVE)
    signature = GABRIEL.sign(SAVE).hex()
    lines = {
        "empty": b"",
        "not_an_object": b"[" + line + b"]",
        "null": b"null",
        "truncated": line[:-1],
        "trailing_blank": line + b" ",
        "trailing_cr": line + b"\r",
        "trailing_lf": line + b"\n",
        "trailing_nul": line + b"\x00",
        "leading_blank": b" " + line,
        "byte_order_mark": b"\xef\xbb\xbf" + line,
        "two_documents": line + line,
        "not_utf8": line.replace(b"Gabriel", b"Gabri\xffel"),
        "surrogate_in_utf8": line.replace(b"Gabriel", b"Gabri\xed\xa0\x80el"),
        "overlong_utf8": line.replace(b"Gabriel", b"Gabri\xc1\xa5l"),
        "line_of_8193_bytes": _long(8193),
        "signature_uppercase": with_signature(SAVE, signature.upper()),
        "signature_short": with_signature(SAVE, signature[:-2]),
        "signature_long": with_signature(SAVE, signature + "00"),
        "signature_twice": with_signature(line, signature),
        "signature_missing": SAVE,
        "signature_not_last": b'{"signature":"' + signature.encode() + b'",' + SAVE[1:],
    }
    for name, data in lines.items():
        yield vector(name, "malformed", data)


def _other_kinds() -> Iterator[Members]:
    lines = {
        "accept_gap_without_range": _accept("gap", None, None, None),
        "accept_gap_without_end": _accept("gap", 4, None, None),
        "accept_gap_reversed": _accept("gap", 9, 4, None),
        "accept_gap_from_zero": _accept("gap", 0, 4, None),
        "accept_gap_with_tip": _accept("gap", 4, 9, "cd" * 32),
        "accept_remote_half_a_range": _accept("remote", None, 9, "cd" * 32),
        "accept_remote_commit_as_tip": _accept("remote", None, None, "cd" * 20),
        "accept_recreated_with_tip": _accept("recreated", None, None, "cd" * 32),
        "accept_recreated_with_range": _accept("recreated", 4, 9, None),
        "accept_for_no_known_reason": _accept("because", None, None, None),
        "restore_from_nothing": _line("restore", {"from": None, "unverified": []}),
        "restore_of_a_sentence": _restore("the chain was not asked"),
        "restore_of_a_number": _restore(4),
        "retire_with_a_body": _line("retire", {"reason": "gap"}),
    }
    for name, data in lines.items():
        yield vector(name, "malformed", data)


def _rewritten() -> Iterator[Members]:
    """Written by another JSON library: same value, other bytes, signed as written."""
    members = record("save", 3, PREV, save_body(3))
    yield vector(
        "second_spelling_whitespace", "malformed", GABRIEL.line(json.dumps(members).encode())
    )
    ordered = json.dumps(members, sort_keys=True, separators=(",", ":")).encode()
    yield vector("second_spelling_sorted", "malformed", GABRIEL.line(ordered))
    accented = identity("Ägidius #1", bytes(16))
    ascii_only = json.dumps(birth(accented), separators=(",", ":")).encode()
    yield vector("second_spelling_ascii", "malformed", accented.line(ascii_only))
