"""A second verifier of records, indexes and snapshots. It shares no code with savepoint: kinds and
members are read from the blocks of docs/format.md, so that these too are held to the vectors."""
# fmt: off
# ruff: noqa: ANN401, D209, E401, E701, I001, PLR0911  # dense, to stay within 150 lines

import base64, datetime as dt, hashlib, json, re, unicodedata
from pathlib import Path
from typing import Any
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

FORMAT = (Path(__file__).parents[2] / "docs" / "format.md").read_text(encoding="utf-8")
KINDS = dict(re.findall(r"(?m)^(\w+) +(.+)$", *re.findall(r"(?ms)^```kinds\n(.*?)^```", FORMAT)))
SHAPES = {name: re.findall(r"([\w!]+): (\S+)", members)
          for block in re.findall(r"(?ms)^```members\n(.*?)^```", FORMAT)
          for name, members in re.findall(r"(?m)^(\w+)\n((?:  .*\n)*)", block)}
TOKEN = re.compile(r'"(?:[^"\\\x00-\x1f]|\\["\\bfnrt]|\\u00(?:0[0-7bef]|1[0-9a-f]))*+"'
                   r"|-?[1-9][0-9]*|0|true|false|null|[\[\]{},:]")
BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
P, Y8 = 2**255 - 19, 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826

def require(held: object, outcome: str = "malformed") -> bool:
    if held: return True
    raise ValueError(outcome)

def outcome(check: Any, *given: Any) -> str:
    try: check(*given)
    except InvalidSignature: return "tampered"
    except ValueError as refused:  # ours, or of JSON, UTF-8, base64, a date
        return str(refused) if str(refused) in {"tampered", "unsupported"} else "malformed"
    return "ok"

def sha256(data: bytes) -> str: return hashlib.sha256(data).hexdigest()

def unique(pairs: list[Any]) -> Any:
    return require(len(dict(pairs)) == len(pairs)) and dict(pairs)

def canonical(data: bytes, limit: int, version: str = "") -> Any:
    """Section 2: tokens in their one spelling, and nothing between them. Section 12: versions."""
    text, end, depth = data.decode(), 0, 0
    for token in TOKEN.finditer(text):
        word, start, end = token[0], end, token.end()
        depth += (word in "[{") - (word in "]}")
        require(token.start() == start and depth <= 64)
        if word[0] in "-0123456789": require(len(word) < 21 and -(2**63) <= int(word) < 2**64)
    require(end == len(text) and len(data) <= limit)
    value = json.loads(text, object_pairs_hook=unique)
    newest = value.get(version) if isinstance(value, dict) else None
    require(type(newest) is not int or newest < 2, "unsupported")
    return value

def fits(kind: str, value: Any, opened: Any = None, files: Any = None) -> bool:
    """The notation of the blocks (section 1); `files` collects what has segments."""
    inner, mark, more = kind[:-1], kind[-1], (opened, files)
    if mark == "~" and fits("spilled", value):
        data = b"".join(opened[one["sha256"]] for one in value["list"])
        whole = value["whole"] = canonical(data, 2**28)
        return fits(inner, whole, *more) and require(len(whole) == value["count"], "tampered")
    if mark in "?~": return (mark == "?" and value is None) or fits(inner, value, *more)
    if mark in "*%" and isinstance(value, list if mark == "*" else dict):
        return all(fits(inner, x, *more) for x in (value if mark == "*" else dict(value).values()))
    if "|" in kind: return any(fits(one, value) for one in kind.split("|"))
    if kind in SHAPES and isinstance(value, dict):
        here = {n.strip("!"): k for n, k in SHAPES[kind] if n[-1] != "!" or n[:-1] in value}
        if files is not None and value.get("segments") is not None: files.append(value)
        return list(here) == list(value) and all(fits(here[n], value[n], *more) for n in here)
    if "…" in KINDS.get(kind, ""):
        least, most = map(int, KINDS[kind].split("…"))
        return type(value) is int and least <= value <= most
    if kind in KINDS and isinstance(value, str):
        spelled = re.fullmatch(KINDS[kind], value, re.ASCII)
        return bool(spelled and (kind not in MEANING or MEANING[kind](value)))
    types: dict[str, Any] = {"bool": bool, "null": type(None), "any": object}
    return isinstance(value, types[kind]) if kind in types else bool(value == kind)

def key_bytes(text: str) -> bytes:
    number: int = sum(BASE58.index(letter) * 58**place for place, letter in enumerate(text[::-1]))
    ones = len(text) - len(text.lstrip("1"))
    return bytes(ones) + number.to_bytes((number.bit_length() + 7) // 8, "big")

MEANING: dict[str, Any] = {  # what no pattern says
    "time": lambda text: dt.datetime.fromisoformat(text[:-1]).year >= 1970,
    "key": lambda text: len(key_bytes(text)) == 32,
    "base64": lambda text: base64.b64encode(base64.b64decode(text, validate=True)).decode() == text
        and outcome(base64.b64decode(text).decode) != "ok",
    "instance": lambda text: text[:text.rindex(" #")].strip() == text[:text.rindex(" #")]
        and unicodedata.is_normalized("NFC", text)
        and not {unicodedata.category(one) for one in text} & {"Cc", "Cs", "Zl", "Zp"}}

def verify(key: bytes, message: bytes, signature: bytes) -> None:  # section 8: strict ed25519
    heights = {int.from_bytes(one, "little") % 2**255 for one in (key, signature[:32])}
    require(max(heights) < P and not heights & {0, 1, P - 1, Y8, P - Y8}, "tampered")
    Ed25519PublicKey.from_public_bytes(key).verify(signature, message)

def record(line: bytes) -> dict[str, Any]:
    """Section 3, all but the signature."""
    value: dict[str, Any] = canonical(line, 8192, "v")
    require(fits("birth|save|restore|retire|accept_gap|accept_remote|accept_recreated", value))
    first, last = value.get("first"), value.get("last")
    require((first is None) == (last is None) and (first or 0) <= (last or 0))
    return value

def link(line: bytes, chain: list[Any], gaps: list[Any], faults: set[str]) -> None:
    """Section 4: `line` behind `chain`, whose items are a record and the hash of its line."""
    one = record(line)
    birth, before, prev = (chain[0][0], *chain[-1]) if chain else (one, {"seq": 0}, "0" * 64)
    jump = one["seq"] > before["seq"] + 1 and faults <= {"ok"}
    linked = jump or (one["seq"], one["prev"]) == (before["seq"] + 1, prev)
    linked &= "unsupported" not in faults and before.get("kind") != "retire"
    same = all(one[name] == birth[name] for name in ("signer", "instance"))
    require(linked and same and birth["kind"] == "birth", "tampered")
    signed = b"\xffsavepoint/record/v1\0" + line.rpartition(b',"signature":"')[0] + b"}"
    verify(key_bytes(one["signer"]), signed, bytes.fromhex(one["signature"]))
    gaps += [[before["seq"] + 1, one["seq"] - 1]] * jump
    chain.append((one, sha256(line)))

def index(data: bytes) -> dict[str, Any]:
    """Section 4: the outcome, and how many records, torn bytes and which gaps there are."""
    (*lines, tail), chain, gaps, faults = data.split(b"\n"), list[Any](), list[Any](), {"ok"}
    for line in lines: faults.add(outcome(link, line, chain, gaps, faults))
    torn = 0 if outcome(link, tail, chain, gaps, faults) == "ok" else len(tail)
    worst = "tampered" if faults & {"malformed", "tampered"} else max(faults)
    found = "gap" if gaps and worst == "ok" else worst
    return {"expect": found, "records": len(chain), "torn": torn, "gaps": gaps}

def snapshot(data: bytes, opened: dict[str, bytes], line: bytes = b"") -> None:
    """Section 5. `opened`: hash → bytes of lists kept outside; `line`: of the record, if any."""
    require(data.endswith(b"}\n"))
    value, files = canonical(data[:-1], 2**23 - 1, "format"), list[Any]()
    require(fits("snapshot", value, opened, files))
    require(value["instance_id"].endswith(f" #{value['instance_number']}"))
    covered, told = data[: data.rindex(b',"integrity":')] + b"}\n", value["integrity"]
    require(told == told | {"hash_sha256": sha256(covered), "size_bytes": len(covered)}, "tampered")
    for file in files:
        size, parts = file.get("bytes", file.get("size")), file["segments"]
        parts = parts["whole"] if isinstance(parts, dict) else parts
        require("known" not in file or None not in (file["sha256"], size))
        digests = [one["sha256"] for one in parts]
        rooted = size.to_bytes(8, "little") + bytes.fromhex("".join(digests))
        root, only = sha256(b"\xffsavepoint/root/v1\0" + rooted), [*digests, sha256(b"")][0]
        require(size == sum(one["bytes"] for one in parts) and file.get("root", root) == root
                and (len(parts) > 1 or file.get("sha256", only) == only), "tampered")
    if line:
        session = value["conversation_history"]["session_id"]
        same = ("tokens_used_this_session", "tokens_remaining", "context_utilization_percent")
        require(record(line).items() >= ({name: value[name] for name in same} | {
            "snapshot_hash": "sha256:" + sha256(data), "snapshot_size_bytes": len(data),
            "timestamp": value["timestamp_iso8601"], "instance": value["instance_id"],
            "session_id": session if fits("session", session) else sha256(session.encode()),
        }).items(), "tampered")
