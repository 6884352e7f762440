"""Help: every command and option has it, and the commands of the README exist."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import typer.main

from savepoint import __version__
from savepoint.cli import main
from tests.structure.sources import PROJECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.scene import Scene

COMMANDS = {
    *("init", "install", "uninstall", "create", "list", "show", "status", "verify", "fsck"),
    *("resurrect", "bootstrap", "export", "doctor", "config", "sync", "sweep", "worker", "gc"),
}
GROUPS = {
    "keys": {"show", "backup", "restore", "add-recipient", "retire"},
    "ledger": {"status", "balance", "airdrop", "deploy"},
    "proof": {"export", "verify"},
    "succession": {
        *("run", "import", "status", "record", "day", "dusk", "dawn", "briefing", "lineage"),
        *("decree", "decline"),
    },
    "handoff": {
        *("status", "needed", "ready", "verify", "gather", "create", "accept", "go", "thread"),
        *("bind", "import"),
    },
}


def test_version(bare: Scene) -> None:
    assert bare.good("--version").text == f"savepoint {__version__}\n"


def test_without_a_command_help_is_shown_and_it_is_wrong_use(bare: Scene) -> None:
    ran = bare()
    assert (ran.code, ran.out) == (2, b"")
    assert "Usage: savepoint [OPTIONS] COMMAND" in ran.err


def test_every_command_is_there() -> None:
    names = {one.name for one in main.program().registered_commands}
    assert names == COMMANDS
    groups = {
        one.name: {inner.name for inner in one.typer_instance.registered_commands}
        for one in main.program().registered_groups
        if one.typer_instance
    }
    assert groups == GROUPS


def test_a_command_imports_no_other() -> None:
    asked = (
        "import sys; from savepoint.cli import main; main.run(['list', '-h']); print(*sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    ours = {one for one in ran.stdout.split() if one.startswith("savepoint.cli.")}
    commands = {f"savepoint.cli.{one.rpartition('.')[0]}" for one in main.COMMANDS.values()}
    assert ours & commands == {"savepoint.cli.view.list"}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_and_option_has_help(bare: Scene, name: str) -> None:
    text = bare.good(name, "--help").text
    assert bare.good(name, "-h").text == text
    group: Any = typer.main.get_command(main.program(name))
    command = group.commands[name]
    assert len(command.help.splitlines()[0]) < 100
    assert [one.name for one in command.params if not getattr(one, "help", "")] == []
    assert "-C, --project DIR" in text
    assert "--json" in text


@pytest.mark.parametrize("group", sorted(GROUPS))
def test_every_command_of_a_group_has_help(bare: Scene, group: str) -> None:
    whole: Any = typer.main.get_command(main.program(group))
    for names, command in _inner((group,), whole.commands[group]):
        text = bare.good(*names, "--help").text
        assert bare.good(*names, "-h").text == text
        assert "--json" in text, names
        assert [one.name for one in command.params if not getattr(one, "help", "")] == [], names


def _inner(names: tuple[str, ...], group: Any) -> Iterator[tuple[tuple[str, ...], Any]]:  # noqa: ANN401
    """The commands below a group, and groups that are commands themselves, by all their names."""
    for name, one in group.commands.items():
        inner = (*names, name)
        if hasattr(one, "commands"):
            yield from _inner(inner, one)
        if getattr(one, "invoke_without_command", True):
            yield inner, one


_NESTED = [("handoff", one) for one in ("offer", "item", "hold", "action")]


@pytest.mark.parametrize("group", [(), *((name,) for name in sorted(GROUPS)), *_NESTED])
def test_short_help_is_whole(bare: Scene, group: tuple[str, ...]) -> None:
    assert "..." not in bare.good(*group, "--help").text.replace("[ARGS]...", "")


# What the README shows exists


def _examples(text: str) -> list[list[str]]:
    """The command lines that start with `savepoint ` in the code blocks."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    lines = [line.strip().removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [shlex.split(line, comments=True) for line in lines if line.startswith("savepoint ")]


def test_commands_of_the_readme_exist(bare: Scene) -> None:
    examples = _examples((PROJECT / "README.md").read_text(encoding="utf-8"))
    assert len(examples) > 3
    for _, name, *rest in examples:
        inner = [rest.pop(0)] if name in GROUPS else []
        assert name in COMMANDS or set(inner) & GROUPS.get(name, set())
        known = bare.good(name, *inner, "--help").text
        for word in rest:
            if word.startswith("-"):
                assert re.search(rf"(^|[ ,]){re.escape(word)}[ ,\n]", known), (name, word)


def test_examples_are_found() -> None:
    text = "savepoint no\n```sh\nsavepoint a --b   # c\n$ savepoint d 'e f'\nother g\n```\n"
    assert _examples(text) == [["savepoint", "a", "--b"], ["savepoint", "d", "e f"]]
