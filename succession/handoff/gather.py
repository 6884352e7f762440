"""What a thread may owe, drawn from a savepoint: candidates, each to be mapped or dismissed.

Nothing is understood here, only found; so rather too much than too little. What the conversation
says is told with the offset of the line that says it.
"""

from __future__ import annotations

import hashlib
import re
import time
from typing import TYPE_CHECKING

from savepoint.capture import borrowed, gitfiles
from savepoint.capture.agents import claude_facts, claude_lines
from savepoint.core import limits
from savepoint.core.errors import DiskError
from savepoint.core.handoff_log import Draft
from savepoint.core.named import NamedTuple
from savepoint.store import savepoints
from savepoint.store.worktree import current_worktree
from succession.handoff import turn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from savepoint.capture.agents.claude_facts import Record
    from savepoint.core.handoff_log import Author
    from savepoint.core.strict_json import Json
    from savepoint.store.layout import Store
    from savepoint.store.worktree import Worktree
    from succession.handoff.ledger import Thread
    from succession.handoff.log import Log

_PULL = re.compile(r"https?://[\w.-]+/[\w./-]+?/(?:pull|merge_requests|pullrequests)/[0-9]+")
_OFFER = re.compile(
    r"\b(?:shall|should) I\b|\b(?:would|do) you (?:like|want) me\b|\bwant me to\b"
    r"|\bI(?:'d be happy to| can (?:also )?)\b|\blet me know (?:if|whether)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])[\s*_)\"'\u201d]+|\n+")
_FENCED = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


class Found(NamedTuple):
    """A candidate before it has an id. `key` makes the same thing the same one next time."""

    what: str  # of handoff_log.CANDIDATES
    text: str
    offset: int | None  # bytes
    key: str

    def id_in(self, thread: str) -> str:
        """`c-` and 16 hex digits."""
        told = f"{thread}\0{self.what}\0{self.key}".encode("utf-8", "surrogatepass")
        return f"c-{hashlib.sha256(told).hexdigest()[:16]}"


def of_savepoint(store: Store, document: dict[str, Json]) -> list[Found]:
    """From its conversation and its changes. Raises TamperedError, MalformedError, DiskError."""
    transcript = [one for one in savepoints.files(store, document) if one.part == "conversation"]
    data = b"".join(piece for one in transcript for piece in savepoints.content(store, one))
    return [*of_conversation(data), *_bounded(_changes(store, document))]


def of_conversation(data: bytes) -> list[Found]:
    """From a transcript: todos, questions and offers of the last turns, pull requests, tasks."""
    reading = _Reading()
    for offset, record in turn.lines(data):
        reading.take(offset, record)
    found = [one for kind in reading.found() for one in _bounded(kind)]
    return list({(one.what, one.key): one for one in found}.values())


def of_running(kept: tuple[list[str], list[str]] | None) -> list[Found]:
    """From what the last Stop told."""
    tasks, crons = kept or ([], [])
    found = [Found("task", one, None, one) for one in tasks]
    return found + [Found("cron", one, None, one) for one in crons]


def of_branches(store: Store, project: str, cwd: str, env: Mapping[str, str]) -> list[Found]:
    """Branches with commits that no remote-tracking branch has; git reads, and runs nothing."""
    worktree = current_worktree(project, cwd)
    if worktree is None:
        return []
    deadline = time.monotonic() + limits.READ_SECONDS
    command = ("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads", "refs/remotes")
    told = borrowed.start_in_place(worktree, env, *command).finish(deadline)
    rows = [line.partition(" ") for line in told.out.decode("utf-8", "replace").splitlines()]
    heads = {name: oid for oid, _, name in rows if name.startswith(gitfiles.BRANCHES)}
    remotes = sorted({oid for oid, _, name in rows if name.startswith("refs/remotes/")})
    return list(_bounded(_unpushed(store, worktree, env, heads, remotes)))


def write(
    log: Log, author: Author, now: int, thread: Thread, origin: Json, found: Iterable[Found]
) -> None:
    """Put what is new among the thread's candidates, and that they were drawn from that savepoint.

    origin: as `from` of a record has it. Raises HandoffError, DiskError.
    """
    drafts: list[Draft] = []
    known = set(thread.candidates)
    for one in found:
        name = one.id_in(thread.id)
        if name not in known:
            known.add(name)
            body: dict[str, Json] = {
                "candidate": name,
                "what": one.what,
                "text": cut(one.text),
                "offset": one.offset,
            }
            drafts.append(Draft("candidate", thread.id, body))
    told: dict[str, Json] = {"from": origin, "candidates": len(known)}
    log.add(author, now, [*drafts, Draft("gather", thread.id, told)])


def cut(text: str) -> str:
    """So much of it as a line of the log may hold, as clean text."""
    clean = claude_lines.clean(" ".join(text.split())) or ""
    data = clean.encode()[: limits.HANDOFF_TEXT_BYTES // 4]
    return data.decode("utf-8", "ignore") or "(empty)"


class _Reading:
    """Follows a transcript from its start."""

    def __init__(self) -> None:
        self._todos: tuple[int, list[object]] = (0, [])
        self._tasks: dict[str, tuple[str, str, int]] = {}  # subject, status, offset
        self._pulls: dict[str, int] = {}
        self._turns: list[list[tuple[int, str]]] = [[]]  # the agent's texts since each message
        self._turn = turn.Turn()

    def take(self, offset: int, record: Record) -> None:
        self._turn.take(offset, record)
        listed = claude_facts.todo_list(record)
        if listed is not None:
            self._todos = (offset, listed)
        self._take_tasks(offset, record)
        if record.get("type") == "pr-link" and isinstance(record.get("prUrl"), str):
            self._pulls[str(record["prUrl"])] = offset
        if turn.is_spoken(record):
            self._take_spoken(offset, record)

    def found(self) -> Iterator[Iterator[Found]]:
        """One iterator a kind."""
        offset, listed = self._todos
        todos = filter(None, map(claude_facts.open_todo, listed))
        yield (Found("todo", text, offset, text) for text in todos)
        yield (
            Found("todo", subject, at, subject)
            for subject, status, at in self._tasks.values()
            if status not in claude_facts.CLOSED
        )
        yield self._asked()
        yield (Found("pull_request", url, at, url) for url, at in self._pulls.items())
        running = self._turn.running.items()
        yield (Found("task", one.evidence, one.offset, name) for name, one in running)

    def _take_tasks(self, offset: int, record: Record) -> None:
        told, complete = claude_facts.tasks(record)
        if complete:
            self._tasks = {}
        for task in told:
            subject, status, _ = self._tasks.get(task.id, ("", "pending", 0))
            subject = task.subject or subject
            if subject:
                self._tasks[task.id] = (subject, task.status or status, offset)

    def _take_spoken(self, offset: int, record: Record) -> None:
        texts = turn.blocks(record).texts
        for text in texts:
            for url in _PULL.findall(text):
                self._pulls[url] = offset
        if claude_facts.kind_of(record) == "assistant":
            self._turns[-1] += [(offset, text) for text in texts]
        elif texts:
            self._turns.append([])
            del self._turns[: -limits.HANDOFF_TURNS]

    def _asked(self) -> Iterator[Found]:
        """Questions and offers, sentence by sentence; code asks nothing."""
        for offset, text in (one for told in self._turns for one in told):
            for sentence in _SENTENCE.split(_FENCED.sub("\n", text)):
                plain = sentence.strip().strip("*_#>-\"'()` ")
                if not plain:
                    continue
                key = f"{offset} {plain}"
                if _OFFER.search(plain):
                    yield Found("offer", plain, offset, key)
                elif plain.endswith("?"):
                    yield Found("question", plain, offset, key)


def _changes(store: Store, document: dict[str, Json]) -> Iterator[Found]:
    """What is in no commit. A path that is no text is told by its escapes."""
    for part, word in (("files", ""), ("deleted", "deleted: ")):
        listed = savepoints.listed(store, document, ("git_state", "changes", part))
        for one in listed if isinstance(listed, list) else []:
            path = one["path"] if isinstance(one, dict) and "path" in one else one
            text = word + (path if isinstance(path, str) else str(path))
            yield Found("uncommitted", text, None, text)


def _unpushed(
    store: Store,
    worktree: Worktree,
    env: Mapping[str, str],
    heads: Mapping[str, str],
    remotes: list[str],
) -> Iterator[Found]:
    try:
        ours = borrowed.Borrowed(worktree, None, gitfiles.read_config(worktree), store.scratch)
    except DiskError:
        return
    try:
        for name, oid in sorted(heads.items()):
            asked = ("rev-list", "--count", oid, *(["--not", *remotes] if remotes else []))
            told = ours.start(env, *asked).finish(time.monotonic() + limits.READ_SECONDS)
            count = told.out.strip().decode("ascii", "replace") if told.ok else "?"
            if count != "0":
                short = gitfiles.printable(name.removeprefix(gitfiles.BRANCHES))
                text = f"{short}: {count} commits that no remote has"
                yield Found("unpushed", text, None, f"{name} {oid}")
    finally:
        ours.remove()


def _bounded(found: Iterable[Found]) -> Iterator[Found]:
    """No more than HANDOFF_CANDIDATES; those that are left out are one that counts them."""
    for number, one in enumerate(found):
        if number < limits.HANDOFF_CANDIDATES:
            yield one
            continue
        more = number + 1
        for more, _ in enumerate(found, number + 2):  # noqa: B007  # counted
            pass
        left = more - limits.HANDOFF_CANDIDATES
        yield Found(one.what, f"and {left} more", None, f"more {left}")
        return
