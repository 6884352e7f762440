"""Only store/durable.py writes files; libraries do not print, exit or read the environment."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest

from tests.structure.sources import Source, imported, sources, walked

if TYPE_CHECKING:
    from collections.abc import Iterator

_DURABLE = "savepoint/store/durable.py"

# Module → what it may use against the rule below, each with its reason.
_EXCEPTIONS: dict[str, dict[str, str]] = {
    "savepoint/store/locks.py": {
        "os.O_CREAT": "a lock file holds no data; there is nothing in it to make durable",
        "os.O_RDWR": "as O_CREAT",
    },
    "savepoint/gitcmd.py": {"os.write": "to a pipe: what git reads on its standard input"},
    "savepoint/hook.py": {"os.write": "to stderr, where no log can be written"},
    "savepoint/work/start.py": {"os.O_WRONLY": "the null device, for a worker without a terminal"},
    "savepoint/store/sqlite_file.py": {
        "sqlite3": "what is tried, signed and sent, and a ledger: SQLite makes its files durable",
        "sqlite3.connect": "as sqlite3",
        "sqlite3.Connection": "as sqlite3",
        "sqlite3.Error": "as sqlite3",
        "sqlite3.SQLITE_BUSY": "as sqlite3",
        "sqlite3.SQLITE_LOCKED": "as sqlite3",
        "sqlite3.SQLITE_CORRUPT": "as sqlite3",
        "sqlite3.SQLITE_NOTADB": "as sqlite3",
        "os.chmod": "of the file that SQLite made",
    },
    "savepoint/store/outbox_file.py": {
        "sqlite3": "types and failures: sqlite_file.py is where it is opened",
        "sqlite3.Connection": "as sqlite3",
        "sqlite3.Error": "as sqlite3",
    },
    "savepoint/cli/agent/statusline.py": {
        "os.write": "to stdout, which starts faster than a terminal's library",
        "os.O_WRONLY": "the null device, for a command that does not read",
    },
    "anchor_service/ledgers/database.py": {
        "sqlite3": "as in outbox_file.py",
        "sqlite3.Connection": "as sqlite3",
        "sqlite3.Error": "as sqlite3",
    },
    "anchor_service/ledgers/embedded.py": {
        "sqlite3": "a type: database.py is where it is used",
        "sqlite3.Connection": "as sqlite3",
    },
}

_OS_WRITES = {
    *("O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"),
    *("write", "writev", "pwrite", "pwritev", "truncate", "ftruncate", "posix_fallocate"),
    *("copy_file_range", "sendfile", "splice", "fsync", "fdatasync", "sync"),
    *("rename", "renames", "replace", "link", "symlink", "unlink", "remove", "rmdir", "removedirs"),
    *("mkdir", "makedirs", "mkfifo", "mknod", "chmod", "fchmod", "lchmod", "chown", "utime"),
    *("setxattr", "removexattr"),
}
_WRITING_MODULES = {"dbm", "mmap", "shelve", "shutil", "sqlite3", "tempfile"}
_PATH_WRITES = {
    *("write_text", "write_bytes", "touch", "symlink_to", "hardlink_to", "rename", "unlink"),
    *("mkdir", "rmdir", "chmod"),
}

_OS_OF_PROGRAMS = {"environ", "environb", "getenv", "getenvb", "putenv", "_exit", "abort"}
_SYS_OF_PROGRAMS = {"argv", "exit", "stdin", "stdout", "stderr"}
_NAMES_OF_PROGRAMS = {"print", "input", "exit", "quit", "SystemExit"}


def writes(source: Source) -> list[str]:
    """Every way in which this module could change a file."""
    found = [
        (line, name)
        for line, name in _mentioned(source)
        if name.partition(".")[0] in _WRITING_MODULES or name in {f"os.{n}" for n in _OS_WRITES}
    ]
    found += [
        (call.lineno, ast.unparse(call.func))
        for call in walked(source.tree)
        if isinstance(call, ast.Call) and (_opens_to_write(call) or _is_path_write(call))
    ]
    return _report(source, found, "changes files: that is for store/durable.py alone")


def acts_as_a_program(source: Source) -> list[str]:
    """Printing, exiting, reading arguments or the environment."""
    names = {f"os.{n}" for n in _OS_OF_PROGRAMS} | {f"sys.{n}" for n in _SYS_OF_PROGRAMS}
    found = [(line, name) for line, name in _mentioned(source) if name in names]
    found += [
        (node.lineno, node.id)
        for node in walked(source.tree)
        if isinstance(node, ast.Name) and node.id in _NAMES_OF_PROGRAMS
    ]
    return _report(source, found, "is for hook.py and cli/, which pass values down")


def _mentioned(source: Source) -> Iterator[tuple[int, str]]:
    """Line and name of each `module.member` that is used or imported."""
    yield from imported(source)
    for node in walked(source.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            yield node.lineno, f"{node.value.id}.{node.attr}"


def _opens_to_write(call: ast.Call) -> bool:
    """`open(path, mode)` or `path.open(mode)`, unless the mode is seen to read only."""
    function = ast.unparse(call.func)
    if function == "os.open":  # told by its flags
        return False
    if function in {"open", "io.open", "os.fdopen"}:
        modes = call.args[1:2]
    elif function.endswith(".open"):
        modes = call.args[:1]
    else:
        return False
    modes += [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
    return any(not isinstance(m, ast.Constant) or set("wax+") & set(str(m.value)) for m in modes)


def _is_path_write(call: ast.Call) -> bool:
    """A method as pathlib.Path has it; os is looked at above, and durable is what is meant."""
    function = call.func
    if not isinstance(function, ast.Attribute) or ast.unparse(function.value) in {"os", "durable"}:
        return False
    return function.attr in _PATH_WRITES


def _report(source: Source, found: list[tuple[int, str]], rule: str) -> list[str]:
    allowed = _EXCEPTIONS.get(source.path, {})
    return [f"{source.path}:{line}: {name} {rule}" for line, name in found if name not in allowed]


def _is_program(source: Source) -> bool:
    return source.path == "savepoint/hook.py" or source.path.startswith("savepoint/cli/")


def test_only_durable_changes_files() -> None:
    others = [source for source in sources() if source.path != _DURABLE]
    assert [line for source in others for line in writes(source)] == []


def test_durable_is_seen_to_change_files() -> None:
    durable = next(source for source in sources() if source.path == _DURABLE)
    assert len(writes(durable)) > 3


def test_libraries_are_no_programs() -> None:
    libraries = [source for source in sources() if not _is_program(source)]
    assert [line for source in libraries for line in acts_as_a_program(source)] == []


def test_exceptions_are_needed() -> None:
    by_path = {source.path: source for source in sources()}
    for path, names in _EXCEPTIONS.items():
        mentioned = {name for _, name in _mentioned(by_path[path])}
        assert set(names) <= mentioned, f"{path} has become better than its exceptions"


@pytest.mark.parametrize(
    "text",
    [
        "open(path, 'w')",
        "open(path, mode='ab')",
        "open(path, mode)",
        "os.fdopen(fd, 'r+')",
        "path.open('x')",
        "os.open(path, os.O_RDONLY | os.O_CREAT)",
        "flags = os.O_WRONLY",
        "os.write(fd, data)",
        "os.replace(a, b)",
        "from os import fsync",
        "import shutil",
        "from tempfile import mkstemp",
        "def f():\n    import sqlite3",
        "path.write_bytes(data)",
        "path.unlink()",
    ],
)
def test_change_of_files_is_found(text: str) -> None:
    assert len(writes(Source.of("savepoint/capture/a.py", text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "open(path)",
        "open(path, 'rb')",
        "path.open()",
        "os.open(path, os.O_RDONLY | os.O_NOFOLLOW)",
        "text.replace('a', 'b')",
        "durable.replace(path, data)",
        "durable.mkdir(path)",
    ],
)
def test_reading_is_fine(text: str) -> None:
    assert writes(Source.of("savepoint/capture/a.py", text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "print('x')",
        "import sys\nsys.exit(1)",
        "raise SystemExit(1)",
        "import os\nos.environ['HOME']",
        "from os import getenv",
        "import sys\nsys.stderr.write('x')",
    ],
)
def test_program_in_a_library_is_found(text: str) -> None:
    assert len(acts_as_a_program(Source.of("savepoint/store/a.py", text))) == 1
