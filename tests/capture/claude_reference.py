"""A plain, slow reading of a Claude Code transcript, to which the fast one is compared.

Written from real transcripts alone, and shares no code with the adapter: json.loads of every line.
"""

from __future__ import annotations

import json
from typing import Any


def _objects(line: bytes) -> tuple[list[dict[str, Any]], bool]:
    decoder = json.JSONDecoder(strict=False)
    text = line.decode("utf-8", "replace").removeprefix("\ufeff").strip(" \t\r\n")
    found: list[dict[str, Any]] = []
    while text:
        try:
            value, end = decoder.raw_decode(text)
        except ValueError:
            return found, False
        if not isinstance(value, dict):
            return found, False
        found.append(value)
        text = text[end:].lstrip(" \t\r\n")
    return found, True


class Reference:
    """Members have the names and meanings of the adapter's scan."""

    def __init__(self, data: bytes) -> None:
        self.size = len(data)
        self.messages = self.records = self.boundaries = 0
        self.glued = self.unparsable = self.torn = 0
        self.sessions: dict[str, int] = {}
        self.session_id: str | None = None
        self.version: str | None = None
        self.cwd: str | None = None
        self.model: str | None = None
        self.usage: tuple[int, int] | None = None
        self.todos: tuple[int, int] | None = None
        self.files: dict[str, tuple[str, int, int]] = {}
        self.tasks: dict[str, tuple[str, str]] = {}
        self.skills: dict[str, None] = {}
        self.backups: dict[str, None] = {}
        self._calls: dict[str, str] = {}
        lines = data.split(b"\n")
        self.unended = len(lines[-1])
        at = 0
        for number, line in enumerate(lines):
            self._line(line, at, last=number == len(lines) - 1)
            at += len(line) + 1

    def _line(self, line: bytes, at: int, *, last: bool) -> None:
        if not line.strip(b" \t\r"):
            return
        found, whole = _objects(line)
        self.records += 1
        self.glued += len(found) > 1
        self.unparsable += not whole and not last
        self.torn = 0 if whole else len(line)
        for record in found:
            self._record(record, (at, len(line)))

    def _record(self, record: dict[str, Any], span: tuple[int, int]) -> None:
        kind = record.get("type")
        self.messages += kind in ("user", "assistant")
        session = record.get("sessionId")
        if isinstance(session, str) and session:
            session = _clean(session)
            self.sessions[session] = self.sessions.get(session, 0) + 1
            self.session_id = self.session_id or session
        self.version = _text(record.get("version")) or self.version
        self.cwd = _text(record.get("cwd")) or self.cwd
        if kind == "system" and record.get("subtype") == "compact_boundary":
            self.boundaries += 1
            self.usage = None
        elif kind == "user":
            self._user(record, span)
        elif kind == "assistant":
            self._assistant(record, span)
        elif kind == "attachment":
            self._attachment(record, span)
        elif kind == "file-history-snapshot":
            for backup in record["snapshot"]["trackedFileBackups"].values():
                if backup["backupFileName"]:
                    self.backups[backup["backupFileName"]] = None
        elif kind == "file-history-delta":
            self.backups[record["backup"]["backupFileName"]] = None

    def _assistant(self, record: dict[str, Any], span: tuple[int, int]) -> None:
        message = record.get("message")
        if not isinstance(message, dict):
            return
        if record.get("isSidechain") is not True and message.get("model") != "<synthetic>":
            self.model = _text(message.get("model")) or self.model
            usage = message.get("usage")
            names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
            if isinstance(usage, dict) and any(type(usage.get(name)) is int for name in names):
                self.usage = span
        content = message.get("content")
        for block in content if isinstance(content, list) else []:
            if isinstance(block, dict) and block.get("type") == "tool_use":
                self._call(block, span)

    def _call(self, block: dict[str, Any], span: tuple[int, int]) -> None:
        given = block.get("input")
        if not isinstance(given, dict):
            return
        if block.get("name") == "TodoWrite" and isinstance(given.get("todos"), list):
            self.todos = span
        if block.get("name") == "Skill" and _text(given.get("skill")):
            self.skills[_clean(given["skill"])] = None
        if block.get("name") == "Read" and _text(given.get("file_path")):
            self._calls[block["id"]] = _clean(given["file_path"])

    def _user(self, record: dict[str, Any], span: tuple[int, int]) -> None:
        if "toolUseResult" not in record:
            if isinstance(record.get("todos"), list):
                self.todos = span
            return
        result = record["toolUseResult"]
        if not isinstance(result, dict):
            return
        if isinstance(result.get("newTodos"), list):
            self.todos = span
        if isinstance(result.get("task"), dict):
            task = result["task"]
            self.tasks[task["id"]] = (task["subject"], "pending")
        if isinstance(result.get("statusChange"), dict) and result.get("taskId") in self.tasks:
            subject, _ = self.tasks[result["taskId"]]
            self.tasks[result["taskId"]] = (subject, result["statusChange"]["to"])
        file = result.get("file")
        if isinstance(file, dict):
            path = _text(file.get("filePath"))
            if path is None:
                blocks = record["message"]["content"]
                ids = [block["tool_use_id"] for block in blocks if "tool_use_id" in block]
                path = self._calls.get(ids[0]) if ids else None
            self._see(path, "read", span, repeats=result.get("type") == "file_unchanged")
        else:
            self._see(_text(result.get("filePath")), "written", span, repeats=False)

    def _attachment(self, record: dict[str, Any], span: tuple[int, int]) -> None:
        attachment = record.get("attachment")
        if not isinstance(attachment, dict):
            return
        kind = attachment.get("type")
        if kind == "todo_reminder" and isinstance(attachment.get("content"), list):
            self.todos = span
        if kind == "task_reminder" and isinstance(attachment.get("content"), list):
            tasks = attachment["content"]
            self.tasks = {task["id"]: (task["subject"], task["status"]) for task in tasks}
        if kind == "invoked_skills":
            self.skills.update(dict.fromkeys(skill["name"] for skill in attachment["skills"]))
        if kind in ("file", "edited_text_file", "compact_file_reference", "nested_memory"):
            path = _text(attachment.get("filename")) or _text(attachment.get("path"))
            self._see(path, "attached", span, repeats=kind == "compact_file_reference")

    def _see(self, path: str | None, kind: str, span: tuple[int, int], *, repeats: bool) -> None:
        if path is not None and not (repeats and path in self.files):
            self.files.pop(path, None)
            self.files[path] = (kind, *span)


def _text(value: object) -> str | None:
    return _clean(value) if isinstance(value, str) and value else None


def _clean(value: str) -> str:
    return "".join(
        "\ufffd" if "\ud800" <= character <= "\udfff" else character for character in value
    )
