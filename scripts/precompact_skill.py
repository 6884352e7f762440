#!/usr/bin/env python3
"""The specification's skill: saves the project's newest session, prints its three layer lines.

precompact_skill.py [--instance 'NAME #N'] [--timestamp TIME] [--context-utilization PERCENT]

Exit code 0: saved; 1: saved; commit, push or anchor is pending, or something after the savepoint
failed; 2: not saved. With a hook's payload on stdin it is the hook: it prints nothing and exits 0.
Any Python will do to start it.
"""

from __future__ import annotations

import importlib.util
import os
import select
import sys
import time

_WAIT_SECONDS = 1.0  # for the first bytes of a payload
_NOT_SAVED = 2
_OWN_PYTHON = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.venv/bin/python")


def _main() -> None:
    if importlib.util.find_spec("savepoint") is None and os.access(_OWN_PYTHON, os.X_OK):
        command = [_OWN_PYTHON, "-I", os.path.abspath(__file__), *sys.argv[1:]]
        os.execv(command[0], command)  # noqa: S606  # this program, with the Python that it needs
    payload = _payload()
    if importlib.util.find_spec("savepoint") is None:
        print("savepoint: error: this Python has no savepoint", file=sys.stderr)
        print("savepoint: hint: run scripts/setup", file=sys.stderr)
        sys.exit(0 if payload else _NOT_SAVED)
    if payload:
        from savepoint import hook

        sys.argv[1:] = ["PreCompact"]
        hook.main(payload)
    from savepoint.cli import precompact

    precompact.main()


def _payload() -> bytes:
    """How that begins which an agent puts on stdin, and may never close; the hook reads the rest.
    Nothing where a person has called.
    """
    if sys.stdin is None or sys.stdin.isatty():
        return b""
    data, end = b"", time.monotonic() + _WAIT_SECONDS
    while not data.strip() and (left := end - time.monotonic()) > 0:
        if not select.select([0], [], [], left)[0]:
            break
        chunk = os.read(0, 1 << 16)
        if not chunk:
            break
        data += chunk
    return data if data.strip() else b""


if __name__ == "__main__":
    _main()
