"""Imports point one way (CONTRIBUTING.md), and core imports nothing that can act."""

from __future__ import annotations

import ast

import pytest

from tests.structure.sources import PACKAGES, Source, imported, sources, walked

# What each unit may import, and itself. A unit is a package or module directly below `savepoint`,
# or one of the other packages as a whole. gitcmd, the one way to run git, is a leaf at the side.
_BELOW_SAVE = {"capture", "gitlayer", "store", "core"}
_BELOW_HOOK = {"events", "resurrect", "work", "anchor_service", "succession", "save", *_BELOW_SAVE}
_ALLOWED = {
    "core": set[str](),
    "store": {"core"},
    "gitcmd": {"core"},
    "capture": {"store", "core", "gitcmd"},
    "gitlayer": {"store", "core", "gitcmd"},
    "save": _BELOW_SAVE,
    "resurrect": {"save", *_BELOW_SAVE},
    "work": {"save", "gitcmd", *_BELOW_SAVE},
    "anchor_service": {"save", *_BELOW_SAVE},
    "events": {"work", "succession", "save", *_BELOW_SAVE},
    "succession": {"capture", "store", "core"},
    "hook": _BELOW_HOOK,
    "cli": {"gitcmd", *_BELOW_HOOK},
}

# core takes bytes and returns values. What reaches a file, a socket, a clock, a process, the
# environment or chance is not there to be called.
_BANNED_IN_CORE = {
    *("_io", "glob", "io", "mmap", "nt", "os", "pathlib", "posix", "shelve", "shutil", "sqlite3"),
    *("ftplib", "http", "httpx", "select", "selectors", "smtplib", "socket", "ssl", "urllib"),
    *("datetime", "locale", "random", "secrets", "tempfile", "time", "uuid", "zoneinfo"),
    *("asyncio", "concurrent", "multiprocessing", "sched", "signal", "subprocess", "threading"),
    *("builtins", "ctypes", "fcntl", "getpass", "importlib", "logging", "platform", "resource"),
    *("runpy", "site", "sys"),
}
_BANNED_CALLS_IN_CORE = {"open", "__import__", "exec", "eval", "compile", "input", "print"}


def _unit(module: str) -> str | None:
    """The unit that a dotted name belongs to; None for foreign ones, "" for `savepoint` itself."""
    package, _, rest = module.partition(".")
    if package != "savepoint":
        return package if package in PACKAGES else None
    return rest.partition(".")[0]


def wrong_imports(source: Source) -> list[str]:
    """What this module imports against the arrows."""
    own = _unit(source.module)
    allowed = _ALLOWED.get(own or "", set())
    found = [(line, name, _unit(name)) for line, name in imported(source)]
    return [
        f"{source.path}:{line}: {own or 'savepoint'} may not import {name}"
        for line, name, unit in found
        if unit in _ALLOWED and unit not in allowed | {own}
    ]


def effects_in_core(source: Source) -> list[str]:
    """Imports and calls through which core would touch the world."""
    names = [(line, name) for line, name in imported(source)]
    found = [(line, name) for line, name in names if name.partition(".")[0] in _BANNED_IN_CORE]
    found += [
        (node.lineno, node.func.id)
        for node in walked(source.tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in _BANNED_CALLS_IN_CORE
    ]
    return [f"{source.path}:{line}: core may not use {name}" for line, name in found]


def test_every_unit_has_its_place() -> None:
    units = {_unit(source.module) for source in sources()} - {""}
    assert units <= set(_ALLOWED), "give the new unit its place in the layers"
    assert {"core", "store"} <= units


def test_imports_point_one_way() -> None:
    assert [line for source in sources() for line in wrong_imports(source)] == []


def test_core_cannot_act() -> None:
    core = [source for source in sources() if _unit(source.module) == "core"]
    assert core
    assert [line for source in core for line in effects_in_core(source)] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("savepoint/core/a.py", "from savepoint.store import durable"),
        ("savepoint/core/a.py", "import savepoint.store.durable"),
        ("savepoint/core/a.py", "from savepoint import store"),
        ("savepoint/core/a.py", "from ..store import durable"),
        ("savepoint/core/__init__.py", "from ..store import durable"),
        ("savepoint/core/a.py", "def f():\n    from savepoint.store import durable"),
        ("savepoint/core/a.py", "from savepoint import gitcmd"),
        ("savepoint/store/a.py", "from savepoint import gitcmd"),
        ("savepoint/store/a.py", "from savepoint.save import save_consciousness_state"),
        ("savepoint/capture/a.py", "from savepoint.gitlayer import commit"),
        ("savepoint/gitcmd.py", "from savepoint.store import durable"),
        ("savepoint/save.py", "from savepoint import hook"),
        ("savepoint/save.py", "from savepoint import gitcmd"),
        ("savepoint/hook.py", "from savepoint.cli import main"),
        ("savepoint/cli/a.py", "from savepoint import hook"),
        ("savepoint/work/a.py", "from anchor_service import rpc"),
        ("savepoint/resurrect/a.py", "import succession.dynasty"),
        ("succession/a.py", "from savepoint import save"),
        ("savepoint/__init__.py", "from savepoint import save"),
    ],
)
def test_import_against_the_arrows_is_found(path: str, text: str) -> None:
    assert len(wrong_imports(Source.of(path, text))) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("savepoint/core/a.py", "import hashlib\nfrom savepoint.core import b\nfrom . import c"),
        ("savepoint/core/a.py", "from savepoint import __version__"),
        ("savepoint/capture/a.py", "from savepoint import gitcmd"),
        ("savepoint/capture/agents/a.py", "from ..state import b"),
        ("savepoint/hook.py", "from savepoint import save"),
        ("savepoint/cli/a.py", "from succession import dynasty\nimport anchor_service"),
        ("succession/handoff/a.py", "from savepoint.store import durable"),
    ],
)
def test_import_along_the_arrows_is_fine(path: str, text: str) -> None:
    assert wrong_imports(Source.of(path, text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "import os",
        "import os.path",
        "from os import path",
        "def f():\n    import time",
        "import urllib.request",
        "open('x')",
        "__import__('os')",
    ],
)
def test_effect_in_core_is_found(text: str) -> None:
    assert len(effects_in_core(Source.of("savepoint/core/a.py", text))) == 1


def test_pure_code_is_fine_in_core() -> None:
    text = "import hashlib, json, re\nre.compile('x')\nself.open(1)\n"
    assert effects_in_core(Source.of("savepoint/core/a.py", text)) == []
