"""Which cluster a choice means: the public ones by name and genesis hash, others by their URLs."""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from savepoint.core import limits
from savepoint.core.errors import UsageError
from savepoint.core.named import NamedTuple
from savepoint.core.spelling import key_bytes
from savepoint.store.config import MAINNET

if TYPE_CHECKING:
    from urllib.parse import SplitResult

PUBLIC = {
    key_bytes("EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG"): "devnet",
    key_bytes("4uhcVJyU9pJkvQyS88uRDiswHXSGkY3zQawwpTk2NsNY"): "testnet",
    key_bytes("5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"): MAINNET,
}
_BY_NAME = {
    "localnet": "http://127.0.0.1:8899",
    "devnet": "https://api.devnet.solana.com",
    "testnet": "https://api.testnet.solana.com",
    MAINNET: "https://api.mainnet-beta.solana.com",
}


class Address(NamedTuple):
    """One endpoint. Its path and query may hold a key, as its user and password do."""

    origin: str  # scheme, host and port: what may be shown
    url: str  # without user and password
    user: str
    password: str

    def __repr__(self) -> str:
        return f"Address({self.origin})"


class Cluster(NamedTuple):
    """What the owner chose."""

    name: str  # as chosen, or the origins of the URLs
    genesis: bytes | None  # what it must be; None: any
    addresses: tuple[Address, ...]


def cluster(choice: str) -> Cluster:
    """The cluster of a name, or of URLs joined by one blank. Raises UsageError."""
    genesis = {name: genesis for genesis, name in PUBLIC.items()}.get(choice)
    if choice in _BY_NAME:
        return Cluster(choice, genesis, (_address(_BY_NAME[choice]),))
    addresses = tuple(_address(url) for url in choice.split(" "))
    if len(addresses) > limits.LEDGER_ENDPOINTS:
        raise UsageError(f"at most {limits.LEDGER_ENDPOINTS} endpoints of a ledger")
    return Cluster(" ".join(one.origin for one in addresses), None, addresses)


def _address(url: str) -> Address:
    """Only https, except to this machine: elsewhere whoever is on the way could answer instead."""
    parts = _split(url)
    host = parts.hostname or ""
    if parts.scheme == "http" and not _is_loopback(host):
        raise UsageError(f"http://{host}: only https, except to this machine")
    shown = f"[{host}]" if ":" in host else host
    origin = f"{parts.scheme}://{shown}" + (f":{parts.port}" if parts.port else "")
    rest = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Address(
        origin, origin + rest, unquote(parts.username or ""), unquote(parts.password or "")
    )


def _split(url: str) -> SplitResult:
    """Nothing of the URL is repeated in the error: it may hold a key."""
    wrong = UsageError(
        "a ledger is embedded, localnet, devnet, testnet, mainnet-beta or an http(s) URL"
    )
    if len(url) > limits.LEDGER_URL_CHARS or not url.isascii() or not url.isprintable():
        raise wrong
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0 or parts.fragment:
        raise wrong
    return parts


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
