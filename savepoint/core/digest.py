"""SHA-256 of little: the interpreter's own, since hashlib loads OpenSSL, which takes a fire 2.3 ms.

For texts, paths and small files; OpenSSL's is the quicker one from some 1 MB on, its loading
included. Where the interpreter was built without its own, there is only that.
"""

from __future__ import annotations

__all__ = ["sha256"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import sha256
else:
    try:
        from _sha2 import sha256  # from Python 3.12
    except ImportError:
        try:
            from _sha256 import sha256
        except ImportError:
            from hashlib import sha256
