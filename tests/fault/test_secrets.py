"""No secret leaves the keys folder, and none of the agent's environment goes anywhere at all.

Markers are searched in every file outside `keys/`, opened if it is compressed, in what is printed,
and in the argument list and the environment of every process that is started.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core import limits, spelling
from savepoint.core.zstd import zstd
from tests.fault.scene import Scene

if TYPE_CHECKING:
    from collections.abc import Iterator

MARKERS = {
    name: f"marker-of-{name.lower()}-8c1f0a"
    for name in (
        *("ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN"),
        *("GIT_ASKPASS", "GIT_CONFIG_VALUE_0", "SSH_ASKPASS", "LD_LIBRARY_PATH", "NPM_TOKEN"),
        *("PYTHONPATH", "DATABASE_URL", "MY_OWN"),
    )
}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A project, a store, and a session that has something to save."""
    scene = Scene.make(tmp_path / "scene")
    scene.say(20)
    return scene


def secrets(scene: Scene) -> dict[str, bytes]:
    """What the keys folder holds, in every spelling that it could slip out in."""
    raw: dict[str, bytes] = {}
    for path in (scene.home / "keys").rglob("*"):
        if path.is_file() and path.name != "recipients.txt":  # those are public
            data = path.read_bytes()
            raw[path.name] = data
            if path.suffix == ".json":
                raw[f"{path.name} seed"] = bytes(json.loads(data))[:32]
    assert len(raw) >= 3
    found: dict[str, bytes] = {}
    for name, data in raw.items():
        found |= {f"{name} as {how}": text for how, text in spellings(data.strip()).items()}
    return found


def spellings(secret: bytes) -> dict[str, bytes]:
    """Raw, hex, base64, base58 and as JSON numbers, dense and with blanks."""
    numbers = json.dumps(list(secret))
    found = {
        "it is": secret,
        "hex": secret.hex().encode(),
        "HEX": secret.hex().upper().encode(),
        "base64": base64.b64encode(secret).rstrip(b"="),
        "base64, for URLs": base64.urlsafe_b64encode(secret).rstrip(b"="),
        "numbers": numbers.encode()[1:-1],
        "dense numbers": numbers.replace(" ", "").encode()[1:-1],
        "repr": repr(secret).encode()[2:-1],
    }
    if len(secret) == 32:
        found["base58"] = spelling.base58(secret).encode()
    return found


def contents(scene: Scene) -> Iterator[tuple[str, bytes]]:
    """Every file outside `keys/`, and what it holds when it is opened."""
    for path in scene.folder.rglob("*"):
        if path.is_symlink() or not path.is_file() or (scene.home / "keys") in path.parents:
            continue
        data = path.read_bytes()
        yield str(path), data
        if path.suffix == ".pack" and path.is_relative_to(scene.store.objects):
            yield f"{path}, opened", _frames(data)
    for repository in scene.home.glob("stores/*/repo.git"):
        listing = ["git", f"--git-dir={repository}", "cat-file", "--batch-all-objects", "--batch"]
        objects = subprocess.run(listing, check=True, capture_output=True)
        yield f"objects of {repository}", objects.stdout


def _frames(data: bytes) -> bytes:
    opened, data = b"", data[limits.PACK_HEADER_BYTES :]
    while data:
        one = zstd.ZstdDecompressor()
        opened += one.decompress(data)
        data = one.unused_data
    return opened


def assert_nowhere(scene: Scene, wanted: dict[str, bytes], *more: bytes) -> None:
    places = [*contents(scene), *((f"output {n}", data) for n, data in enumerate(more))]
    assert any(b"sessionId" in data for _, data in places), "packs are opened"
    found = [
        f"{name} in {place}"
        for place, data in places
        for name, text in wanted.items()
        if text in data
    ]
    assert found == []


def everything_is_done(scene: Scene, trace: Path, environment: dict[str, str]) -> bytes:
    """Fires, commands, failures of all kinds; what they printed."""
    strace = ["strace", "-f", "-qq", "-v", "-s", "100000", "-e", "trace=execve", "-o", str(trace)]
    out = b""
    for event in ("SessionStart", "PreCompact", "Stop", "SessionEnd"):
        scene.say(1)
        fired = scene.fire(event=event, env=environment, wrap=[*strace, "-A"])
        assert fired.is_allowed(event)
        out += fired.out
    for command in COMMANDS:
        done = scene.command(
            *(word.format(scene.transcript()) for word in command), env=environment
        )
        out += done.out + done.err.encode()
    key = Path(scene.paths.authority)
    good = key.read_bytes()
    for spoiled in (good[:-2], good.replace(b",", b";", 1), good + b" trailing"):
        key.write_bytes(spoiled)
        scene.say(1)
        fired = scene.fire(env=environment)
        assert fired.is_allowed(event)
        out += fired.out
        create = ["--debug", "create", "--transcript", str(scene.transcript())]
        refused = scene.command(*create, env=environment)
        assert refused.code == 12
        doctor = scene.command("doctor", "--json", env=environment)
        out += refused.out + refused.err.encode() + doctor.out + doctor.err.encode()
    key.write_bytes(good)
    scene.say(1)
    assert scene.fire(env=environment).is_quiet
    return out


COMMANDS = [
    ["create", "--transcript", "{}"],
    ["create", "--transcript", "{}", "--json"],
    ["list", "--json"],
    ["show", "latest", "--json"],
    ["status"],
    ["status", "--json"],
    ["verify", "--all", "--json"],
    ["fsck", "--json"],
    ["doctor", "--json"],
    ["config", "--json"],
    ["export", "latest"],
    ["create", "--transcript", "/nowhere", "--json"],
    ["--debug", "create", "--transcript", "/nowhere"],
    ["nonsense"],
]


def test_neither_keys_nor_environment_are_found_anywhere(scene: Scene, strace: str) -> None:
    trace = scene.folder.parent / "trace"
    environment = scene.environment(**MARKERS)
    printed = everything_is_done(scene, trace, environment)
    assert b"savepoint" in printed
    variables = {name: value.encode() for name, value in MARKERS.items()}
    assert_nowhere(scene, secrets(scene) | variables, printed)
    started = [line for line in trace.read_bytes().splitlines() if b"execve(" in line]
    programs = [line for line in started if b'/git"' in line]
    assert len(programs) > 10, "git was started, and it was seen"
    told = secrets(scene) | variables
    leaks = {name for name, text in told.items() for line in programs if text in line}
    assert leaks == set()
    first = re.search(rb'\["git", [^\]]*\], (\[[^\]]*\])', programs[0])
    assert first is not None
    assert b'"HOME=' in first[1], "its environment was seen as well"
    assert scene.damage() == []


def test_the_search_finds_what_is_there(scene: Scene) -> None:
    """A marker in a file of the project is in a pack, and is found there."""
    (scene.project / "leak.txt").write_text(MARKERS["MY_OWN"])
    assert scene.fire().is_quiet
    with pytest.raises(AssertionError):
        assert_nowhere(scene, {"marker": MARKERS["MY_OWN"].encode()})
    (scene.project / "leak.txt").unlink()
    with pytest.raises(AssertionError):
        assert_nowhere(scene, {"marker": MARKERS["MY_OWN"].encode()})
