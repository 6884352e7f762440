"""Locks: flock on files of our own. A dead process leaves no lock, so none is ever stolen."""

from __future__ import annotations

import errno
import fcntl
import os
import time

from savepoint.core import limits
from savepoint.core.errors import BusyError, DiskError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self


class Lock:
    """A lock, held inside a `with` block: exclusive, or with `shared` beside other shared ones.

    `deadline` is a time.monotonic() value. Raises BusyError when it passes, or LOCK_WAIT_SECONDS:
    a command has no deadline, but it does not wait for ever for a process that hangs.
    """

    def __init__(self, path: str, deadline: float, *, shared: bool = False) -> None:
        self._path = path
        self._how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
        self._deadline = min(deadline, time.monotonic() + limits.LOCK_WAIT_SECONDS)
        self._fd = -1

    def __enter__(self) -> Self:
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._fd = os.open(self._path, flags, 0o600)
            self._wait()
        except OSError as failure:
            self._close()
            raise DiskError.of(failure, self._path) from failure
        except BusyError:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._close()

    def _wait(self) -> None:
        while True:
            try:
                fcntl.flock(self._fd, self._how)
            except OSError as failure:
                if failure.errno not in (errno.EWOULDBLOCK, errno.EINTR):
                    raise
            else:
                return
            if time.monotonic() >= self._deadline:
                raise BusyError(f"{self._path} is held by another savepoint process")
            time.sleep(limits.LOCK_POLL_SECONDS)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
