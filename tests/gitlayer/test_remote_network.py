"""Remotes over https and ssh: the user's credentials, never a question, all kinds of silence."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from savepoint.core.errors import RemoteUnreachableError
from savepoint.gitlayer.remote import remote
from tests.gitlayer import https
from tests.gitlayer.https import PASSWORD, USER
from tests.gitlayer.remotes import Pushing

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def it(tmp_path: Path) -> Pushing:
    one = Pushing.new(tmp_path)
    one.saved(1)
    return one


def _configure(text: str) -> None:
    with Path(os.environ["HOME"], ".gitconfig").open("a", encoding="utf-8") as file:
        file.write(text)


def _trust(tmp_path: Path) -> None:
    _configure(f"[http]\nsslCAInfo = {tmp_path}/cert.pem\n")


def _failure(it: Pushing, seconds: float = 10) -> RemoteUnreachableError:
    """What a push ends with, in time."""
    began = time.monotonic()
    with pytest.raises(RemoteUnreachableError) as failed:
        it.push(seconds=seconds)
    assert time.monotonic() - began < seconds + 20
    assert (failed.value.exit_code, failed.value.retry) == (30, True)
    assert PASSWORD not in failed.value.message
    return failed.value


# https


def test_https_with_the_user_s_credentials(it: Pushing, tmp_path: Path) -> None:
    it.bare.git("config", "http.receivepack", "true")
    with https.serving(tmp_path, "git", tmp_path) as server:
        _trust(tmp_path)
        helper = f"!f() {{ echo username={USER}; echo password={PASSWORD}; }}; f"
        _configure(f'[credential]\nhelper = "{helper}"\n')
        it.use(f"{server.url}/remote.git")
        it.push()
        it.check_pushed()
        it.saved(2)
        it.push()
        it.check_pushed()


@pytest.mark.parametrize("mode", ["git", "401"])
def test_a_server_that_asks_for_a_password_gets_none(
    it: Pushing, tmp_path: Path, mode: str
) -> None:
    """M21: without prompts it fails at once. A configured asker is not asked either."""
    asker = tmp_path / "asker"
    asker.write_text(f"#!/bin/sh\ntouch {tmp_path}/ASKED\necho x\n")
    asker.chmod(0o755)
    _configure(f"[core]\naskPass = {asker}\n")
    with https.serving(tmp_path, mode, tmp_path) as server:
        _trust(tmp_path)
        it.use(f"{server.url}/remote.git")
        _failure(it)
    assert not (tmp_path / "ASKED").exists()


def test_a_token_in_the_place_of_the_user_is_in_no_error(it: Pushing, tmp_path: Path) -> None:
    with https.serving(tmp_path, "401", tmp_path) as server:
        _trust(tmp_path)
        it.use(server.url.replace("https://", f"https://{PASSWORD}@") + "/remote.git")
        _failure(it)


def test_the_user_is_handed_over_and_in_no_argument_list(
    it: Pushing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every user of the machine reads those of git and of its helpers, and a user can be a token.
    The helper is asked with the name, as if it stood in the URL.
    """
    it.bare.git("config", "http.receivepack", "true")
    seen = set[bytes]()
    serve = https._Handler._serve  # git is at work while it is served

    def looked(handler: https._Handler) -> None:
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                seen.update(one.read_bytes().split(b"\0"))
        serve(handler)

    monkeypatch.setattr(https._Handler, "_serve", looked)
    with https.serving(tmp_path, "git", tmp_path) as server:
        _trust(tmp_path)
        helper = f"!f() {{ grep -q ^username={USER}$ && echo password={PASSWORD}; }}; f"
        _configure(f"[credential]\nhelper = {helper!r}\n".replace("'", '"'))
        it.use(f"{server.url}/remote.git".replace("https://", f"https://{USER}@"))
        it.push()
        it.check_pushed()
        assert f"{server.url}/remote.git".encode() in seen
    assert not [one for one in seen if f"{USER}@".encode() in one]


@pytest.mark.parametrize("mode", ["403", "404", "500", "html", "redirect"])
def test_a_server_that_answers_otherwise(it: Pushing, tmp_path: Path, mode: str) -> None:
    with https.serving(tmp_path, mode, tmp_path) as server:
        _trust(tmp_path)
        it.use(f"{server.url}/remote.git")
        _failure(it)
        assert not [line for line in server.log if "HTTP/1.0" in line]


def test_a_certificate_that_nobody_vouches_for(it: Pushing, tmp_path: Path) -> None:
    with https.serving(tmp_path, "git", tmp_path) as server:
        it.use(f"{server.url}/remote.git")
        assert "certificate" in _failure(it).message
        assert server.log == []


def test_a_server_that_stalls_is_given_up(
    it: Pushing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """M21: a push to a silent server hangs without end."""
    stall = tuple(
        "http.lowSpeedTime=1" if one.startswith("http.lowSpeedTime") else one
        for one in remote._OPTIONS
    )
    monkeypatch.setattr(remote, "_OPTIONS", stall)
    with https.serving(tmp_path, "silent", tmp_path) as server:
        _trust(tmp_path)
        it.use(f"{server.url}/remote.git")
        assert "too slow" in _failure(it).message


def test_a_server_that_trickles_is_given_up_at_the_deadline(it: Pushing, tmp_path: Path) -> None:
    """M9: each byte in time, and no end."""
    with https.serving(tmp_path, "trickle", tmp_path) as server:
        _trust(tmp_path)
        it.use(f"{server.url}/remote.git")
        assert "out of time" in _failure(it, 2).message


@pytest.fixture
def silent_port() -> Iterator[int]:
    """Takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_a_silent_port_is_given_up_at_the_deadline(it: Pushing, silent_port: int) -> None:
    it.use(f"https://127.0.0.1:{silent_port}/remote.git")
    assert "out of time" in _failure(it, 2).message


def test_nobody_listens(it: Pushing) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    it.use(f"https://127.0.0.1:{port}/remote.git")
    message = _failure(it).message
    assert f"https://127.0.0.1:{port}/remote.git cannot be reached" in message


def test_a_name_that_nobody_knows(it: Pushing) -> None:
    it.use("https://no-such-host.invalid/remote.git")
    assert "resolve" in _failure(it).message


# ssh

_STUB = """\
#!/bin/sh
# What ssh is given, then what the server would run.
printf '%s\\n' "$*" >> "{log}"
(: < /dev/tty) 2>/dev/null && echo "has a terminal" >> "{log}"
test -t 0 && echo "has a terminal" >> "{log}"
env | grep ^AWS_ >> "{log}"
while [ $# -gt 0 ]; do
    case $1 in
        -o | -p | -i) shift 2 ;;
        -*) shift ;;
        *) break ;;
    esac
done
shift
exec sh -c "$*"
"""


def _stub(tmp_path: Path, name: str = "ssh") -> Path:
    program = tmp_path / "bin" / name
    program.parent.mkdir(exist_ok=True)
    program.write_text(_STUB.format(log=tmp_path / "log"))
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("form", ["ssh://ada@host.invalid{}", "ada@host.invalid:{}"])
def test_ssh_as_the_user_configured_it_asks_nothing(
    it: Pushing, tmp_path: Path, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "x")
    _configure(f"[core]\nsshCommand = {_stub(tmp_path)} -i key\n")
    it.use(form.format(it.bare.path))
    it.push()
    it.check_pushed()
    told = (tmp_path / "log").read_text()
    assert "has a terminal" not in told
    assert "AWS_" not in told
    calls = [line for line in told.splitlines() if "ada@host.invalid" in line]
    assert len(calls) == 3
    assert all("-i key -o BatchMode=yes" in line for line in calls)


def test_ssh_in_path_asks_nothing(
    it: Pushing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{_stub(tmp_path).parent}:{os.environ['PATH']}")
    it.use(f"ssh://host.invalid{it.bare.path}")
    it.push()
    it.check_pushed()
    assert "-o BatchMode=yes" in (tmp_path / "log").read_text()


@pytest.mark.parametrize(("name", "variant"), [("plink", ""), ("mine", "simple")])
def test_what_is_no_openssh_is_not_given_its_options(
    it: Pushing, tmp_path: Path, name: str, variant: str
) -> None:
    _configure(f"[core]\nsshCommand = {_stub(tmp_path, name)}\n")
    if variant:
        _configure(f"[ssh]\nvariant = {variant}\n")
    it.use(f"ssh://host.invalid{it.bare.path}")
    it.push()
    it.check_pushed()
    assert "BatchMode" not in (tmp_path / "log").read_text()


def test_the_real_ssh_and_a_silent_port(it: Pushing, silent_port: int) -> None:
    it.use(f"ssh://ada@127.0.0.1:{silent_port}/x.git")
    assert "out of time" in _failure(it, 2).message


def test_the_real_ssh_and_nobody_there(it: Pushing) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    it.use(f"ssh://ada@127.0.0.1:{port}/x.git")
    assert "Connection refused" in _failure(it).message


def test_a_question_is_answered_by_nobody(it: Pushing, tmp_path: Path) -> None:
    """A helper that asks for a passphrase as ssh does: by its asker, else on the terminal."""
    program = tmp_path / "ask"
    program.write_text(
        f'#!/bin/sh\n"$SSH_ASKPASS" "Passphrase:" > {tmp_path}/answer || echo refused >> '
        f"{tmp_path}/answer\nexec < /dev/tty || exit 255\nread x\n"
    )
    program.chmod(0o755)
    _configure(f"[core]\nsshCommand = {program}\n[ssh]\nvariant = ssh\n")
    it.use("ssh://host.invalid/x.git")
    _failure(it)
    assert (tmp_path / "answer").read_text() == "refused\n"


def test_no_argument_list_holds_a_secret(it: Pushing, tmp_path: Path) -> None:
    """What git is started with while it pushes with a password from a helper."""
    it.bare.git("config", "http.receivepack", "true")
    seen = tmp_path / "seen"
    it.bare.hook(
        "pre-receive", f"cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ > {seen} 2>/dev/null; true"
    )
    with https.serving(tmp_path, "git", tmp_path) as server:
        _trust(tmp_path)
        store = tmp_path / "credentials"
        store.write_text(server.url.replace("https://", f"https://{USER}:{PASSWORD}@") + "\n")
        _configure(f"[credential]\nhelper = store --file {store}\n")
        it.use(f"{server.url}/remote.git")
        it.push()
    it.check_pushed()
    assert b"remote-https" in seen.read_bytes()
    assert PASSWORD.encode() not in seen.read_bytes()
    config = subprocess.run(
        ["grep", "-r", PASSWORD, it.layer.paths.store.home], capture_output=True, check=False
    )
    assert config.stdout == b""
