"""The trusted head: the highest state ever seen of each witness. It makes a rollback visible, so it
lies outside the store, and each of its numbers only rises (TUF does the same with versions).
"""

from __future__ import annotations

import os

from savepoint.core import limits, trusted_head
from savepoint.core.errors import MalformedError, UnsupportedFormatError
from savepoint.core.trusted_head import TrustedHead, first
from savepoint.store import durable
from savepoint.store.files import read_bounded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from savepoint.store.layout import InstancePaths

__all__ = ["TrustedHead", "first", "load", "make_folder", "save"]


def load(paths: InstancePaths) -> TrustedHead | None:
    """None where there is none, or only its ruins: a power cut may leave an empty file, which must
    count as missing, not as damage. Raises DiskError, and UnsupportedFormatError: what a newer
    version has seen is no ruin, and one of ours in its place would forget it.
    """
    try:
        data = read_bounded(paths.trusted, limits.SMALL_DOCUMENT_BYTES)
        return trusted_head.parse(data) if data else None
    except UnsupportedFormatError as failure:
        raise UnsupportedFormatError(f"{paths.trusted} {failure.message}") from None
    except MalformedError:
        return None


def save(paths: InstancePaths, head: TrustedHead) -> None:
    """Write it. It may lag after a crash, so its directory is not synced; it is never torn."""
    durable.replace(paths.trusted, head.to_bytes(), durable_name=False)


def make_folder(paths: InstancePaths) -> None:
    """The folder that the heads of this store lie in."""
    durable.make_directories(os.path.dirname(paths.trusted))
