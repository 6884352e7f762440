"""Whatever bytes are sent: a named error and an account as it was, or an entry as the rules say."""

from __future__ import annotations

import hashlib

from hypothesis import given
from hypothesis import strategies as st

from anchor_service.program.instructions import ERRORS
from tests.program.scene import APPEND_UNITS, RETIRE, Scene, a_body, entry_hash, with_data

# One for all examples: each finds the first entry, and leaves it there.
_SCENE = Scene().begun()

# Of APPEND: where something else makes another decision.
_PLACES = st.sampled_from([0, 1, 8, 9, 40, 41, 42, 49, 50, 82, 114, 153, 154, 217, 218, 219, 220])


def _judge(data: bytes) -> bool:
    """Send it; has it landed? Fails unless the account is what it must be in either case."""
    before = _SCENE.data()
    sent = _SCENE.send(with_data(_SCENE.append(), data))
    assert sent.units <= APPEND_UNITS
    if sent.error is not None:
        assert sent.error in ERRORS
        assert _SCENE.data() == before
        return False
    after = _SCENE.data()
    assert data[:41] == b"\1" + before[4:12] + entry_hash(before)
    assert int.from_bytes(after[4:12], "little") == int.from_bytes(before[4:12], "little") + 1
    assert after[:4] + after[20:21] == before[:4] + before[20:21]
    assert after[21] == (after[32] == RETIRE)
    assert after[32:209] + after[22:24] + after[209:] == data[41:].ljust(435, b"\0")
    _SCENE.put(before)
    return True


@given(st.binary(max_size=600))
def test_random_bytes(data: bytes) -> None:
    assert not _judge(data)


@given(_PLACES, st.integers(0, 255))
def test_one_byte_changed(place: int, value: int) -> None:
    data = bytearray(bytes(_SCENE.append().data))
    data[place] = value
    _judge(bytes(data))


@given(st.binary(max_size=64), st.binary(max_size=256), st.integers(0, 2**64 - 1))
def test_every_valid_entry_lands(seed: bytes, metadata: bytes, time: int) -> None:
    body = a_body(snapshot=seed, metadata=metadata)._replace(
        client_time=time, commit=hashlib.sha256(seed).hexdigest()[:40].encode()
    )
    assert _judge(bytes(_SCENE.append(body).data))


@given(st.integers(0, 600), st.integers(0, 600), st.binary(max_size=8))
def test_parts_moved(cut: int, to: int, between: bytes) -> None:
    data = bytes(_SCENE.append().data)
    moved = data[:cut] + between + data[to:]
    assert _judge(moved) or moved != data
