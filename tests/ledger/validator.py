"""Pytest plugin: the real `solana-test-validator`, one a test session, killed at its end.

Tests that ask for `validator` carry `pytest.mark.xdist_group("validator")`, so that one worker of
xdist runs them all and starts it. The shipped program is in its genesis, as PROGRAM.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from anchor_service.ledgers.embedded import PROGRAM
from savepoint.core.spelling import base58

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).resolve().parents[2]
ELF = PROJECT / "anchor_service/program/savepoint_anchor.so"
_START_SECONDS = 90  # 4 on an idle machine
_PORTS = 40  # in a row: rpc, its websocket, faucet, gossip, and what it takes by itself


class Validator:
    """One cluster of one node. `start` again goes on with its ledger."""

    def __init__(self, program: Path, folder: Path, ticks: int = 8) -> None:
        """ticks: of a slot, of 6.25 ms each; a public cluster has 64."""
        self._program = program
        self._ticks = str(ticks)
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._base = 0
        self.url = ""

    def start(self, *, reset: bool = False) -> None:
        """Running and healthy when this returns. reset: a new genesis, nothing kept; the URL stays
        the same, as it does without.
        """
        for attempt in range(3):  # another process may have taken a port meanwhile
            self._base = self._base or _free_ports()
            self.url = f"http://127.0.0.1:{self._base}"
            self._process = self._spawn(reset=reset)
            if self._is_healthy():
                return
            self.kill()
            assert attempt < 2, f"it does not start: {self._folder}/ledger/validator.log"
            self._base = 0

    def resume(self) -> None:
        """Started again, if it was killed."""
        if self._process is None:
            self.start()

    def kill(self) -> None:
        """SIGKILL, as a power cut would."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(timeout=180)
            self._process = None

    def ask(self, method: str, *params: object) -> Any:  # noqa: ANN401  # JSON
        """The result of one question, asked without any of our code."""
        question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        request = urllib.request.Request(  # noqa: S310  # of this machine
            self.url, json.dumps(question).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=5) as reply:  # noqa: S310  # as above
            return json.load(reply)["result"]

    def _spawn(self, *, reset: bool) -> subprocess.Popen[bytes]:
        rpc, faucet, gossip, first = (self._base + offset for offset in (0, 2, 3, 4))
        command = [
            # Nothing outlives a test run that is killed.
            *(["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []),
            *(str(self._program), "--quiet", "--ledger", str(self._folder / "ledger")),
            *("--rpc-port", str(rpc), "--faucet-port", str(faucet), "--gossip-port", str(gossip)),
            *("--dynamic-port-range", f"{first}-{self._base + _PORTS - 1}"),
            *("--bind-address", "127.0.0.1", "--limit-ledger-size", "50000000"),
            *("--bpf-program", base58(PROGRAM), str(ELF), "--ticks-per-slot", self._ticks),
        ]
        if reset:
            command.append("--reset")
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    def _is_healthy(self) -> bool:
        assert self._process is not None
        end = time.monotonic() + _START_SECONDS
        while time.monotonic() < end and self._process.poll() is None:
            try:
                slot = self.ask("getSlot", {"commitment": "confirmed"})
                if self.ask("getHealth") == "ok" and slot > 1:
                    return True
            except (OSError, ValueError, KeyError):
                pass  # the port answers a second before there is anything to say; started again,
                # it is "ok" and confirms nothing yet, with accounts as old as its snapshot
            time.sleep(0.1)
        return False


def _free_ports() -> int:
    """The first of `_PORTS` ports in a row that nobody has, for TCP and UDP."""
    for _ in range(200):
        base = random.randrange(20_000, 32_000)  # below those that the kernel gives away
        try:
            with ExitStack() as held:
                for port in range(base, base + _PORTS):
                    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                        one = held.enter_context(socket.socket(socket.AF_INET, kind))
                        one.bind(("127.0.0.1", port))
        except OSError:
            continue
        return base
    raise AssertionError("no free ports")


_started: list[Validator] = []


def pytest_runtest_setup(item: pytest.Item) -> None:
    """It goes on with its ledger where a test that needs it comes after others."""
    if _is_for_validator(item):
        for one in _started:
            one.resume()


def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """At 8 ticks a slot it takes more than a core: nobody else's tests are run beside it."""
    if nextitem is None or not _is_for_validator(nextitem):
        for one in _started:
            one.kill()


def _is_for_validator(item: pytest.Item) -> bool:
    return any("validator" in mark.args for mark in item.iter_markers("xdist_group"))


@pytest.fixture(scope="session")
def validator(
    validator_program: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Validator]:
    """Running. A test that kills or resets it starts it again before it ends."""
    folder = tmp_path_factory.mktemp("validator")
    one = Validator(validator_program, folder)
    try:
        one.start(reset=True)
        _started.append(one)
        yield one
    finally:
        _started.clear()
        one.kill()
        shutil.rmtree(folder, ignore_errors=True)
