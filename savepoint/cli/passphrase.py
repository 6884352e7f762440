"""The passphrase of a backup: from a file that only its owner can read, or typed at a terminal.

Never from an argument, which everybody on the machine can read, or from the environment, which
every child inherits.
"""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Annotated, TypeAlias

from savepoint.cli import options
from savepoint.core import limits
from savepoint.core.errors import KeyFileError, UsageError
from savepoint.store.keys import keyring

if TYPE_CHECKING:
    from collections.abc import Callable

File: TypeAlias = Annotated[
    str,
    options.value(
        "--passphrase-file",
        "FILE",
        "Its one line is the passphrase; nobody else may read it.",
        "asked for",
    ),
]


def get(file: str, *, twice: bool) -> str:
    """The passphrase that `file` holds, or that somebody types, `twice` where none can be checked.

    Raises UsageError, KeyFileError (others can read the file, or it holds no passphrase).
    """
    if file:
        return _from_file(file)
    typed = _ask("Passphrase of the backup: ")
    if not typed:
        raise UsageError("the passphrase is empty", hint="a backup needs one")
    if twice and _ask("The same once more: ") != typed:
        raise UsageError("the two passphrases differ", hint="try again; nothing was written")
    return typed


def _from_file(path: str) -> str:
    if not os.path.lexists(path):
        raise UsageError(f"there is no file {path}", hint="--passphrase-file names it")
    data = keyring.read_private(os.path.realpath(path), limits.PASSPHRASE_BYTES + 1)
    try:
        line = data.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        line = ""
    if not line or "\n" in line or len(data) > limits.PASSPHRASE_BYTES:
        raise KeyFileError(
            f"{path} does not hold one line of text",
            hint=f"write the passphrase into it, at most {limits.PASSPHRASE_BYTES} bytes",
        )
    return line


def _ask(prompt: str) -> str:
    """What is typed, unseen. Where it would be seen, or nobody is there, nothing is asked."""
    import getpass

    ask: Callable[[str], str] = getpass.getpass
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)
            typed = ask(prompt)
        typed.encode("utf-8")
    except (getpass.GetPassWarning, EOFError, OSError):
        raise UsageError(
            "there is no terminal to ask for the passphrase at", hint="name --passphrase-file FILE"
        ) from None
    except UnicodeEncodeError:
        raise UsageError("the passphrase is not UTF-8", hint="set a UTF-8 locale") from None
    return typed
