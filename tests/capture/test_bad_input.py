"""Transcripts as nobody wants them: the hook saves what is there, says what is not, and goes on."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import socket
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits
from tests.fault import sweep
from tests.fault.scene import Scene, record, session_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from savepoint.core.record import Record
    from tests.fault.scene import Fired

SECONDS = 19  # far more than any save here takes: what lasts longer would be cut off


def reason(scene: Scene, one: Record | None = None) -> str:
    """Why a savepoint has no transcript."""
    one = one or scene.saves()[-1]
    assert one.body["consciousness_preserved"] is False
    told = scene.document(one)
    assert scene.conversation(one) is None
    (found,) = [entry for entry in _objects(told["omitted"]) if entry["what"] == "transcript"]
    return str(found["reason"])


def _objects(value: object) -> list[dict[str, object]]:
    assert isinstance(value, list)
    return value


# What stands in the place of the transcript


def _folder(path: Path) -> None:
    path.mkdir()


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")


def _socket(path: Path) -> None:
    before = os.getcwd()
    os.chdir(path.parent)  # the path of a socket may have 107 bytes
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(path.name)
    os.chdir(before)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (None, "does not exist"),
        (_folder, "not a regular file"),
        (os.mkfifo, "not a regular file"),
        (_socket, "not a regular file"),
        (_device, "is a link"),
        (_link, "is a link"),
    ],
)
def test_what_is_no_file_is_said_and_the_rest_is_saved(
    scene: Scene, make: Callable[[Path], None] | None, word: str
) -> None:
    path = scene.transcript()
    if make:
        make(path)
    begun = time.monotonic()
    assert scene.fire().is_quiet
    assert time.monotonic() - begun < SECONDS
    assert scene.log() == []
    assert word in reason(scene)
    assert "changes:a.py" in scene.files(), "the project's changes are there all the same"
    assert scene.damage() == []


@pytest.mark.parametrize("make", [None, _folder, os.mkfifo, _link])
def test_create_refuses_it_and_writes_nothing(
    scene: Scene, make: Callable[[Path], None] | None
) -> None:
    if make:
        make(scene.transcript())
    refused = scene.create()
    assert refused.code == 1
    assert str(scene.transcript()) in refused.err
    assert "hint" in refused.err
    assert scene.saves() == []
    assert scene.pending() == []


def test_a_path_that_is_wrong_is_looked_for_by_session_id_alone(scene: Scene) -> None:
    """Never the newest file of the project: that one may be another session's."""
    said = scene.say(3, session=1)
    scene.say(3, session=2)
    wrong = scene.payload(1, transcript_path=str(scene.folder / "gone.jsonl"))
    assert scene.fire(payload=wrong).is_quiet
    assert scene.conversation() == said
    assert scene.fire(payload=scene.payload(3, transcript_path="")).is_quiet
    assert "none" in reason(scene, scene.saves(3)[-1])


def test_what_may_not_be_read_is_said(scene: Scene, root: None) -> None:
    """Root without its capabilities is a user like others."""
    scene.say(3)
    scene.transcript().chmod(0)
    plain = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    assert scene.fire(wrap=plain).is_quiet
    assert "Permission denied" in reason(scene)
    scene.transcript().chmod(0o600)
    assert scene.fire(wrap=plain).is_quiet
    assert scene.conversation() == scene.transcript().read_bytes()


def test_a_transcript_that_was_gone_for_a_while_is_not_stored_twice(scene: Scene) -> None:
    said = scene.say(200, size=5000)
    assert scene.fire().is_quiet
    away = scene.folder / "away"
    scene.transcript().rename(away)
    assert scene.fire().is_quiet
    assert "does not exist" in reason(scene)
    away.rename(scene.transcript())
    assert scene.fire().is_quiet
    assert scene.conversation() == said
    assert len(scene.saves()) == 3
    assert scene.stored_twice() == []


# What happens to it between two saves, and during one


def test_a_transcript_that_shrank_is_saved_as_it_is_and_said(scene: Scene) -> None:
    said = scene.say(30)
    assert scene.fire().is_quiet
    cut = said[: len(said) // 2 + 7]
    scene.transcript().write_bytes(cut)
    scene.rest()
    assert scene.fire().is_quiet
    first, second = scene.saves()
    assert scene.conversation(first) == said
    assert scene.conversation(second) == cut
    told = scene.document(second)["notes"]
    assert "what was saved before is no longer the beginning of the transcript" in _texts(told)
    assert "the last line of the transcript is not whole" in _texts(told)


def _texts(value: object) -> list[str]:
    assert isinstance(value, list)
    return value


def test_a_transcript_that_was_rewritten_under_the_same_size_is_noticed(scene: Scene) -> None:
    said = scene.say(30)
    assert scene.fire().is_quiet
    changed = said.replace(b"user", b"USER", 1)
    scene.transcript().write_bytes(changed)
    scene.rest()
    assert scene.fire().is_quiet
    assert scene.conversation() == changed


def fire_paused(scene: Scene, meanwhile: Callable[[], object]) -> Fired:
    """A hook that sleeps for two seconds where it has opened the transcript to read it; something
    is done to it meanwhile.
    """
    path = scene.transcript()
    failures: list[BaseException] = []

    def wait_and_act() -> None:
        try:
            _wait_until_open(path)
            meanwhile()
        except BaseException as failure:  # noqa: BLE001  # shown where the test can see it
            failures.append(failure)

    other = threading.Thread(target=wait_and_act)
    other.start()
    pause = ["-P", str(path), "-e", "inject=openat:delay_exit=2000000"]
    fired = scene.fire(wrap=sweep.tracing(scene.folder / "trace", *pause))
    other.join()
    assert failures == []
    return fired


def _wait_until_open(path: Path) -> None:
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        for process in filter(str.isdigit, os.listdir("/proc")):
            try:
                folder = f"/proc/{process}/fd"
                if str(path) in [os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder)]:
                    return
            except OSError:
                continue
        time.sleep(0.01)
    raise AssertionError("nobody opened it")


def test_a_transcript_that_shrinks_while_it_is_read(scene: Scene, strace: str) -> None:
    said = scene.say(30)
    assert fire_paused(scene, lambda: os.truncate(scene.transcript(), len(said) // 3)).is_quiet
    assert scene.conversation(scene.saves(1)[-1]) == said[: len(said) // 3]
    assert scene.damage() == []


def test_a_transcript_that_grows_while_it_is_read(scene: Scene, strace: str) -> None:
    said = scene.say(30)
    more = record(1, len(said), 60)

    def grow() -> None:
        with scene.transcript().open("ab") as file:
            file.write(more)

    assert fire_paused(scene, grow).is_quiet
    assert scene.conversation(scene.saves(1)[-1]) in {said, said + more}
    assert scene.fire().is_quiet
    assert scene.conversation(scene.saves(1)[-1]) == said + more
    assert scene.stored_twice() == []


def test_a_transcript_that_is_replaced_while_it_is_read(scene: Scene, strace: str) -> None:
    """One of the two, never a mixture; the next save has the new one."""
    said = scene.say(30)
    new = scene.folder / "new"
    new.write_bytes(said.replace(b"user", b"USER"))
    assert fire_paused(scene, lambda: new.rename(scene.transcript())).is_quiet
    assert scene.conversation(scene.saves(1)[-1]) == said
    assert scene.fire().is_quiet
    assert scene.conversation(scene.saves(1)[-1]) == said.replace(b"user", b"USER")


# What stands in it


LINE = record(1, 0, 60)
STRANGE = {
    "empty": b"",
    "one blank": b"\n",
    "torn": LINE + LINE[:-20],
    "glued": LINE.rstrip(b"\n") + LINE,
    "NUL": LINE + b"\0" * 4096 + b"\n" + LINE,
    "NUL in a string": LINE.replace(b"user", b"us\0er"),
    "lone CR": LINE.replace(b"\n", b"\r") + LINE,
    "CRLF": LINE.replace(b"\n", b"\r\n") * 3,
    "lone surrogate": b'{"type":"user","message":{"content":"\\ud800"}}\n' + LINE,
    "not UTF-8": b'{"type":"user","message":{"content":"\xff\xfe\xc0\x80"}}\n' + LINE,
    "UTF-16": LINE.decode().encode("utf-16"),
    "U+2028": '{"type":"user","message":{"content":"\u2028\u0085\x0b"}}\n'.encode() + LINE,
    "BOM": b"\xef\xbb\xbf" + LINE,
    "a line of 1 MB": record(1, 0, 1_000_000) + LINE,
    "a line of 17 MB": record(1, 0, 17_000_000) + LINE,
    "deep": b"[" * 100_000 + b"\n" + LINE,
    "a number of 5000 digits": b'{"n":' + b"1" * 5000 + b"}\n" + LINE,
    "unknown type": b'{"type":"marvel","x":1}\n' * 3,
    "metadata only": b'{"type":"summary","summary":"x","leafUuid":"y"}\n',
    "rubbish": bytes(range(256)) * 50,
    "no last newline": LINE.rstrip(b"\n"),
}


@pytest.mark.parametrize("data", STRANGE.values(), ids=STRANGE)
def test_every_byte_comes_back_and_the_next_records_as_well(scene: Scene, data: bytes) -> None:
    scene.transcript().write_bytes(data)
    scene.rest()
    assert scene.fire().is_quiet
    assert scene.log() == []
    assert scene.conversation() == data
    whole = scene.say(2)
    assert scene.fire().is_quiet
    assert scene.conversation() == whole
    assert scene.damage() == []
    assert scene.log() == []


# Its size


def test_a_session_full_of_pictures(scene: Scene) -> None:
    """earendil-works/pi#9613: memory grew with the file; here 150 MB in lines of 2 MB."""
    chance = random.Random(1)
    path = scene.transcript()
    with path.open("wb") as file:
        for number in range(75):
            picture = base64.b64encode(chance.randbytes(1_500_000)).decode()
            source = {"type": "base64", "media_type": "image/png", "data": picture}
            content = [{"type": "image", "source": source}]
            told = {"type": "user", "sessionId": session_id(1), "uuid": f"{number}"}
            line = json.dumps({**told, "message": {"role": "user", "content": content}})
            file.write(line.encode() + b"\n")
    scene.rest()
    assert 10 * limits.MIB < _peak_of_fire(scene) < 96_000_000, "as for any first save"
    first = _stored_bytes(scene)
    scene.say(1)
    begun = time.monotonic()
    assert scene.fire().is_quiet
    assert time.monotonic() - begun < SECONDS
    assert _stored_bytes(scene) - first < 3 * limits.MIB, "the open segment and the new record"
    assert scene.conversation() == path.read_bytes()
    assert len(scene.saves()) == 2


def _peak_of_fire(scene: Scene) -> int:
    """Bytes of memory that a fire needs at most. (`ru_maxrss` is no measure: it begins with that of
    the process that started it.)
    """
    process = scene.start()
    peak = 0
    while process.poll() is None:
        try:
            told = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        except OSError:
            break
        found = re.search(r"VmHWM:\s+(\d+) kB", told)
        peak = max(peak, int(found[1]) if found else 0)
        time.sleep(0.002)
    out, err = process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")
    assert scene.log() == []
    return peak * limits.KIB


def _stored_bytes(scene: Scene) -> int:
    return sum(path.stat().st_size for path in scene.home.glob("stores/*/objects/*/*"))
