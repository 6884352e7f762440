"""What is measured on: a project of 1,000 files, and sessions in the agent's format, from a seed.

A session does what a coding agent does: thinks, talks, reads and edits a few of the files again and
again, runs commands, searches. Its bytes compress at `zstd -3` to some 18 %, as large real ones do.
"""

from __future__ import annotations

import base64
import itertools
import json
import os
import random
import subprocess
import time
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    Record = dict[str, object]

SEED = 20261130
FILES = 1000  # in the project
_FOLDERS = 25
_TOUCHED = 40  # files that a session reads and edits; a real one keeps to a few
_AT_HAND = 2  # of these, while it answers one question
_WORDS = 8_000
_TICK = 1.1  # seconds: files are older than the index, and changes younger, as they mostly are
_BLOCK = 1 << 20  # bytes written at once
_STARTED = 1_700_000_000  # Unix seconds of the first record


class Language:
    """Text of words from a list, some far more frequent than others, as in any language."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._words = _word_list(random_of(0))
        weights = (1 / (rank + 3) for rank in range(len(self._words)))
        self._weights = list(itertools.accumulate(weights))

    def words(self, count: int) -> list[str]:
        """So many words."""
        return self._rng.choices(self._words, cum_weights=self._weights, k=count)

    def prose(self, count: int) -> str:
        """Sentences and paragraphs of `count` words."""
        words = self.words(count)
        for at in range(0, count, 13):
            words[at] = words[at].capitalize()
            words[at - 1] += self._rng.choice((".", ".", ".", ":", "?", ".\n\n", ", `and`"))
        return " ".join(words)

    def code(self, lines: int) -> str:
        """Lines that look like a program, with the tabs and quotes that JSON must escape."""
        words = iter(self.words(4 * lines))
        return "".join(_code_line(words, number) for number in range(lines))


def random_of(number: int) -> random.Random:
    """One that gives the same at each run."""
    return random.Random(SEED + number)  # noqa: S311  # repeatable, not unguessable


def _word_list(rng: random.Random) -> list[str]:
    parts = [a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "er", "in", "on")]
    return ["".join(rng.choices(parts, k=rng.choice((1, 2, 2, 3)))) for _ in range(_WORDS)]


def _code_line(words: Iterator[str], number: int) -> str:
    a, b, c, d = (next(words) for _ in range(4))
    form = number % 7
    if form == 0:
        return f"\ndef {a}_{b}({c}, {d}):\n"
    if form in {1, 4}:
        return f"\t{a} = {b}.{c}({d})\n"
    if form == 2:
        return f'\tif {a} == "{b} {c}":\n\t\treturn {d}\n'
    if form == 3:
        return f"\t# {a} {b} {c} {d}\n"
    return f"\t{a}.{b}({c}_{d})\n"


def make_project(folder: str) -> list[str]:
    """A git repository of FILES files, all committed, then three of them changed and one file new.

    Returns the paths of the files.
    """
    language = Language(random_of(1))
    paths = []
    for number in range(FILES):
        path = os.path.join(folder, f"part_{number % _FOLDERS:02}", f"module_{number:04}.py")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        _write(path, language.code(60 + number % 300))
        paths.append(path)
    time.sleep(_TICK)
    identity = ("-c", "user.name=Bench", "-c", "user.email=bench@example.invalid")
    for args in (("init", "-q"), ("add", "-A"), (*identity, "commit", "-qm", "all files")):
        subprocess.run(["git", "-C", folder, *args], check=True)
    time.sleep(_TICK)
    for path in (*paths[:3], os.path.join(folder, "notes.md")):
        _write(path, language.prose(400))
    return paths


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def _numbered(text: str) -> str:
    """As the agent is shown a file."""
    return "\n".join(f"{number:6}→{line}" for number, line in enumerate(text.split("\n"), 1))


class Session:
    """A session of the agent in a project. Its records come one after another, for ever."""

    def __init__(self, project: str, paths: list[str], number: int) -> None:
        self._rng = random_of(2 + number)
        self.id = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        self._language = Language(self._rng)
        self._project = project
        self._files = self._rng.sample(paths, min(_TOUCHED, len(paths)))
        self._at_hand: list[str] = []
        self._texts: dict[str, str] = {}
        self._parent: str | None = None
        self._records = 0
        self._lines = self._all_lines()

    def grow(self, path: str, size: int) -> int:
        """Append at least `size` bytes of whole records to the transcript; returns how many."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        written = 0
        with open(path, "ab", buffering=_BLOCK) as file:
            while written < size:
                written += file.write(next(self._lines))
        return written

    def _all_lines(self) -> Iterator[bytes]:
        while True:
            for record in self._turn():
                yield json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _turn(self) -> Iterator[Record]:
        """A question, and what the agent does about it."""
        yield self._user(self._language.prose(self._rng.randint(10, 80)), {})
        self._at_hand = self._rng.sample(self._files, _AT_HAND)
        for _ in range(self._rng.randint(4, 16)):
            yield self._thinking()
            act = self._rng.choices((self._read, self._edit, self._run, self._search), (4, 8, 4, 1))
            yield from act[0]()
            yield self._assistant({"type": "text", "text": self._language.prose(90)})

    def _thinking(self) -> Record:
        signature = base64.b64encode(self._rng.randbytes(300)).decode()
        text = self._language.prose(self._rng.randint(40, 260))
        return self._assistant({"type": "thinking", "thinking": text, "signature": signature})

    def _read(self) -> Iterator[Record]:
        path, text = self._file()
        lines = text.split("\n")
        file = {
            "filePath": path,
            "content": text,
            "numLines": len(lines),
            "startLine": 1,
            "totalLines": len(lines),
        }
        result = {"type": "text", "file": file}
        yield from self._call("Read", {"file_path": path}, _numbered(text), result)

    def _edit(self) -> Iterator[Record]:
        path, text = self._file()
        start = self._rng.randrange(len(text) // 2)
        old = text[start : start + 300]
        new = self._language.code(10)
        self._texts[path] = text.replace(old, new, 1)
        asked = {"file_path": path, "old_string": old, "new_string": new}
        result = {"filePath": path, "oldString": old, "newString": new, "originalFile": text}
        shown = f"The file {path} has been updated. Here it is:\n{_numbered(new)}"
        yield from self._call("Edit", asked, shown, result)

    def _run(self) -> Iterator[Record]:
        command = "make " + " ".join(self._language.words(3))
        output = self._language.prose(self._rng.randint(20, 500))
        result = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        yield from self._call("Bash", {"command": command}, output, result)

    def _search(self) -> Iterator[Record]:
        found = self._rng.sample(self._files, 20)
        result = {"mode": "files_with_matches", "filenames": found, "numFiles": len(found)}
        asked = {"pattern": self._language.words(1)[0]}
        yield from self._call("Grep", asked, "\n".join(found), result)

    def _call(self, name: str, asked: object, shown: str, result: object) -> Iterator[Record]:
        call = f"toolu_{self._rng.getrandbits(96):024x}"
        yield self._assistant({"type": "tool_use", "id": call, "name": name, "input": asked})
        answer = {"tool_use_id": call, "type": "tool_result", "content": shown}
        yield self._user([answer], {"toolUseResult": result})

    def _file(self) -> tuple[str, str]:
        path = self._rng.choice(self._at_hand)
        if path not in self._texts:
            with open(path, encoding="utf-8") as file:
                self._texts[path] = file.read()
        return path, self._texts[path]

    def _user(self, content: object, more: Record) -> Record:
        message = {"role": "user", "content": content}
        return {**self._head(), "type": "user", "message": message, **self._tail(), **more}

    def _assistant(self, block: Record) -> Record:
        used = 20_000 + self._records * 7 % 120_000
        message = {
            "model": "claude-opus-4-5-20251101",
            "id": f"msg_{self._rng.getrandbits(96):024x}",
            "type": "message",
            "role": "assistant",
            "content": [block],
            "usage": {"input_tokens": 3, "cache_read_input_tokens": used, "output_tokens": 200},
        }
        request = {"requestId": f"req_{self._rng.getrandbits(96):024x}", "type": "assistant"}
        return {**self._head(), "message": message, **request, **self._tail()}

    def _head(self) -> Record:
        return {
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": self._project,
            "sessionId": self.id,
            "version": "2.1.5",
            "gitBranch": "main",
        }

    def _tail(self) -> Record:
        self._records += 1
        self._parent = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        seconds = _STARTED + 5 * self._records
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(seconds))
        return {"uuid": self._parent, "timestamp": stamp}
