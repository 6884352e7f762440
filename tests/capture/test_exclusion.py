"""What is never captured as a file, under whatever spelling."""

from __future__ import annotations

import fnmatch
import json
import re
import subprocess
import time
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from savepoint.capture.exclusion import Exclusion, key_reason

if TYPE_CHECKING:
    from pathlib import Path

PLAIN = Exclusion("/p")


@pytest.mark.parametrize(
    "path",
    [
        "IDENTITY.md",
        "docs/identity.MD",
        "BOOTSTRAP_VERIFICATION.json",
        "logs/bootstrap_verification.json",
        "legal_case/letter.txt",
        "a/b/Legal_Case/c/d.pdf",
    ],
)
def test_what_the_specification_names(path: str) -> None:
    assert PLAIN.reason(path) == "is never captured as a file"


@pytest.mark.parametrize("path", [".env", ".env.local", "app/.ENV.production", ".envrc", ".env/x"])
def test_environment_files(path: str) -> None:
    assert PLAIN.reason(path) == "is an environment file"


@pytest.mark.parametrize(
    "path",
    [
        "server.pem",
        "tls/server.KEY",
        "id_rsa",
        "id_rsa.bak",
        "x/id_ed25519",
        "store.p12",
        "store.pfx",
        "android.keystore",
        "target/deploy/program-keypair.json",
        "payer_keypair.json",
        "age-identity.txt",
        "root.seed",
        ".netrc",
        ".git-credentials",
    ],
)
def test_key_files_by_name(path: str) -> None:
    assert PLAIN.reason(path) == "is a key file"


@pytest.mark.parametrize(
    "path",
    [
        "",
        "/p",
        "README.md",
        "src/identity.py",
        "src/env.py",
        "environment.yml",
        "keys.py",
        "monkey",
        "legal_cases.md",
        "my.envelope",
        "keypair.py",
        "src/key/reader.py",
    ],
)
def test_what_may_be_captured(path: str) -> None:
    assert PLAIN.reason(path) is None


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.secret", "deep/down/a.secret"),
        ("*.secret", "A.SECRET/inside"),
        ("notes", "notes/a/b"),
        ("/data", "data/x"),
        ("private/*.txt", "x/private/a.txt"),
        ("a/**/z", "a/b/c/z"),
        ("a/**/z", "a/z"),
        ("**/deep", "deep"),
        ("file?", "file1"),
        ("[ab]x", "bx"),
        ("[!a]x", "bx"),
        ("[]]x", "]x"),
        ("a[b", "a[b"),
        ("a+(b)", "a+(b)"),
    ],
)
def test_globs_of_the_config(glob: str, path: str) -> None:
    reason = Exclusion("/p", [glob]).reason(path)
    assert reason == f"is excluded by the config: {glob}"


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("*.secret", "a.secrets"),
        ("/data", "x/data"),
        ("private/*.txt", "private/a/b.txt"),
        ("file?", "file12"),
        ("[ab]x", "cx"),
        ("a.c", "abc"),
        ("[z-a]", "m"),
        ("x[!a]y", "x/y"),
        ("", "a"),
        ("/", "a"),
    ],
)
def test_globs_match_no_more_than_they_say(glob: str, path: str) -> None:
    assert Exclusion("/p", [glob]).reason(path) is None


@pytest.mark.parametrize(
    "glob",
    [
        "*a" * 15 + "b",
        "**a" * 15 + "b",
        "**/a*" * 15 + "/b",
        "/" + "*a*/**/" * 10 + "b",
        "*" + "?" * 50 + "*b",
        "**[ab]**[ab]**[ab]**[ab]/*a*a*a*c",
    ],
)
def test_no_glob_takes_long_to_say_no(glob: str) -> None:
    """A glob whose expression tries every way of sharing out a's hung `create` for hours, and took
    the hook all its time at every fire.
    """
    rules = Exclusion("/p", [glob])
    begun = time.process_time()
    for path in ("a" * 120, "/".join(["a" * 120] * 8), "a/" * 1000 + "a"):
        assert rules.reason(path) is None
    assert time.process_time() - begun < 1


@given(
    glob=st.text(alphabet="ab/*?", max_size=12) | st.text(alphabet="a/*?[!]", max_size=10),
    path=st.text(alphabet="ab/", min_size=1, max_size=14).filter(lambda path: path.strip("/")),
)
@settings(max_examples=1500, deadline=None)
def test_a_glob_matches_what_it_says(glob: str, path: str) -> None:
    """As the expression that says the same, and may take for ever."""
    path = "/".join(filter(None, path.split("/")))
    wanted = bool(glob.strip("/")) and plain(glob).search(path) is not None
    assert (Exclusion("/p", [glob]).reason(path) is not None) is wanted


def plain(glob: str) -> re.Pattern[str]:
    """The glob, each piece of it by itself."""

    def piece(token: str) -> str:
        if token in WILD:
            return WILD[token]
        if len(token) == 1:
            return re.escape(token)
        return "(?!/)" + fnmatch.translate(token).removesuffix(r"\Z")

    tokens = re.findall(r"\*\*/|\*\*|\*|\?|\[!?\]?[^]]*\]|.", glob.strip("/"))
    start = r"\A" if glob.startswith("/") else r"(?:\A|/)"
    return re.compile(f"{start}{''.join(map(piece, tokens))}(?=/|\\Z)")


WILD = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


def test_names_above_the_project_do_not_count() -> None:
    """A project may itself lie in a folder called legal_case."""
    inside = Exclusion("/srv/legal_case/p")
    assert inside.reason("src/a.py") is None
    assert inside.reason("/srv/legal_case/p/src/a.py") is None
    assert inside.moved("/srv/legal_case/other").reason("a.py") is None
    assert inside.reason("/srv/legal_case/other/a.py") is not None


def test_absolute_and_winding_paths_are_the_same_file() -> None:
    rules = Exclusion("/p", ["/data"])
    for path in ("/p/data/x", "src/../data/x", "/q/../p/./data/x", b"data/x", b"/p/data/x"):
        assert rules.reason(path) == "is excluded by the config: /data"


def test_our_own_folder_is_left_out_wherever_it_is() -> None:
    """A home folder may be the project, with keys and stores below it."""
    rules = Exclusion("/home/ada", [], "/home/ada/.savepoint")
    for path in (".savepoint", ".savepoint/keys/x/root.seed", "/home/ada/.Savepoint/stores.json"):
        assert rules.reason(path) == "belongs to savepoint"
    assert rules.reason(".savepoint2/x") is None
    assert rules.moved("/home").reason("ada/.savepoint/x") == "belongs to savepoint"


def test_our_own_folder_reached_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    rules = Exclusion(str(tmp_path), [], str(tmp_path / "link"))
    assert rules.reason("real/keys/x") == "belongs to savepoint"


def test_moved_keeps_the_globs() -> None:
    assert Exclusion("/p", ["/data", "*.x"]).moved("/q").reason("/q/data/y") is not None


@given(
    path=st.text() | st.binary(),
    globs=st.lists(st.text(alphabet="ab/*?[]!-^\\{}()+.|&~ \n")),
)
def test_no_name_and_no_glob_fails(path: str | bytes, globs: list[str]) -> None:
    Exclusion("/p", globs, "/home").reason(_possible(path))


def _possible(path: str | bytes) -> str | bytes:
    """As a file system can give it: no lone surrogates but those that stand for bytes."""
    return path if isinstance(path, bytes) else path.encode("utf-8", "replace").decode()


def test_keys_by_content(tmp_path: Path) -> None:
    made = []
    for kind in ("rsa", "ed25519"):
        file = tmp_path / kind
        command = ["ssh-keygen", "-q", "-t", kind, "-N", "", "-f", str(file)]
        subprocess.run(command, check=True, capture_output=True, timeout=180)
        made.append(file.read_bytes())
    made += [
        b"-----BEGIN PRIVATE KEY-----\nMC4CAQAw",
        b"\n-----BEGIN ENCRYPTED PRIVATE KEY-----\n",
        b"-----BEGIN PGP PRIVATE KEY BLOCK-----\n",
        b"# created: 2026-11-30T13:26:49Z\n# public key: age1x\nAGE-SECRET-KEY-1QQQ\n",
        b"PuTTY-User-Key-File-3: ssh-ed25519\n",
        json.dumps([7] * 64).encode(),
        json.dumps([255] * 64, indent=2).encode() + b"\n",
    ]
    for content in made:
        assert key_reason(content) == "holds a private key"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"#",
        b"# only a comment",
        b"[",
        b"[]",
        b"-----BEGIN CERTIFICATE-----\nMIID",
        b"-----BEGIN PUBLIC KEY-----\nMCow",
        b'text = """\n-----BEGIN PRIVATE KEY-----\n"""\n',
        json.dumps([7] * 63).encode(),
        json.dumps([7] * 65).encode(),
        json.dumps(["7"] * 64).encode(),
    ],
)
def test_content_that_is_no_key(content: bytes) -> None:
    assert key_reason(content) is None
