"""Where the program starts: an interrupt while the commands are imported is no traceback."""

from __future__ import annotations

import sys
from typing import NoReturn

_INTERRUPTED = 130  # exit code


def main() -> NoReturn:
    """The program. Status lines come after each answer of an agent: they start without typer."""
    try:
        if sys.argv[1:2] == ["statusline"]:
            from savepoint.cli.agent import statusline

            statusline.main(sys.argv[2:])
        from savepoint.cli.main import main as run

        run()
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)
