#!/usr/bin/env python3
"""The specification's skill: saves the project's newest session, prints its three layer lines.

precompact_skill.py [--instance 'NAME #N'] [--timestamp TIME] [--context-utilization PERCENT]

Exit code 0: saved; 1: saved, but something after it failed; 2: not saved. With a hook's payload on
stdin it is the hook: it prints nothing and exits 0. Any Python will do to start it.
"""

from __future__ import annotations

import importlib.util
import os
import select
import sys
import tempfile

_WAIT_SECONDS = 1.0  # for the first bytes of a payload
_NOT_SAVED = 2
_OWN_PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.venv/bin/python")


def _main() -> None:
    if importlib.util.find_spec("savepoint") is None and os.access(_OWN_PYTHON, os.X_OK):
        command = [_OWN_PYTHON, "-I", os.path.abspath(__file__), *sys.argv[1:]]
        os.execv(command[0], command)  # noqa: S606  # this program, with the Python that it needs
    payload = _payload()
    if payload:
        with tempfile.TemporaryFile() as file:  # the hook reads it as if it had been called itself
            file.write(payload)
            file.seek(0)
            os.dup2(file.fileno(), 0)
    if importlib.util.find_spec("savepoint") is None:
        print("savepoint: error: this Python has no savepoint", file=sys.stderr)
        print("savepoint: hint: run scripts/setup", file=sys.stderr)
        sys.exit(0 if payload else _NOT_SAVED)
    if payload:
        from savepoint import hook

        sys.argv[1:] = ["PreCompact"]
        sys.exit(hook.main())
    from savepoint.cli import precompact

    precompact.main()


def _payload() -> bytes:
    """What an agent has put on stdin, to its end; nothing where a person has called."""
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    if not select.select([0], [], [], _WAIT_SECONDS)[0]:
        return b""
    return sys.stdin.buffer.read().strip()


if __name__ == "__main__":
    _main()
