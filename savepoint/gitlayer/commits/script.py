"""What git fast-import reads: a script of objects and refs."""

from __future__ import annotations


def data(content: bytes) -> bytes:
    """Bytes, whatever they are."""
    return b"data %d\n%b\n" % (len(content), content)


def file(path: str, content: bytes) -> bytes:
    """A file of the commit that is being described."""
    return b"M 100644 inline %b\n" % path.encode() + data(content)
