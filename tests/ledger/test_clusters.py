"""Which choices there are, and what is shown of a URL."""

from __future__ import annotations

import pytest

from anchor_service.ledgers.clusters import PUBLIC, cluster
from savepoint.core import limits
from savepoint.core.errors import UsageError
from savepoint.core.spelling import base58


@pytest.mark.parametrize(
    ("name", "url", "genesis"),
    [
        ("localnet", "http://127.0.0.1:8899/", None),
        (
            "devnet",
            "https://api.devnet.solana.com/",
            "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG",
        ),
        (
            "testnet",
            "https://api.testnet.solana.com/",
            "4uhcVJyU9pJkvQyS88uRDiswHXSGkY3zQawwpTk2NsNY",
        ),
        (
            "mainnet-beta",
            "https://api.mainnet-beta.solana.com/",
            "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d",
        ),
    ],
)
def test_a_name_is_an_endpoint_and_a_genesis(name: str, url: str, genesis: str | None) -> None:
    found = cluster(name)
    assert found.name == name
    assert [one.url for one in found.addresses] == [url]
    assert (found.genesis and base58(found.genesis)) == genesis
    assert found.genesis is None or PUBLIC[found.genesis] == name


@pytest.mark.parametrize(
    ("url", "shown", "asked"),
    [
        ("https://rpc.example", "https://rpc.example", "https://rpc.example/"),
        (
            "https://a:b@rpc.example:8000/v2/k?x=y",
            "https://rpc.example:8000",
            "https://rpc.example:8000/v2/k?x=y",
        ),
        ("http://localhost:9/", "http://localhost:9", "http://localhost:9/"),
        ("http://127.3.2.1", "http://127.3.2.1", "http://127.3.2.1/"),
        ("http://[::1]:9", "http://[::1]:9", "http://[::1]:9/"),
    ],
)
def test_a_url_is_shown_without_what_may_be_a_key(url: str, shown: str, asked: str) -> None:
    found = cluster(url)
    (address,) = found.addresses
    assert (found.name, found.genesis) == (shown, None)
    assert address.url == asked
    assert repr(address) == f"Address({shown})"
    assert cluster(f"{url} https://other.example").name == f"{shown} https://other.example"


@pytest.mark.parametrize(
    "choice",
    [
        "",
        "mainnet",
        "Devnet",
        "ftp://rpc.example",
        "https://",
        "https:///path",
        "https://rpc.example:0",
        "https://rpc.example:99999",
        "https://rpc.example/#part",
        "https://rpc.example\n",
        "https://rpc.example  https://other.example",
        "https://é.example",
        "https://[::1",
        "https://rpc.example/" + "x" * limits.LEDGER_URL_CHARS,
        "http://rpc.example",
        "http://10.0.0.1",
        "http://127.0.0.1.example",
        "http://[::2]",
        " ".join(["https://rpc.example"] * (limits.LEDGER_ENDPOINTS + 1)),
    ],
)
def test_anything_else_is_refused(choice: str) -> None:
    with pytest.raises(UsageError):
        cluster(choice)


def test_a_refusal_does_not_repeat_a_key() -> None:
    for url in ("http://ada:secret@rpc.example/secret", "ftp://secret@x/secret"):
        with pytest.raises(UsageError) as refused:
            cluster(url)
        assert "secret" not in str(refused.value)
