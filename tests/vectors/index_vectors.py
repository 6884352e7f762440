"""Vectors of whole indexes (docs/format.md, section 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.vectors.builders import (
    GABRIEL,
    STRANGER,
    ZEROS,
    Identity,
    Members,
    birth,
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

LF = b"\n"


def vectors() -> list[Members]:
    """All of them. `records` counts those accepted, `torn` the bytes behind the last whole one."""
    return [
        *(*_whole(), *_tails(), *_gaps(), *_disorder(), *_retired()),
        *(*_strangers(), *_bytes(), *_newer()),
    ]


def _bodies() -> list[tuple[str, Members]]:
    return [
        ("birth", {"nonce": GABRIEL.nonce.hex()}),
        ("save", save_body(2)),
        ("save", save_body(3)),
        ("restore", {"from": origin(7, STRANGER), "unverified": []}),
        ("save", save_body(5)),
        ("retire", {}),
    ]


def _chain(*seqs: int, after: str = ZEROS, who: Identity = GABRIEL) -> list[bytes]:
    """Lines of the example's records with these sequence numbers, linked as they stand here."""
    lines = []
    for seq in seqs:
        kind, body = _bodies()[seq - 1]
        if kind == "birth":
            body = {"nonce": who.nonce.hex()}
        line = who.line(spell(record(kind, seq, after, body, who)))
        lines.append(line)
        after = sha256(line)
    return lines


LINES = _chain(1, 2, 3, 4, 5, 6)


def _file(*lines: bytes) -> bytes:
    return b"".join(line + LF for line in lines)


def _ok(name: str, data: bytes, records: int, torn: int = 0) -> Members:
    return vector(name, "ok", data, records=records, torn=torn)


def _bad(name: str, *lines: bytes) -> Members:
    return vector(name, "tampered", _file(*lines))


def _whole() -> Iterator[Members]:
    yield _ok("whole", _file(*LINES), 6)
    yield _ok("empty", b"", 0)
    yield _ok("birth_only", _file(LINES[0]), 1)
    yield _ok("newest_cut", _file(*LINES[:5]), 5)  # only the trusted head can tell


def _tails() -> Iterator[Members]:
    good = _file(*LINES[:5])
    last = LINES[5]
    forged = with_signature(spell(record("retire", 6, sha256(LINES[4]), {})), "00" * 64)
    tails = {
        "torn_tail": last[:100],
        "torn_tail_of_one_byte": b"{",
        "torn_tail_of_zeros": bytes(512),
        "torn_tail_all_but_the_brace": last[:-1],
        "torn_tail_whole_but_forged": forged,
        "torn_tail_whole_but_repeated": LINES[4],
        "torn_tail_whole_but_wrongly_linked": _chain(6, after="ab" * 32)[0],
        "torn_tail_whole_but_foreign": _chain(6, after=sha256(LINES[4]), who=STRANGER)[0],
        "torn_tail_longer_than_a_record": b"x" * 9000,
    }
    for name, tail in tails.items():
        yield _ok(name, good + tail, 5, len(tail))
    yield _ok("missing_last_newline", good + last, 6)
    yield _ok("missing_newline_of_the_birth", LINES[0], 1)
    yield _ok("torn_birth", LINES[0][:-10], 0, len(LINES[0]) - 10)
    yield _ok("torn_first_line_is_no_birth", LINES[1], 0, len(LINES[1]))


def _gaps() -> Iterator[Members]:
    accept: Members = {"reason": "gap", "first": 3, "last": 4, "tip": None}
    rest = _chain(5, 6, after="cd" * 32)
    accepted = GABRIEL.line(spell(record("accept", 6, sha256(rest[0]), accept)))
    gap: Members = {"records": 4, "torn": 0, "gaps": [[3, 4]]}
    yield vector(
        "line_cut", "gap", _file(*LINES[:3], *LINES[4:]), **gap | {"gaps": [[4, 4]], "records": 5}
    )
    yield vector("gap", "gap", _file(*LINES[:2], *rest), **gap)
    yield vector("gap_accepted", "gap", _file(*LINES[:2], rest[0], accepted), **gap)
    yield vector(
        "gap_before_a_missing_newline", "gap", _file(*LINES[:2]) + rest[0], **gap | {"records": 3}
    )
    two = [*LINES[:1], *_chain(3, after="cd" * 32), *_chain(6, after="ef" * 32)]
    yield vector("two_gaps", "gap", _file(*two), records=3, torn=0, gaps=[[2, 2], [4, 5]])
    changed = swap(LINES[1], "87500", "87501")
    yield _bad("gap_behind_a_break", LINES[0], changed, *_chain(5, 6, after=sha256(changed)))


def _disorder() -> Iterator[Members]:
    one, two, three, four, five, six = LINES
    yield _bad("reordered", one, two, four, three, five, six)
    yield _bad("duplicated", one, two, three, three, four, five, six)
    yield _bad("duplicated_newest", one, two, three, four, five, six, six)
    yield _bad("duplicated_behind_the_newest", one, two, three, four, five, six, three)
    yield _bad("fork", one, two, three, *_chain(3, after=sha256(two)))
    yield _bad("wrong_prev", one, two, *_chain(3, after="ab" * 32))
    yield _bad("prev_of_the_line_with_lf", one, *_chain(2, after=sha256(one + LF)))
    yield _bad("changed_and_signed_anew_in_the_middle", one, *_chain(2, after="ab" * 32), three)
    inserted = GABRIEL.line(spell(record("retire", 4, sha256(three), {})))
    yield _bad("inserted", one, two, three, inserted, four, five, six)


def _retired() -> Iterator[Members]:
    """Section 3: `retire` is the last record of a key."""
    after = GABRIEL.line(spell(record("save", 7, sha256(LINES[5]), save_body(7))))
    jump = GABRIEL.line(spell(record("save", 9, "cd" * 32, save_body(9))))
    accept: Members = {"reason": "recreated", "first": None, "last": None, "tip": None}
    bodies: dict[str, Members] = {"accept": accept, "retire": {}}
    yield _bad("after_retire", *LINES, after)
    yield _bad("jump_after_retire", *LINES, jump)
    for kind, body in bodies.items():
        line = GABRIEL.line(spell(record(kind, 7, sha256(LINES[5]), body)))
        yield _bad(f"{kind}_after_retire", *LINES, line)
    yield _ok("torn_tail_after_retire", _file(*LINES) + after, 6, len(after))


def _strangers() -> Iterator[Members]:
    one, two, three, *rest = LINES
    yield _bad(
        "inserted_of_other_key", one, two, three, *_chain(4, after=sha256(three), who=STRANGER)
    )
    foreign = _chain(2, 3, after=sha256(one), who=STRANGER)
    yield _bad("foreign_signer", one, *foreign)
    renamed = record("save", 2, sha256(one), save_body(2)) | {"instance": "Gabriel #216"}
    yield _bad("foreign_instance", one, GABRIEL.line(spell(renamed)))
    yield _bad("birth_missing", two, three, *rest)
    yield _bad("birth_cut_and_chain_begun_anew", *_chain(2, 3))
    yield _bad("birth_twice", one, one)
    yield _bad("birth_second", one, GABRIEL.line(spell(birth() | {"seq": 2, "prev": sha256(one)})))
    forged = with_signature(spell(record("save", 3, sha256(two), save_body(3))), "00" * 64)
    yield _bad("signature_of_zeros", one, two, forged)
    signed_by_other = spell(record("save", 2, sha256(one), save_body(2)))
    line = with_signature(signed_by_other, STRANGER.sign(signed_by_other).hex())
    yield _bad("signature_by_other_key", one, line)


def _bytes() -> Iterator[Members]:
    one, two, three, four, five, six = LINES
    files = {
        "crlf": b"".join(line + b"\r\n" for line in LINES),
        "lone_cr": b"\r".join(LINES) + LF,
        "bom": b"\xef\xbb\xbf" + _file(*LINES),
        "utf16": one.decode().encode("utf-16-le") + LF,
        "blank_first_line": LF + _file(*LINES),
        "blank_line": _file(one, two, b"", three),
        "blank_last_line": _file(*LINES) + LF,
        "only_a_newline": LF,
        "glued_lines": _file(one, two + three, four),
        "line_not_json": _file(one, two, b"garbage", three),
        "line_not_utf8": _file(one, two, b"\xff\xfe", three),
        "line_of_zeros": _file(one, two, bytes(400), three),
        "line_too_long": _file(one, two, b'{"v":1,"' + b"x" * 8192 + b'":1}', three),
        "blank_behind_a_line": _file(one, two + b" ", three),
        "changed": _file(one, two, swap(three, "112500", "112501"), four, five, six),
        "changed_newest": _file(*LINES[:4], swap(five, "112500", "112501")),
        "members_swapped": _file(one, two, swap(three, '"v":1,"seq":3', '"seq":3,"v":1'), four),
    }
    for name, data in files.items():
        yield vector(name, "tampered", data)


def _newer() -> Iterator[Members]:
    one, two, three, *_ = LINES
    later = GABRIEL.line(
        swap(spell(record("save", 3, sha256(two), save_body(3))), '"v":1', '"v":2')
    )
    data = _file(one, two, later)
    yield vector("version_2_newest", "unsupported", data)
    yield vector("version_2_twice", "unsupported", _file(one, two, later, later))
    after = GABRIEL.line(spell(record("save", 4, sha256(later), save_body(4))))
    yield vector("version_1_behind_version_2", "tampered", _file(one, two, later, after))
    beside = _chain(3, after=sha256(two))
    yield _bad("version_1_behind_version_2_as_if_it_were_not_there", one, two, later, *beside)
    yield _bad("version_2_and_a_break", one, swap(two, "112500", "112501"), later)
    yield _ok("version_2_without_newline", _file(one, two) + later, 2, len(later))
    yield _bad("version_0", one, two, swap(three, '"v":1', '"v":0'))
