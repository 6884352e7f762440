"""What a thread may owe, drawn from a savepoint: candidates, each to be mapped or dismissed.

Nothing is understood here, only found; so rather too much than too little. What the conversation
says is told with the offset of the line that says it.
"""

from __future__ import annotations

import base64
import hashlib
import re
import time
from typing import TYPE_CHECKING

from savepoint.capture.agents import claude_facts, claude_lines
from savepoint.capture.git import borrowed, gitfiles
from savepoint.core import limits
from savepoint.core.errors import DiskError
from savepoint.core.handoff_log import Draft
from savepoint.core.named import NamedTuple
from savepoint.core.strict_json import dump
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
    """A candidate before it has an id. `key` makes the same thing the same one next time, and what
    came since another: an answer to the one is none to the other.
    """

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
    return [*of_conversation(data), *_bounded(changes(store, document))]


def of_conversation(data: bytes) -> list[Found]:
    """From a transcript: todos, questions and offers of the last turns, pull requests, tasks."""
    reading = _Reading()
    for offset, record in turn.lines(data):
        reading.take(offset, record)
    found = [one for kind in reading.found() for one in _bounded(kind)]
    return list(
        {(one.what, one.text if one.what == "todo" else one.key): one for one in found}.values()
    )


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


class _Task(NamedTuple):
    subject: str
    status: str
    offset: int  # of what was told last
    since: int  # offset of what opened it

    @property
    def is_open(self) -> bool:
        return self.status not in claude_facts.CLOSED


class _Reading:
    """Follows a transcript from its start."""

    def __init__(self) -> None:
        self._todos: dict[str, tuple[int, int]] = {}  # open: offset, and of the one that opened it
        self._tasks: dict[str, _Task] = {}
        self._pulls: dict[str, tuple[int, int]] = {}  # offset, and of the message before it
        self._message = 0  # offset of the user's last one
        self._turns: list[list[tuple[int, str]]] = [[]]  # the agent's texts since each message
        self._turn = turn.Turn()

    def take(self, offset: int, record: Record) -> None:
        self._turn.take(offset, record)
        listed = claude_facts.todo_list(record)
        if listed is not None:
            texts = filter(None, map(claude_facts.open_todo, listed))
            self._todos = {text: (offset, self._todos.get(text, (0, offset))[1]) for text in texts}
        self._take_tasks(offset, record)
        if record.get("type") == "pr-link" and isinstance(record.get("prUrl"), str):
            self._pulls[str(record["prUrl"])] = (offset, self._message)
        if turn.is_spoken(record):
            self._take_spoken(offset, record)

    def found(self) -> Iterator[Iterator[Found]]:
        """One iterator a kind."""
        todos = self._todos.items()
        yield (Found("todo", text, at, f"{since} {text}") for text, (at, since) in todos)
        yield (
            Found("todo", one.subject, one.offset, f"{one.since} {one.subject}")
            for one in self._tasks.values()
            if one.is_open
        )
        yield self._asked()
        pulls = self._pulls.items()
        yield (Found("pull_request", url, at, f"{told} {url}") for url, (at, told) in pulls)
        running = self._turn.running.items()
        yield (Found("task", one.evidence, one.offset, name) for name, one in running)

    def _take_tasks(self, offset: int, record: Record) -> None:
        told, complete = claude_facts.tasks(record)
        known = self._tasks
        if complete:
            self._tasks = {}
        for task in told:
            before = known.get(task.id, _Task("", "pending", offset, offset))
            subject, status = task.subject or before.subject, task.status or before.status
            since = before.since if before.is_open else offset
            if subject:
                self._tasks[task.id] = _Task(subject, status, offset, since)

    def _take_spoken(self, offset: int, record: Record) -> None:
        texts = turn.blocks(record).texts
        for text in texts:
            for url in _PULL.findall(text):
                self._pulls[url] = (offset, self._message)
        if claude_facts.kind_of(record) == "assistant":
            self._turns[-1] += [(offset, text) for text in texts]
        elif texts:
            self._message = offset
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


def changes(store: Store, document: dict[str, Json]) -> Iterator[Found]:
    """What is in no commit, by the git_state of a snapshot. What is known of a path is its content,
    staged or not; where it was deleted, the commit that has it.
    """
    known: dict[str, set[str]] = {}
    for one in _listed(store, document, "files"):
        if isinstance(one, dict):
            known.setdefault(_path(one["path"]), set()).add(_content(one))
    for path, contents in known.items():
        yield Found("uncommitted", path, None, " ".join([path, *sorted(contents)]))
    git = document["git_state"]
    commit = git["current_commit"] if isinstance(git, dict) else None
    for one in _listed(store, document, "deleted"):
        text = f"deleted: {_path(one)}"
        yield Found("uncommitted", text, None, f"{text} {commit}")


def _listed(store: Store, document: dict[str, Json], part: str) -> list[Json]:
    listed = savepoints.listed(store, document, ("git_state", "changes", part))
    return listed if isinstance(listed, list) else []


def _path(path: Json) -> str:
    """Of a path that is no text, its escapes."""
    if isinstance(path, dict):
        return base64.b64decode(str(path["b64"])).decode("utf-8", "backslashreplace")
    return str(path)


def _content(change: dict[str, Json]) -> str:
    segments = change["segments"]
    listed = (
        [one["sha256"] for one in segments if isinstance(one, dict)]
        if isinstance(segments, list)
        else []
    )
    return hashlib.sha256(dump([change["mode"], *listed])).hexdigest()


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
                commits = "1 commit" if count == "1" else f"{count} commits"
                text = f"{short}: {commits} that no remote has"
                yield Found("unpushed", text, None, f"{name} {oid}")
    finally:
        ours.remove()


def _bounded(found: Iterable[Found]) -> Iterator[Found]:
    """No more than HANDOFF_CANDIDATES; those that are left out are one that counts them."""
    left, rest = 0, hashlib.sha256()
    for number, one in enumerate(found):
        if number < limits.HANDOFF_CANDIDATES:
            yield one
            continue
        left += 1
        rest.update(one.key.encode("utf-8", "surrogatepass") + b"\0")
        what = one.what
    if left:
        yield Found(what, f"and {left} more", None, f"more {rest.hexdigest()}")
