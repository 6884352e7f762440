"""Where the program starts: an interrupt while the commands are imported is no traceback."""

from __future__ import annotations

import sys
from typing import NoReturn

_INTERRUPTED = 130  # exit code


def main() -> NoReturn:
    """The program."""
    try:
        from savepoint.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
