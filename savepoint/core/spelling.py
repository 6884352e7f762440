"""One value, one spelling: times, digests, keys, instance ids and slugs (format.md 1)."""

from __future__ import annotations

from functools import lru_cache

from savepoint.core import limits
from savepoint.core.errors import MalformedError
from savepoint.core.named import NamedTuple

ZERO_DIGEST = "0" * 64
LAST_TIME = 253402300799  # 9999-12-31T23:59:59Z, the last one that four digits of a year can spell

_TIMES_KEPT = 512  # that were asked for last: a document's are first checked, then taken

# Plain comparisons: a save meets each of these, and to compile expressions for them took it 0.7 ms.
# tests/core/test_spelling.py holds them against the expressions.
_HEX = "0123456789abcdef"
_SNAPSHOT_START, _SNAPSHOT_END = "logs/precompact-saves/snapshot_", ".json"
_INSTANCE_DIGITS = 9  # of a number of an instance
_NAME_DIGITS = 19  # of the number behind the name of a snapshot
_WORD_CHARS = 32
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def time_text(seconds: int) -> str:
    """Unix seconds (0 … LAST_TIME) as `2026-11-30T13:26:49Z`."""
    if not 0 <= seconds <= LAST_TIME:
        raise MalformedError(f"time out of range: {seconds}")
    days, rest = divmod(seconds, 86400)
    year, month, day = _civil(days)
    return f"{year:04}-{month:02}-{day:02}T{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}Z"


def shown_time(seconds: int) -> str:
    """As `time_text`, for people; of what a cluster says, which may be any number."""
    try:
        return time_text(seconds)
    except MalformedError:
        return f"second {seconds}"


@lru_cache(maxsize=_TIMES_KEPT)
def time_seconds(text: str) -> int:
    """The inverse of `time_text`; any other spelling, and a day that does not exist, is refused."""
    if not _is_stamp(text, "--T::Z"):
        raise MalformedError(f"not a time like 2026-11-30T13:26:49Z: {text[:40]!r}")
    year, month, day, hour, minute, second = map(int, _parts(text))
    seconds = _days(year, month, day) * 86400 + hour * 3600 + minute * 60 + second
    if seconds < 0 or time_text(seconds) != text:
        raise MalformedError(f"no such time: {text}")
    return seconds


def _is_stamp(text: str, marks: str) -> bool:
    """Is it a date and a time of that many digits, with these six marks between and behind them?"""
    if len(text) != 20 or not text.isascii() or not "".join(_parts(text)).isdigit():
        return False
    return text[4] + text[7] + text[10] + text[13] + text[16] + text[19] == marks


def _parts(text: str) -> tuple[str, ...]:
    return text[:4], text[5:7], text[8:10], text[11:13], text[14:16], text[17:19]


def _is_number(text: str, digits: int) -> bool:
    """Is it a number from 1 in its one spelling, of at most so many digits?"""
    return 0 < len(text) <= digits and text.isascii() and text.isdigit() and text[0] != "0"


def _civil(days: int) -> tuple[int, int, int]:
    """Days since 1970-01-01 as year, month, day (Howard Hinnant, chrono-compatible algorithms)."""
    era, day_of_era = divmod(days + 719468, 146097)
    year = (day_of_era - day_of_era // 1460 + day_of_era // 36524 - day_of_era // 146096) // 365
    day_of_year = day_of_era - (365 * year + year // 4 - year // 100)
    month = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * month + 2) // 5 + 1
    month += 3 if month < 10 else -9
    return year + era * 400 + (month <= 2), month, day


def _days(year: int, month: int, day: int) -> int:
    year -= month <= 2
    era, year_of_era = divmod(year, 400)
    day_of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return (
        era * 146097
        + year_of_era * 365
        + year_of_era // 4
        - year_of_era // 100
        + (day_of_year - 719468)
    )


def digest(text: str) -> str:
    """`text` if it is 64 lower-case hex digits."""
    if len(text) != 64 or text.strip(_HEX):
        raise MalformedError("not a SHA-256 in lower-case hex")
    return text


def prefixed_digest(text: str) -> str:
    """The bare digest of `sha256:<hex>`, the spelling of the specification's own fields."""
    if not text.startswith("sha256:"):
        raise MalformedError("a hash here starts with sha256:")
    return digest(text[7:])


def hex_bytes(text: str, size: int) -> bytes:
    """`size` bytes from lower-case hex; `bytes.fromhex` alone takes blanks and capitals."""
    if len(text) != 2 * size or text.strip(_HEX):
        raise MalformedError(f"not {size} bytes in lower-case hex")
    return bytes.fromhex(text)


def base58(data: bytes) -> str:
    """Base58 with the Bitcoin alphabet, as Solana spells keys and accounts."""
    number = int.from_bytes(data, "big")
    digits = ""
    while number:
        number, rest = divmod(number, 58)
        digits = _BASE58[rest] + digits
    return "1" * (len(data) - len(data.lstrip(b"\0"))) + digits


def key_bytes(text: str) -> bytes:
    """The 32 bytes of a key or account in base58; a second spelling is refused."""
    number = 0
    for letter in text[:64]:
        index = _BASE58.find(letter)
        if index < 0:
            raise MalformedError("not base58")
        number = number * 58 + index
    if number >= 1 << 256 or base58(data := number.to_bytes(32, "big")) != text:
        raise MalformedError("not a key of 32 bytes in base58")
    return data


class Instance(NamedTuple):
    """An agent identity, `NAME #N`. The key is the identity; this is its name."""

    name: str
    number: int

    def __str__(self) -> str:
        return f"{self.name} #{self.number}"

    @classmethod
    def parse(cls, text: str) -> Instance:
        """`Gabriel #215`: NFC, 1 to 64 characters, no `#`, no controls, no blank at the ends."""
        before, _, number = text.partition("#")
        name = before.removesuffix(" ")
        is_framed = name != before and name == name.strip()
        is_short = 1 <= len(name) <= limits.INSTANCE_NAME_CHARS
        if not (is_framed and is_short and _is_number(number, _INSTANCE_DIGITS)):
            raise MalformedError(f"not an instance id like 'Gabriel #215': {text[:80]!r}")
        if not _is_clean(name):
            raise MalformedError(f"instance name is not NFC or has control characters: {name!r}")
        return cls(name, int(number))

    def slug(self, authority: bytes) -> str:
        """Folder and branch name: words of the id in `[a-z0-9-]`, then 8 hex digits of the key."""
        import re  # a name is made once

        lowered = "".join(c.lower() if c.isascii() else "-" for c in f"{self.name}-{self.number}")
        words = re.sub(r"[^a-z0-9]+", "-", lowered).strip("-")[: limits.SLUG_CHARS].strip("-")
        return f"{words or 'x'}-{authority[:4].hex()}"


def _is_clean(name: str) -> bool:
    """Is it in NFC and without control characters?"""
    if name.isascii():
        return name.isprintable()
    import unicodedata  # costs the hook; few names need it

    kinds = map(unicodedata.category, name)
    is_nfc = unicodedata.is_normalized("NFC", name)
    return is_nfc and not any(kind in ("Cc", "Cs", "Zl", "Zp") for kind in kinds)


def is_session_key(text: str) -> bool:
    """May this session id stand in a file name as it is?"""
    is_plain = text.isascii() and text.replace("-", "0").isalnum()
    return is_plain and len(text) <= limits.SESSION_KEY_CHARS


def session_key(text: str) -> str:
    """`text` if it is a session key."""
    if not is_session_key(text):
        raise MalformedError(f"not a session key: {text[:80]!r}")
    return text


def is_word(text: str) -> bool:
    """Is it like the words that records use: no content, nothing for a terminal?"""
    is_plain = text.isascii() and text.replace("-", "0").replace("_", "0").isalnum()
    return is_plain and text[0].isalpha() and len(text) <= _WORD_CHARS


def word(text: str) -> str:
    """`text` if it is such a word."""
    if not is_word(text):
        raise MalformedError(f"not a word of at most 32 letters, digits, _ and -: {text[:80]!r}")
    return text


def snapshot_file(text: str) -> str:
    """`text` if it names a snapshot below an instance's folder, and nothing outside it."""
    inner = text.removeprefix(_SNAPSHOT_START).removesuffix(_SNAPSHOT_END)
    stamp, number = inner[:20], inner[20:]
    is_numbered = number[:1] == "_" and _is_number(number[1:], _NAME_DIGITS)
    is_whole = text == f"{_SNAPSHOT_START}{inner}{_SNAPSHOT_END}"
    if not is_whole or not _is_stamp(stamp, "--T--Z") or not (is_numbered or not number):
        raise MalformedError(f"not a file of logs/precompact-saves: {text[:80]!r}")
    return text


def counted(count: int, noun: str) -> str:
    """For people: `1 file`, `2 files`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
