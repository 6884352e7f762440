"""An example of every part of a snapshot, and a seal for it (docs/format.md, sections 5 and 6)."""

from __future__ import annotations

import hashlib

from tests.vectors.builders import Members, Value, domain, sha256, spell

PACK = "cd" * 32
TIME = "2026-11-30T13:03:49Z"
SESSION = "0d3a6b1e-5f0c-4f43-9d0e-7c2b8a1f9e55"
LONG = b"x" * (2**20 - 1) + b"\n"  # exactly one segment
SHORT = b'{"type":"user"}\n'


def segment(raw: bytes, offset: int = 24) -> Members:
    """The entry of a segment; the length is made up."""
    return {
        "sha256": sha256(raw),
        "bytes": len(raw),
        "lines": raw.count(b"\n"),
        "pack": PACK,
        "offset": offset,
        "length": 13 + min(len(raw), 100),
    }


def root(*pieces: bytes) -> str:
    """The root over these segments."""
    size = sum(map(len, pieces)).to_bytes(8, "little")
    digests = b"".join(hashlib.sha256(one).digest() for one in pieces)
    return sha256(domain("root") + size + digests)


def file(path: Value, *pieces: bytes) -> Members:
    """A file of these segments."""
    return {
        "path": path,
        "bytes": sum(map(len, pieces)),
        "root": root(*pieces),
        "segments": [segment(one) for one in pieces],
    }


def loaded(known: str, changed: Value, *pieces: bytes) -> Members:
    """The entry of a loaded file that is stored."""
    whole = b"".join(pieces)
    return {
        "known": known,
        "sha256": sha256(whole),
        "size": len(whole),
        "changed": changed,
        "reason": None,
        "segments": [segment(one) for one in pieces],
    }


def not_stored(known: str, reason: str) -> Members:
    """The entry of one that is not."""
    nothing: Members = dict.fromkeys(("sha256", "size", "changed"))
    return {"known": known, **nothing, "reason": reason, "segments": None}


def change(path: Value, kind: str, *pieces: bytes) -> Members:
    """A changed file of the repository."""
    size = sum(map(len, pieces))
    listed: list[Value] = [segment(one) for one in pieces]
    return {"path": path, "kind": kind, "mode": "100644", "bytes": size, "segments": listed}


def full() -> Members:
    """Every member, with something in it."""
    return {
        "format": 1,
        "type": "PRECOMPACT_SAVEPOINT",
        "timestamp_iso8601": TIME,
        "instance_id": "Gabriel #215",
        "instance_number": 215,
        "salt": "000102030405060708090a0b0c0d0e0f",
        "session_token_budget": 200000,
        "tokens_used_this_session": 87500,
        "tokens_remaining": 112500,
        "context_utilization_percent": 85,
        "token_source": "usage of the last message",
        "conversation_history": {
            "agent": "claude",
            "client_version": "2.1.29",
            "session_id": SESSION,
            "scope": "main",
            "message_count": 2,
            "records": 3,
            "sessions": {SESSION: 3},
            "compactions": 0,
            "torn_tail_bytes": 0,
            "prefix_check": "full",
            "transcript": file("/home/ada/.claude/projects/-x/a.jsonl", LONG, SHORT),
            "companions": [file("a/subagents/agent-1.jsonl", SHORT), file("a/empty.txt")],
        },
        "session_state": {"identity": "Gabriel #215", "q_value": "0.987654321"},
        "session_current": {
            **file("session_current.json", b'{"q_value":0.987654321}'),
            "numbers_as_text": ["q_value"],
        },
        "succession_state": file("dynasty.json", b"{}"),
        "handoff_state": file("handoff.json", b"[]"),
        "loaded_files": {
            "src/main.py": loaded("read", False, b"print(1)\n"),
            "empty.py": loaded("written", None),
            ".env": not_stored("attached", "excluded: environment file"),
        },
        "git_state": {
            "current_commit": "49064d0abc12349064d0abc12349064d0abc1234",
            "branch": "main",
            "remotes": {"origin": "github.com:LeeMetaX/mental-python-module.git"},
            "status": "changed",
            "last_push": "unknown",
            "object_format": "sha1",
            "operation": "merge",
            "roots": {"project": "/home/ada/x", "worktree": None},
            "changes": {
                "files": [
                    change("src/main.py", "staged", b"print(2)\n"),
                    change({"b64": "/w=="}, "untracked"),
                ],
                "deleted": ["gone.py"],
                "excluded": [{"path": "IDENTITY.md", "reason": "never captured"}],
                "omitted": None,
            },
        },
        "guidance": [{"path": "CLAUDE.md", "kind": "rules", "sha256": sha256(b"rules")}],
        "omitted": [{"what": "a/tool-results/1", "reason": "unreadable"}],
        "notes": ["the last line of the transcript is not whole"],
        "checkpoint_verification": {
            "modulo_zero": True,
            "bootstrap_confirmed": True,
            "contextual_priming": "PARTIAL",
            "standing_verified": True,
        },
    }


def bare() -> Members:
    """Everything that may be null, empty or absent is."""
    document = full()
    for name in ("succession_state", "handoff_state", "guidance"):
        del document[name]
    history = document["conversation_history"]
    git = document["git_state"]
    assert isinstance(history, dict)  # for the type checker
    assert isinstance(git, dict)
    history |= {"client_version": None, "transcript": None, "companions": [], "sessions": {}}
    git |= dict.fromkeys(("current_commit", "branch", "object_format", "operation"))
    git |= {"remotes": {}, "changes": _changes([], [], [])}
    tokens = ("session_token_budget", "tokens_used_this_session", "tokens_remaining")
    document |= dict.fromkeys((*tokens, "context_utilization_percent", "token_source"))
    return document | {"session_state": None, "session_current": None, "loaded_files": {}}


def _changes(files: Value, deleted: Value, excluded: Value) -> Members:
    return {"files": files, "deleted": deleted, "excluded": excluded, "omitted": None}


def nested(depth: int) -> Value:
    """Arrays in arrays."""
    value: Value = 0
    for _ in range(depth):
        value = [value]
    return value


def sealed(document: Value) -> bytes:
    """The file of a document: with its integrity, whatever else is wrong with it."""
    return seal(spell(document))


def seal(text: bytes, **wrong: Value) -> bytes:
    """As `sealed`, of its bytes; `wrong` replaces members of the integrity."""
    covered = text + b"\n"
    integrity: Members = {
        "hash_sha256": sha256(covered),
        "size_bytes": len(covered),
        "created_at": TIME,
    }
    return text[:-1] + b',"integrity":' + spell(integrity | wrong) + b"}\n"


FULL = spell(full())


def with_member(path: str, value: Value) -> bytes:
    """A sealed copy of the example with the member at `a|b|0|c` set."""
    return sealed(_set(full(), path.split("|"), value))


def _set(whole: Value, path: list[str], value: Value) -> Value:
    if not path:
        return value
    step, *rest = path
    if isinstance(whole, list):
        return [_set(one, rest, value) if step == str(n) else one for n, one in enumerate(whole)]
    assert isinstance(whole, dict)  # for the type checker
    return {**whole, step: _set(whole[step], rest, value)}
