"""What one parsed record of Claude Code says: use, todos, tasks, files, skills, backups.

All take a JSON object of any content and never raise; shapes as seen in
clients 2.0.64 to 2.1.332. What a record says depends on its top-level `type` alone: progress
records embed whole records of others.
"""

from __future__ import annotations

from savepoint.capture.agents.claude_lines import clean
from savepoint.core import limits
from savepoint.core.named import NamedTuple

_ATTACHED = {
    "file": "filename",
    "edited_text_file": "filename",
    "compact_file_reference": "filename",
    "already_read_file": "filename",
    "selected_lines_in_ide": "filename",
    "pdf_reference": "filename",
    "nested_memory": "path",
}  # kind of attachment → member with the path
_LISTED = frozenset({"todo_reminder", "task_reminder", "invoked_skills"})

Record = dict[str, object]


CLOSED = frozenset({"completed", "deleted", "cancelled"})  # status of a todo or task that is done
TOOLS = frozenset({b"Read", b"Skill", b"TodoWrite"})  # whose calls say any of this


class Touch(NamedTuple):
    """A file that a record shows."""

    path: str
    kind: str  # read, attached, written
    repeats: bool = False  # it only says "as you saw it before": an older record has the content


def kind_of(record: Record) -> str | None:
    """The record's type."""
    return name(record.get("type"))


def is_attachment_told(kind: str) -> bool:
    """Does an attachment of that kind say any of this?"""
    return kind in _ATTACHED or kind in _LISTED


def is_boundary(record: Record) -> bool:
    """Is it the mark of a compaction?"""
    return record.get("type") == "system" and record.get("subtype") == "compact_boundary"


def used_tokens(record: Record) -> int | None:
    """Input, cache read and cache creation of an answer of the session's own.

    Output is not counted: the client's own percentage does not either.
    """
    message = _answer(record)
    usage = _dict(message.get("usage"))
    parts = [_count(usage.get(member)) for member in _USED]
    known = [part for part in parts if part is not None]
    return sum(known) if known else None


def model(record: Record) -> str | None:
    """The model that gave an answer of the session's own."""
    return name(_answer(record).get("model"))


def todo_list(record: Record) -> list[object] | None:
    """The whole list of todos that the record holds; None if it holds none."""
    kind = record.get("type")
    if kind == "assistant":
        lists = [_dict(call.get("input")).get("todos") for call in _calls(record, "TodoWrite")]
        return next((todos for todos in reversed(lists) if isinstance(todos, list)), None)
    if kind == "attachment":
        attachment = _dict(record.get("attachment"))
        found = attachment.get("content") if attachment.get("type") == "todo_reminder" else None
        return found if isinstance(found, list) else None
    if kind != "user":
        return None
    found = record.get("todos")
    if "toolUseResult" in record:
        found = _dict(record["toolUseResult"]).get("newTodos")
    return found if isinstance(found, list) else None


def open_todo(item: object) -> str | None:
    """What a todo says, unless it is done."""
    if isinstance(item, str):
        return clean(item)
    todo = _dict(item)
    return None if todo.get("status") in CLOSED else clean(todo.get("content"))


class Task(NamedTuple):
    """What a record says of a task; None where it says nothing."""

    id: str
    subject: str | None
    status: str | None


def tasks(record: Record) -> tuple[list[Task], bool]:
    """The tasks that the record tells of, and whether they are all there are."""
    kind = record.get("type")
    if kind == "attachment":
        attachment = _dict(record.get("attachment"))
        listed = attachment.get("content") if attachment.get("type") == "task_reminder" else None
        return _task_list(listed), isinstance(listed, list)
    result = _dict(record.get("toolUseResult")) if kind == "user" else {}
    if isinstance(result.get("tasks"), list):
        return _task_list(result["tasks"]), True
    change = _dict(result.get("statusChange"))
    if change:
        return _task_list([{"id": result.get("taskId"), "status": change.get("to")}]), False
    return _task_list([result.get("task")]), False


def touches(record: Record, calls: dict[str, str]) -> list[Touch]:
    """The files that the record shows; `calls` has the paths of reads by the id of their call."""
    kind = record.get("type")
    if kind == "attachment":
        return _attached(_dict(record.get("attachment")))
    result = _dict(record.get("toolUseResult")) if kind == "user" else {}
    inner = result.get("file")
    if isinstance(inner, dict):
        path = path_of(inner.get("filePath")) or calls.get(_answered_call(record) or "")
        return [Touch(path, "read", result.get("type") == "file_unchanged")] if path else []
    path = path_of(result.get("filePath")) or path_of(result.get("notebook_path"))
    return [Touch(path, "written")] if path else []


def is_nameless(record: Record) -> bool:
    """Does the record show a file under a name that no file can have: too long, or with NUL?"""
    result = _dict(record.get("toolUseResult"))
    attachment = _dict(record.get("attachment"))
    kind = attachment.get("type")
    told = (
        _dict(result.get("file")).get("filePath"),
        result.get("filePath"),
        result.get("notebook_path"),
        attachment.get(_ATTACHED.get(kind, "filename")) if isinstance(kind, str) else None,
    )
    return any(isinstance(one, str) and one and path_of(one) is None for one in told)


class Shown(NamedTuple):
    """Text of a file that a record shows."""

    path: str
    text: str
    start_line: int
    line_count: int
    whole: bool  # all of the file as it was


def shown_text(record: Record) -> Shown | None:
    """The text of a file that the record holds as it was on disk; edits and snippets are none."""
    kind = record.get("type")
    if kind == "user":
        result = _dict(record.get("toolUseResult"))
        if isinstance(result.get("file"), dict):
            return _shown_lines(_dict(result["file"]))
        return _shown_whole(result.get("filePath"), result.get("content"))
    attachment = _dict(record.get("attachment")) if kind == "attachment" else {}
    content = _dict(attachment.get("content"))
    if attachment.get("type") == "file":
        return _shown_lines(_dict(content.get("file")))
    if (
        attachment.get("type") == "nested_memory"
        and content.get("contentDiffersFromDisk") is not True
    ):
        return _shown_whole(attachment.get("path"), content.get("content"))
    return None


def read_calls(record: Record) -> dict[str, str]:
    """Path of each file that an answer asks to read, by the id of the call.

    The result of reading an image does not name it.
    """
    found = {}
    for call in _calls(record, "Read"):
        identity, path = name(call.get("id")), path_of(_dict(call.get("input")).get("file_path"))
        if identity and path:
            found[identity] = path
    return found


def skills(record: Record) -> list[str]:
    """Names of the skills that the record invokes or lists as invoked."""
    if record.get("type") == "assistant":
        inputs = [_dict(call.get("input")) for call in _calls(record, "Skill")]
        names = [name(given.get("skill")) or name(given.get("command")) for given in inputs]
    else:
        attachment = _dict(record.get("attachment")) if record.get("type") == "attachment" else {}
        listed = attachment.get("skills") if attachment.get("type") == "invoked_skills" else None
        names = [name(_dict(skill).get("name")) for skill in _list(listed)]
    return [skill for skill in names if skill]


def backups(record: Record) -> list[str]:
    """Names of the copies in file-history that the record refers to."""
    if record.get("type") == "file-history-delta":
        kept: list[object] = [record.get("backup")]
    elif record.get("type") == "file-history-snapshot":
        kept = list(_dict(_dict(record.get("snapshot")).get("trackedFileBackups")).values())
    else:
        return []
    names = [name(_dict(backup).get("backupFileName")) for backup in kept]
    return [backup for backup in names if backup]


def name(value: object) -> str | None:
    """An id or name: a clean string that is not empty nor absurdly long."""
    if not isinstance(value, str) or not 0 < len(value) <= limits.SCAN_STRING_CHARS:
        return None
    return clean(value)


def path_of(value: object) -> str | None:
    """A path: a name without NUL."""
    found = name(value)
    return None if found is None or "\0" in found else found


def _answer(record: Record) -> Record:
    """The message of an answer that the session's own model gave; empty for all else."""
    if record.get("type") != "assistant" or record.get("isSidechain") is True:
        return {}
    message = _dict(record.get("message"))
    return {} if message.get("model") == "<synthetic>" else message


def _calls(record: Record, tool: str) -> list[Record]:
    blocks = [_dict(block) for block in _list(_dict(record.get("message")).get("content"))]
    return [b for b in blocks if b.get("type") == "tool_use" and b.get("name") == tool]


def _answered_call(record: Record) -> str | None:
    for block in _list(_dict(record.get("message")).get("content")):
        identity = name(_dict(block).get("tool_use_id"))
        if identity:
            return identity
    return None


def _attached(attachment: Record) -> list[Touch]:
    kind = attachment.get("type")
    member = _ATTACHED.get(kind) if isinstance(kind, str) else None
    path = path_of(attachment.get(member)) if member else None
    repeats = kind in {"compact_file_reference", "already_read_file"}
    return [Touch(path, "attached", repeats)] if path else []


def _shown_lines(file: Record) -> Shown | None:
    path, text = path_of(file.get("filePath")), file.get("content")
    first, lines, total = (_count(file.get(m)) for m in ("startLine", "numLines", "totalLines"))
    if path is None or not isinstance(text, str) or first is None or lines is None:
        return None
    return Shown(path, text, first, lines, whole=first == 1 and lines == total)


def _shown_whole(path: object, text: object) -> Shown | None:
    found = path_of(path)
    if found is None or not isinstance(text, str):
        return None
    return Shown(found, text, 1, text.count("\n") + 1, whole=True)


def _task_list(listed: object) -> list[Task]:
    found = []
    for item in map(_dict, _list(listed)):
        identity = name(item.get("id"))
        if identity:
            found.append(Task(identity, clean(item.get("subject")), name(item.get("status"))))
    return found


def _count(value: object) -> int | None:
    ok = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _TOKENS_END
    return value if ok and isinstance(value, int) else None


def _dict(value: object) -> Record:
    return value if isinstance(value, dict) else {}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


_USED = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
_TOKENS_END = 10**15  # a larger count is nonsense, and three of them still fit an i64
