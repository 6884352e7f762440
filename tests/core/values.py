"""What the tests of core generate: JSON values, names, mutations of bytes."""

from __future__ import annotations

from hypothesis import strategies as st

from savepoint.core import limits

texts = st.text(max_size=12)  # of every plane, no surrogates
integers = st.integers(limits.JSON_INTEGER_LEAST, limits.JSON_INTEGER_MOST)
counts = st.integers(0, limits.JSON_INTEGER_MOST)
json_values = st.recursive(
    st.none() | st.booleans() | integers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
words = st.from_regex(r"[A-Za-z][A-Za-z0-9_-]{0,31}", fullmatch=True)
session_keys = st.from_regex(r"[A-Za-z0-9-]{1,64}", fullmatch=True)
times = st.integers(0, 253402300799)  # Unix seconds


@st.composite
def mutations(draw: st.DrawFn, data: bytes) -> bytes:
    """Other bytes than `data`, by one small edit of the kinds that spell a value a second way."""
    at = draw(st.integers(0, len(data) - 1))
    inserted = draw(
        st.sampled_from([b" ", b"\n", b"\t", b"\\", b"0", b"-", b"\0", b"\xef\xbb\xbf", b".0"])
        | st.binary(min_size=1, max_size=3)
    )
    changed: bytes = draw(
        st.sampled_from(
            [
                data[:at] + inserted + data[at:],
                data[:at] + data[at + 1 :],
                data[:at] + inserted + data[at + 1 :],
                data[:at] + bytes([data[at] ^ 32]) + data[at + 1 :],  # the case of a letter
                data[:at] + b"\\u%04x" % data[at] + data[at + 1 :],
                data[:at] + data[at : at + 1] + data[at:],
                data[:at],
                data[at + 1 :] + data[: at + 1],
            ]
        )
    )
    return changed if changed != data else data + inserted
