"""Real paths of many files that lie in few folders: `realpath` looks at every folder for each."""

from __future__ import annotations

import os

_DEPTH = 100  # folders; a deeper path is left to `realpath`


class RealPaths:
    """As os.path.realpath, while nothing is moved: what was found of a folder is kept."""

    def __init__(self) -> None:
        self._known: dict[str, str] = {}

    def of(self, path: str) -> str:
        """The real path of `path`, whether there is such a file or not."""
        if path not in self._known:
            is_plain = path.startswith("/") and not path.startswith("//")
            if is_plain and path.count("/") < _DEPTH:
                self._known[path] = self._found(path)
            else:
                self._known[path] = os.path.realpath(path)
        return self._known[path]

    def _found(self, path: str) -> str:
        folder, name = os.path.split(path)
        if folder == path or name in ("", ".", ".."):
            return os.path.realpath(path)
        whole = os.path.join(self.of(folder), name)
        return os.path.realpath(whole) if os.path.islink(whole) else whole
