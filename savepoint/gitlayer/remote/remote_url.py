"""The URL of a remote: which kinds there are, and what of one may be shown.

It is chosen by the owner alone. What could make git run a program, send savepoints in the clear, or
carry a password into an argument list is refused, and no refusal repeats the URL. The user of a web
address, who is a token where there is no password, is handed to git apart.
"""

from __future__ import annotations

import os
import re

from savepoint.core import limits
from savepoint.core.errors import UsageError
from savepoint.core.named import NamedTuple

PROTOCOLS = "file:https:ssh"  # what git may speak, whatever the user's config makes of a URL

_KINDS = "a remote is a path, file:///PATH, ssh://[USER@]HOST/PATH, [USER@]HOST:PATH or https://…"
_HELPER = "give it to git instead: `git credential approve`, or a credential helper"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)")
_SCP = re.compile(r"(?:[^/@:\[\]]+@)?(?:[^/@:\[\]]+|\[[0-9A-Fa-f:.]+\]):(?!:)(.+)")
_AUTHORITY = re.compile(
    r"(?:([^/@:]*)(:[^/@]*)?@)?([^/@:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(/.*)"
)
_UNPRINTABLE_ESCAPE = re.compile(r"%(?:[01][0-9A-Fa-f]|7[Ff])")
_USER = re.compile(r"://[^/'\"@]*@")
_QUERY = re.compile(r"(://[^'\"?#]*)[?#][^'\"]*")


class RemoteUrl(NamedTuple):
    """A remote as git is told it."""

    text: str
    kind: str  # path | file | ssh | https

    @property
    def shown(self) -> str:
        """For people and logs: of a web address only what holds no secret."""
        return without_secrets(self.text) if self.kind == "https" else self.text

    @property
    def address(self) -> str:
        """For argument lists, which every user of the machine can read."""
        return _USER.sub("://", self.text) if self.kind == "https" else self.text

    @property
    def settings(self) -> dict[str, str]:
        """What git needs to know beside the address, as variables: only their owner reads those."""
        user = _USER.search(self.text) if self.kind == "https" else None
        if user is None or user[0] == "://@":
            return {}
        from urllib.parse import unquote

        host = self.address[: self.address.index("/", len("https://"))]
        return {
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"credential.{host}.username",
            "GIT_CONFIG_VALUE_0": unquote(user[0].removeprefix("://").removesuffix("@")),
        }


def parse(text: str, folder: str) -> RemoteUrl:
    """The remote that a person named; a relative path is one from `folder`. Raises UsageError."""
    if not text or len(text) > limits.REMOTE_URL_CHARS:
        raise UsageError(f"a remote has 1 to {limits.REMOTE_URL_CHARS} characters", hint=_KINDS)
    if not text.isprintable() or _UNPRINTABLE_ESCAPE.search(text):
        raise UsageError("the remote has a control character in it", hint=_KINDS)
    if text.startswith("-"):  # git would read it as an option
        raise UsageError("a remote does not start with `-`", hint=_KINDS)
    scheme = _SCHEME.fullmatch(text)
    if scheme:
        return _with_scheme(text, scheme[1], scheme[2])
    if re.match(r"[A-Za-z0-9+.-]*::", text):  # ext::COMMAND, and whatever git-remote-X there is
        raise UsageError("a remote that runs a program is refused", hint=_KINDS)
    if not text.startswith(("/", ".")) and ":" in text.partition("/")[0]:
        return _scp(text)
    if text.startswith("~"):
        raise UsageError("the path of a remote starts at / or here, not with ~", hint=_KINDS)
    return RemoteUrl(os.path.abspath(os.path.join(folder, text)), "path")


def without_secrets(text: str) -> str:
    """`text` with whatever stands before the host of a URL, or after its path, left out."""
    return _QUERY.sub(r"\1", _USER.sub("://", text))


def _with_scheme(text: str, scheme: str, rest: str) -> RemoteUrl:
    if scheme == "file":
        if not rest.startswith("/"):
            raise UsageError("the path of a file:// remote is absolute", hint="file:///PATH")
        return RemoteUrl(text, "file")
    if scheme not in ("ssh", "https"):
        raise UsageError(f"{scheme}:// is no protocol for a remote", hint=_KINDS)
    parts = _AUTHORITY.fullmatch(rest)
    if parts is None or any(one.startswith("-") for one in (parts[1] or "", parts[3])):
        raise UsageError(f"this {scheme}:// remote names no host and path", hint=_KINDS)
    if parts[2]:
        raise UsageError("the remote has a password in it", hint=_HELPER)
    return RemoteUrl(text, scheme)


def _scp(text: str) -> RemoteUrl:
    """HOST:PATH. ssh takes a host that starts with `-` for an option, and so may what it runs."""
    parts = _SCP.fullmatch(text)
    if parts is None or parts[1].startswith("-"):
        raise UsageError("the remote names no host and path", hint=_KINDS)
    if text.partition("@")[2].startswith("-"):
        raise UsageError("the host of a remote does not start with `-`", hint=_KINDS)
    if "@" not in text.partition(":")[0] and "@" in parts[1]:  # USER:PASSWORD@HOST, https:/USER@…
        raise UsageError("the remote has a password in it, or is no URL", hint=_HELPER)
    return RemoteUrl(text, "ssh")
