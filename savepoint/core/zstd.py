"""zstd: that of the standard library, where it has one. Imported late: only a save needs it, and
a fire that finds nothing new would pay two milliseconds for it.
"""

from __future__ import annotations

try:
    from compression import zstd  # type: ignore[import-not-found]  # Python 3.14 has its own
except ImportError:
    from backports import zstd

__all__ = ["zstd"]
