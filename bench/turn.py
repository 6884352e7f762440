"""A process of its own that runs a succession, without a savepoint that covers what was before:
`python -I turn.py HOME PROJECT`.
"""

from __future__ import annotations

import gc
import os
import sys
import time

gc.disable()  # as the hook

from savepoint.capture.request import Request  # noqa: E402  # as the hook
from succession import dynasty  # noqa: E402  # as above

_SECONDS = 60.0


def main(home: str, project: str) -> None:
    """The program."""
    request = Request(
        home=home,
        project=project,
        cwd=project,
        config_dir=os.environ["CLAUDE_CONFIG_DIR"],
        session_id="",
        transcript="",
        trigger="stop",
        now=int(time.time()),
        deadline=time.monotonic() + _SECONDS,
        environment=dict(os.environ),
    )
    dynasty.run(request, None, "measured")


if __name__ == "__main__":
    main(*sys.argv[1:])
