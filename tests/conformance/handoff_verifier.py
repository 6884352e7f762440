"""A second verifier of logs of threads and receipts. It shares no code with savepoint: section 17
of docs/format.md, on the reader of its blocks in verifier.py."""
# fmt: off
# ruff: noqa: ANN401, C901, D209, E701, I001, PLR0912, PLR0915  # dense, as verifier.py

from typing import Any
from tests.conformance.verifier import (
    SHAPES, canonical, fits, key_bytes, outcome, record, require, sha256, verify)

KINDS = "|".join(name for name, shape in SHAPES.items()
                 if name.startswith("thread_") and "thread" in dict(shape))
ADDS = {"offer": "OFFER", "work": "ITEM", "bind": "BIND"}

def signed(line: bytes, purpose: str, value: Any) -> None:
    message = b"\xffsavepoint/" + purpose.encode() + b"/v1\0"
    message += line.rpartition(b',"signature":"')[0] + b"}"
    verify(key_bytes(value["signer"]), message, bytes.fromhex(value["signature"]))

def line_of(data: bytes, before: list[bytes]) -> Any:
    """One line, behind those that hold."""
    value = canonical(data, 8192, "v")
    require(fits(KINDS, value))
    last = sha256(before[-1]) if before else "0" * 64
    require((value["seq"], value["prev"]) == (len(before) + 1, last))
    signed(data, "handoff", value)
    return value

class State:
    """What the lines so far say."""

    def __init__(self) -> None:
        self.threads: dict[str, dict[str, Any]] = {}
        self.items: dict[str, dict[str, Any]] = {}
        self.stands = 0

    def waiting(self, thread: Any) -> list[str]:
        return [name for name, one in self.items.items()
                if one["at"] == thread["before"] and one["is"] == "open"]

    def free(self, session: str | None) -> bool:
        return session is None or all(one["session"] != session for one in self.threads.values())

    def idle(self, name: str) -> bool:
        own = self.threads[name]
        held = [one for one in self.items.values() if one["at"] == name and one["is"] != "closed"]
        return not (held or own["h"] or own["a"] or self.waiting(own)
                    or not all(own["candidates"].values()))

    def take(self, one: Any) -> None:
        name, kind = one["thread"], one["kind"]
        if kind == "open":
            require(name not in self.threads and self.free(one["session"]))
            self.new(name, None, one["session"], open=True)
            return
        require(name in self.threads)
        thread, item = self.threads[name], self.items.get(one.get("item", ""))
        if kind == "accept":
            require(thread["awaited"] and thread["before"] == one["predecessor"])
            for other, own in self.threads.items():
                if own["session"] == one["session"]:
                    require(own["open"] and self.idle(other))
                    own["open"] = False
            thread.update(awaited=False, open=True, session=one["session"])
            return
        if kind == "close":
            require(item and item["is"] != "closed" and item["at"] == name)
            self.items[one["item"]]["is"] = "closed"
            return
        if kind in {"hold_end", "action_end"}:
            require(one["stand"] in thread[kind[0]])
            del thread[kind[0]][one["stand"]]
            return
        require(thread["open"])
        if kind in ADDS or kind in {"hold_begin", "action_begin", "go"}:
            require(not self.waiting(thread))
        if kind in ADDS:
            number = sum(other["kind"] == kind for other in self.items.values()) + 1
            require(one["item"] == f"{ADDS[kind]}-{number}")
            self.items[one["item"]] = {"kind": kind, "at": name, "is": "open"}
        elif kind == "go":
            require(item and item["kind"] == "offer" and item["is"] != "closed")
            require(item and item["at"] == name)
        elif kind in {"hold_begin", "action_begin"}:
            self.stands += 1
            require(one["stand"] == f"{kind.split('_', 1)[0].upper()}-{self.stands}")
            thread[kind[0]][one["stand"]] = one.get("process")
        elif kind == "candidate":
            require(one["candidate"] not in thread["candidates"])
            thread["candidates"][one["candidate"]] = False
        elif kind in {"map", "dismiss"}:
            require(thread["candidates"].get(one["candidate"]) is False)
            require(kind == "dismiss" or item)
            thread["candidates"][one["candidate"]] = True
        elif kind == "gather": thread["from"] = one["from"]
        elif kind == "settle":
            require(thread["from"] == one["from"] and all(thread["candidates"].values()))
            require(not thread["h"] and None not in thread["a"].values())
            require(not self.waiting(thread) and one["successor"] not in self.threads)
            thread["open"] = False
            self.new(one["successor"], name, None, open=False)
        elif kind in {"take", "leave"}:
            require(one["item"] in self.waiting(thread))
            if kind == "leave": self.items[one["item"]]["is"] = "left"
            else:
                require((one["value"] is None) == (item is not None and item["kind"] != "bind"))
                self.items[one["item"]]["at"] = name

    def new(self, name: str, before: str | None, session: str | None, *, open: bool) -> None:  # noqa: A002
        self.threads[name] = {"before": before, "session": session, "open": open, "h": {}, "a": {},
                              "awaited": not open, "from": None, "candidates": {}}

def log(data: bytes) -> dict[str, Any]:
    """The outcome, how many lines hold, and how many bytes behind them are torn."""
    (*lines, tail), good, state = data.split(b"\n"), list[bytes](), State()
    def one(line: bytes) -> None:
        state.take(line_of(line, good))
        good.append(line)
    for line in lines:
        found = outcome(one, line)
        if found != "ok":
            return {"expect": "unsupported" if found == "unsupported" else "tampered"}
    torn = 0 if outcome(line_of, tail, good) == "ok" else len(tail)
    if tail and not torn and outcome(one, tail) != "ok":
        return {"expect": "tampered"}
    return {"expect": "ok", "lines": len(good), "torn": torn}

def receipt(data: bytes) -> None:
    require(data.endswith(b"}\n"))
    value = canonical(data[:-1], 2**22, "v")
    require(fits("receipt", value))
    names = [one["item"] for one in value["items"]]
    require(len(set(names)) == len(names))
    one, line = record(value["record"].encode()), value["savepoint"]
    require(one["kind"] == "save" and all(one[name] == line[name] for name in line))
    signed(data[:-1], "receipt", value)
