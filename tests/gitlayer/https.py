"""An https server with a certificate of its own: git over it, or one of the ways to go wrong."""

from __future__ import annotations

import base64
import datetime as dt
import ipaddress
import os
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

USER, PASSWORD = "ada", "hunter2-secret"


class Server(ThreadingHTTPServer):
    """`mode`: git, or what goes wrong; `log`: what was asked."""

    daemon_threads = True

    def __init__(self, root: Path, mode: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.root = root
        self.mode = mode
        self.log: list[str] = []

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that was killed has closed the connection: nothing to tell."""


class _Handler(BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, *args: object) -> None:  # noqa: ARG002  # the base class's
        self.server.log.append(self.requestline)

    def _serve(self) -> None:
        mode = self.server.mode
        if mode == "silent":
            time.sleep(60)
        elif mode == "trickle":
            self.send_response(200)
            self.end_headers()
            for _ in range(600):
                self.wfile.write(b"x")
                time.sleep(0.1)
        elif mode == "redirect":
            self.send_response(302)
            self.send_header("Location", self.server.url.replace("https", "http") + self.path)
            self.end_headers()
        elif mode.isdigit():
            self._refuse(int(mode))
        elif mode == "html":
            self._answer(200, "text/html", b"<html>Sign in, please</html>")
        elif self._is_known():
            self._run_git()
        else:
            self._refuse(401)

    def _refuse(self, code: int) -> None:
        self.send_response(code)
        if code == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="copies"')
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _is_known(self) -> bool:
        given = self.headers.get("Authorization", "").removeprefix("Basic ")
        return base64.b64decode(given).decode() == f"{USER}:{PASSWORD}"

    def _answer(self, code: int, kind: str, body: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _run_git(self) -> None:
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        env = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self.server.root),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": USER,
        }
        done = subprocess.run(
            ["git", "http-backend"], env=env, input=body, capture_output=True, check=True
        )
        head, _, answer = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        code = int(fields.pop("Status", "200").split(" ")[0])
        self._answer(code, fields["Content-Type"], answer)


@contextmanager
def serving(root: Path, mode: str, folder: Path) -> Iterator[Server]:
    """A server of the repositories below `root`. Its certificate is `folder`/cert.pem."""
    server = Server(root, mode)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificate(folder))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


def _certificate(folder: Path) -> tuple[Path, Path]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    cert = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    cert_file, key_file = folder / "cert.pem", folder / "key.pem"
    cert_file.write_bytes(cert.public_bytes(pem))
    key_file.write_bytes(secret)
    return cert_file, key_file
