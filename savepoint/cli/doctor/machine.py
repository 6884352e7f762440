"""What `doctor` checks of the machine: Python, the hook's program, git, the home, the disk."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from typing import TYPE_CHECKING

from savepoint import __version__, gitcmd
from savepoint.capture import surroundings
from savepoint.cli import terminal
from savepoint.cli.doctor.checks import Check, fail, good, tried, warn
from savepoint.core import limits
from savepoint.core.errors import SavepointError
from savepoint.store import config, registry

if TYPE_CHECKING:
    from savepoint.store.layout import Home

_GIT = (2, 36)  # has core.fsync=all
_HOOK = "savepoint-hook"


def run(home: Home, *, installed: bool) -> list[Check]:
    """All of them. installed: does the agent run our hook?"""
    found = [_python(), _hook(), _git(), _home(home, installed=installed)]
    if os.path.isdir(home.path):
        found += [_disk(home), tried("stores", lambda: _stores(home))]
    return found


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return good("python", f"{version} at {sys.executable}, savepoint {__version__}")


def _hook() -> Check:
    """The agent's settings name this program by its path, and its first line names Python: both go
    stale when the environment is made anew elsewhere (claude-mpm#552).
    """
    path = os.path.join(os.path.dirname(sys.executable), _HOOK)
    todo = "install savepoint again in this environment, then correct the path in the settings"
    try:
        with open(path, "rb") as program:
            first = program.readline(4096)
    except OSError as failure:
        return fail("hook", f"{path}: {failure.strerror}", todo)
    interpreter = os.fsdecode(first.removeprefix(b"#!").strip().partition(b" ")[0])
    if (
        first.startswith(b"#!/")
        and not interpreter.endswith("/sh")
        and not os.path.exists(interpreter)
    ):
        return fail("hook", f"{path} names {interpreter}, which is gone", todo)
    return good("hook", path)


def _git() -> Check:
    env = surroundings.for_children(os.environ)
    result = gitcmd.start(["--version"], env=env).finish(time.monotonic() + limits.CHANGES_SECONDS)
    if not result.ok:
        return warn("git", result.reason, "install git: without it no repository's state is saved")
    said = result.out.decode("utf-8", "backslashreplace").strip()
    found = re.search(r"(\d+)\.(\d+)", said)
    if found is None or (int(found[1]), int(found[2])) < _GIT:
        return warn("git", said, f"upgrade git to {_GIT[0]}.{_GIT[1]} or newer")
    return good("git", said)


def _home(home: Home, *, installed: bool) -> Check:
    try:
        seen = os.stat(home.path)
    except FileNotFoundError:
        return _no_home(home, installed=installed)
    except OSError as failure:
        return fail("home", f"{home.path}: {failure.strerror}", "make it readable")
    if not stat.S_ISDIR(seen.st_mode):
        return fail("home", f"{home.path} is no folder", "move it away, or set SAVEPOINT_HOME")
    if not os.access(home.path, os.W_OK | os.X_OK):
        return fail(
            "home", f"{home.path} is not writable", "make it writable: nothing can be saved"
        )
    if seen.st_mode & 0o077:
        mode = stat.S_IMODE(seen.st_mode)
        return warn("home", f"{home.path} has mode {mode:04o}", f"chmod 700 {home.path}")
    return good("home", home.path)


def _no_home(home: Home, *, installed: bool) -> Check:
    above = os.path.dirname(home.path)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    if not (os.path.isdir(above) and os.access(above, os.W_OK | os.X_OK)):
        detail = f"{home.path} does not exist, and nothing can be made in {above}"
        return fail("home", detail, "make that writable, or set SAVEPOINT_HOME")
    if installed:
        return good("home", f"{home.path} is not there yet; the agent's next event makes it")
    return fail("home", f"{home.path} does not exist", "run `savepoint init` in a project")


def _disk(home: Home) -> Check:
    seen = os.statvfs(home.path)
    free = seen.f_bavail * seen.f_frsize
    detail = f"{terminal.size(free)} free"
    if free < limits.DISK_LOW_BYTES:
        return warn("disk", detail, "free some space: a full disk saves nothing")
    return good("disk", detail)


def _stores(home: Home) -> Check:
    """stores.json is a cache of the configs; a config that cannot be read is in no cache."""
    stores = registry.stores(home)
    for one in stores:
        try:
            config.load(one)
        except SavepointError as failure:
            return fail("stores", failure.message, failure.hint)
    if stores and not registry.is_current(home):
        return warn(
            "stores", "stores.json does not fit the configs", "run `savepoint init` to renew it"
        )
    return good("stores", f"{terminal.counted(len(stores), 'store')} in {home.stores}")
