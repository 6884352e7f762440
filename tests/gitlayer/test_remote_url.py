"""Which remotes there may be, and that none carries a secret into an error."""

from __future__ import annotations

import pytest

from savepoint.core.errors import UsageError
from savepoint.gitlayer.remote import remote_url

_SECRET = "hunter2-secret"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("/srv/copies/x.git", "path"),
        ("/srv/with blank/ü:x.git", "path"),
        ("file:///srv/x.git", "file"),
        ("ssh://git@example.org/x.git", "ssh"),
        ("ssh://git@example.org:2222/~/x.git", "ssh"),
        ("ssh://[2001:db8::1]:22/x.git", "ssh"),
        ("git@example.org:team/x.git", "ssh"),
        ("example:x.git", "ssh"),
        ("[::1]:x.git", "ssh"),
        ("https://example.org/x.git", "https"),
        ("https://ada@example.org:8443/x.git", "https"),
    ],
)
def test_a_remote_is_a_path_or_speaks_ssh_or_https(text: str, kind: str) -> None:
    assert remote_url.parse(text, "/p") == (text, kind)


@pytest.mark.parametrize(
    ("text", "path"),
    [("../x.git", "/x.git"), ("x.git", "/p/x.git"), ("./a:b", "/p/a:b"), ("a/b:c", "/p/a/b:c")],
)
def test_a_relative_path_starts_where_the_owner_is(text: str, path: str) -> None:
    assert remote_url.parse(text, "/p") == (path, "path")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x" * 3000,
        "http://example.org/x.git",
        "HTTP://example.org/x.git",
        "git://example.org/x.git",
        "ftp://example.org/x.git",
        "ext::sh -c touch% MARK",
        "ext::https://example.org/x.git",
        "fd::7",
        "::x",
        "--upload-pack=touch MARK",
        "-x:y",
        "ssh://-oProxyCommand=touch/x.git",
        "ssh://git@-oProxyCommand=touch/x.git",
        "ssh://-oProxyCommand=touch@example.org/x.git",
        "git@-oProxyCommand=touch:x.git",
        "example.org:-x",
        "ssh://example.org",
        "https:///x.git",
        "https://a@b@example.org/x.git",
        "file://host/x.git",
        "file://x.git",
        "~/x.git",
        "/srv/x\n.git",
        "/srv/x\x1b[31m.git",
        "https://example.org/%0ahost=evil",
        "https://example.org/x\x00.git",
        "/srv/\u202ex.git",
        "/srv/\udcff.git",
    ],
)
def test_what_runs_a_program_or_speaks_in_the_clear_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        remote_url.parse(text, "/p")


@pytest.mark.parametrize(
    "text",
    [
        f"https://ada:{_SECRET}@example.org/x.git",
        f"https://:{_SECRET}@example.org/x.git",
        f"ssh://ada:{_SECRET}@example.org/x.git",
        f"http://{_SECRET}@example.org/x.git",
        f"https://ada:{_SECRET}@example.org",
        f"ext::{_SECRET}",
        f"https:/ada:{_SECRET}@example.org/x.git",
        f"https:/{_SECRET}@example.org/x.git",
        f"ada:{_SECRET}@example.org:x.git",
    ],
)
def test_no_refusal_repeats_a_secret(text: str) -> None:
    with pytest.raises(UsageError) as refused:
        remote_url.parse(text, "/p")
    assert _SECRET not in refused.value.message + refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        f"https://{_SECRET}@example.org/x.git",
        f"https://example.org/x.git?token={_SECRET}",
        f"https://ada b@example.org/x.git?a=b c&token={_SECRET}",
        f"https://example.org/x.git#{_SECRET}?x",
    ],
)
def test_a_user_and_a_query_are_not_shown(text: str) -> None:
    assert remote_url.parse(text, "/p").shown == "https://example.org/x.git"
    said = f"fatal: unable to access '{text}/info/refs': it answers not"
    told = remote_url.without_secrets(said)
    assert told.endswith("': it answers not")
    assert _SECRET not in told


def test_the_user_of_a_web_address_is_in_no_argument() -> None:
    url = remote_url.parse(f"https://{_SECRET}%40a@example.org:8443/x.git", "/p")
    assert url.address == "https://example.org:8443/x.git"
    assert url.settings == {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "credential.https://example.org:8443.username",
        "GIT_CONFIG_VALUE_0": f"{_SECRET}@a",
    }
    for text in ("git@example.org:x.git", "ssh://git@example.org/x.git", "/srv/a@b.git"):
        url = remote_url.parse(text, "/p")
        assert (url.address, url.shown, url.settings) == (text, text, {})
