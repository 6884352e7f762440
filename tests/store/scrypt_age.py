"""age messages for a passphrase, written by hand (age-encryption.org/v1): with little work, so that
no test waits seconds for one, and to hold what opens them to the format.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import os

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_CHUNK = 64 * 1024


def seal(document: bytes, passphrase: str, *, work: int = 1) -> bytes:
    """As `age -p`, with 2^work rounds where that takes 2^18."""
    file_key, salt, nonce = os.urandom(16), os.urandom(16), os.urandom(16)
    label = b"age-encryption.org/v1/scrypt" + salt
    wrapping = hashlib.scrypt(passphrase.encode(), salt=label, n=1 << work, r=8, p=1, dklen=32)
    body = ChaCha20Poly1305(wrapping).encrypt(bytes(12), file_key, None)
    head = f"age-encryption.org/v1\n-> scrypt {_text(salt)} {work}\n{_text(body)}\n---".encode()
    mac = hmac.digest(_derive(file_key, b"", b"header"), head, "sha256")
    payload = _payload(ChaCha20Poly1305(_derive(file_key, nonce, b"payload")), document)
    return head + f" {_text(mac)}\n".encode() + nonce + payload


def _payload(cipher: ChaCha20Poly1305, document: bytes) -> bytes:
    parts = [document[at : at + _CHUNK] for at in range(0, len(document), _CHUNK)] or [b""]
    sealed = [
        cipher.encrypt(number.to_bytes(11, "big") + bytes([part is parts[-1]]), part, None)
        for number, part in enumerate(parts)
    ]
    return b"".join(sealed)


def _derive(key: bytes, salt: bytes, info: bytes) -> bytes:
    return HKDF(SHA256(), 32, salt, info).derive(key)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode().rstrip("=")
