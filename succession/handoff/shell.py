"""Which commands of ours a line of shell runs, if it runs nothing else.

A line that only names one (in a comment, in a text, behind `;`) is somebody else's. What is not
understood for certain counts as something else.
"""

from __future__ import annotations

import re
import shlex

_PROGRAM = "savepoint"
_PIECE = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|&&|[^'"\\&]+|&""", re.DOTALL)
_QUIET = re.compile(r"(?<!\S)(?:2>&1|[12]?>[ \t]*/dev/null)(?!\S)")  # changes no file
# Another command, a file, a comment (whose quotes are none), and `$'…'`, whose quotes have escapes.
_ELSE = re.compile(r"[;|&<>()`\n]|(?<!\S)#|\$\Z")
_SUBSTITUTES = re.compile(r"`|\$\(")  # what runs another inside of double quotes
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_ASSIGNED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def subcommands(line: str) -> list[str] | None:
    """`["handoff"]` of `cd x && A=b /path/to/savepoint handoff ready 2>&1`; None where anything but
    such commands is run.
    """
    found = []
    for part in _parts(_QUIET.sub(" ", line.strip())):
        words = shlex.split(part)
        while words and _ASSIGNED.match(words[0]):
            del words[0]
        if words[:1] == ["cd"]:
            continue
        if not words or words[0].rpartition("/")[2] != _PROGRAM:
            return None
        found.append(next((one for one in words[1:] if not one.startswith("-")), ""))
    return found


def _parts(line: str) -> list[str]:
    """What `&&` joins; an empty one where something else does, or a quote has no end."""
    pieces = _PIECE.findall(line)
    parts = [""]
    for piece in pieces if "".join(pieces) == line else ():
        if piece == "&&":
            parts.append("")
        elif _runs_else(piece):
            return [""]
        elif piece != "\\\n":  # a line that goes on
            parts[-1] += piece
    return parts


def _runs_else(piece: str) -> bool:
    if piece[0] == '"':
        return bool(_SUBSTITUTES.search(_ESCAPED.sub("", piece)))
    return piece[0] not in "'\\" and bool(_ELSE.search(piece))
