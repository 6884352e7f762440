"""Draws docs/pictures: what `savepoint status` and the status line print, of a real store."""

from __future__ import annotations

import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from scripts.demo import BIN, Demo

PICTURES = Path(__file__).resolve().parent.parent / "docs/pictures"
_WIDTH = 88
_USED, _WINDOW = 138_600, 200_000  # tokens, as the agent tells them to a status line


def main() -> None:
    """Make a session as the demo does, save, push and anchor it, and draw both."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="savepoint-pictures-") as folder:
        demo = Demo(Path(folder))
        demo.make_project()
        demo.write_records(2_000)
        demo.run("init", "--instance", "Gabriel #1", "--remote", str(demo.remote))
        demo.fire()
        demo.run("sync", "--wait")
        demo.write_records(200)
        demo.fire()
        demo.run("sync", "--wait")
        demo.rest()
        draw("status", "savepoint status", _seen(demo, "status"))
        draw("statusline", "below your own status line", _seen(demo, "statusline", *_own(demo)))


def _own(demo: Demo) -> tuple[str, ...]:
    """The rest of the command line, and what the agent tells on stdin, in a file."""
    told = {
        "session_id": demo.session,
        "transcript_path": str(demo.transcript),
        "cwd": str(demo.project),
        "workspace": {"current_dir": str(demo.project), "project_dir": str(demo.project)},
        "context_window": {
            "context_window_size": _WINDOW,
            "total_input_tokens": _USED,
            "current_usage": {"input_tokens": _USED, "output_tokens": 0},
        },
    }
    (demo.project / "told.json").write_text(json.dumps(told), encoding="utf-8")
    return ("--then", "printf 'my own line: shop'")


def _seen(demo: Demo, *arguments: str) -> str:
    """What a terminal shows of a command."""
    ours, theirs = pty.openpty()
    told = demo.project / "told.json"
    ran = subprocess.Popen(
        [BIN / "savepoint", *arguments],
        cwd=demo.project,
        env={**demo.environment, "COLUMNS": str(_WIDTH), "TERM": "xterm-256color"},
        stdin=told.open("rb") if told.exists() else subprocess.DEVNULL,
        stdout=theirs,
    )
    os.close(theirs)
    out = b""
    try:
        while piece := os.read(ours, 65536):
            out += piece
    except OSError:  # Linux says EIO where the other side is closed
        pass
    os.close(ours)
    if ran.wait() != 0:
        sys.exit(f"pictures: error: savepoint {arguments[0]} failed")
    return out.decode().replace("\r\n", "\n").replace(str(demo.home.parent), "/home/ada")


def draw(name: str, title: str, text: str) -> None:
    """A picture of what a terminal shows; it loads no font from anywhere."""
    console = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text.rstrip("\n")))
    frame = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    drawn = console.export_svg(title=title, code_format=frame, unique_id=name)
    (PICTURES / f"{name}.svg").write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
