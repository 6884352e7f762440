"""Remotes that refuse a push, or are not there: what is told, and that nothing hangs."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from savepoint.core.errors import (
    PushRefusedError,
    RemoteUnreachableError,
)
from tests.gitlayer.remotes import Bare, Pushing, git, is_gone

# a remote that refuses


def _refused(it: Pushing) -> PushRefusedError:
    it.saved(1)
    with pytest.raises(PushRefusedError) as refused:
        it.push()
    assert it.tracking() is None
    assert it.head().remote_tip is None
    return refused.value


def test_the_line_of_a_remote_that_refuses_is_told(it: Pushing) -> None:
    it.bare.hook("pre-receive", "echo no pushes on a friday >&2; exit 1")
    failure = _refused(it)
    assert failure.message.endswith("refuses: no pushes on a friday")
    assert (failure.exit_code, failure.retry) == (30, False)


def test_a_refusal_without_a_word_names_what_git_says(it: Pushing) -> None:
    it.bare.hook("pre-receive", "exit 1")
    assert _refused(it).message.endswith("refuses: pre-receive hook declined")


def test_what_a_remote_says_steers_no_terminal_and_has_an_end(it: Pushing) -> None:
    it.bare.hook("pre-receive", r"printf 'error: \033[31m%01000d\n' 7 >&2; exit 1")
    message = _refused(it).message
    assert "\x1b" not in message
    assert "\\x1b[31m0000" in message
    assert len(message) < 600


def test_ten_megabytes_of_progress_hide_no_refusal(it: Pushing) -> None:
    flood = "yes 'counting, counting, counting' | head -c 10000000 >&2"
    it.bare.hook("pre-receive", f"{flood}; echo >&2; echo error: quota exceeded >&2; exit 1")
    assert "quota exceeded" in _refused(it).message


def test_a_size_limit_of_the_remote_is_a_refusal(it: Pushing) -> None:
    it.bare.git("config", "receive.maxInputSize", "100")
    assert "exceeds maximum allowed size" in _refused(it).message


def test_a_protected_branch_is_a_refusal(it: Pushing) -> None:
    it.bare.hook("update", "echo error: GH006: Protected branch update failed >&2; exit 1")
    assert "GH006" in _refused(it).message


def test_a_remote_of_another_hash_is_a_refusal(it: Pushing, tmp_path: Path) -> None:
    Bare.new(tmp_path / "sha256.git", "--object-format=sha256")
    it.use(str(tmp_path / "sha256.git"))
    assert "hash algorithm" in _refused(it).message


def test_a_remote_that_takes_a_push_and_drops_it_is_not_believed(it: Pushing) -> None:
    it.bare.hook("post-receive", f"git update-ref -d refs/heads/savepoints/{it.slug}")
    assert "does not have it" in _refused(it).message


# a remote that is not there


def _unreachable(it: Pushing, *, seconds: float = 20) -> RemoteUnreachableError:
    if not it.layer.ref_file.exists():
        it.saved(1)
    with pytest.raises(RemoteUnreachableError) as failed:
        it.push(seconds=seconds)
    assert (failed.value.exit_code, failed.value.retry) == (30, True)
    return failed.value


def test_no_remote_at_that_path(it: Pushing, tmp_path: Path) -> None:
    it.use(str(tmp_path / "unplugged.git"))
    assert "does not appear to be a git repository" in _unreachable(it).message


def test_a_remote_that_hangs_is_ended_with_all_that_it_started(it: Pushing, tmp_path: Path) -> None:
    it.saved(1)
    mark = tmp_path / "pid"
    it.bare.hook("pre-receive", f"echo $$ > {mark}; exec sleep 600")
    began = time.monotonic()
    assert "out of time" in _unreachable(it, seconds=3).message
    assert time.monotonic() - began < 50
    assert is_gone(int(mark.read_text()))


def test_a_broken_global_config_is_told(it: Pushing) -> None:
    it.saved(1)
    Path(os.environ["HOME"], ".gitconfig").write_text("[user\n")
    assert "bad config line 1" in _unreachable(it).message


def test_the_user_settings_count_but_nobody_elses_hooks(it: Pushing, tmp_path: Path) -> None:
    """InsteadOf and the like are why the user's config is read; a global hooksPath is not."""
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("pre-push", "reference-transaction", "pre-receive"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {tmp_path}/MARK\nexit 1\n")
        (hooks / name).chmod(0o755)
    Path(os.environ["HOME"], ".gitconfig").write_text(
        f"[core]\nhooksPath = {hooks}\nfsmonitor = {hooks}/pre-push\n[commit]\ngpgSign = true\n"
        f"[alias]\npush = !touch {tmp_path}/MARK\nls-remote = !touch {tmp_path}/MARK\n"
        f'[url "file://{tmp_path}/"]\ninsteadOf = https://example.invalid/\n'
    )
    it.bare.git("config", "core.hooksPath", str(it.bare.path / "hooks"))
    it.use("https://example.invalid/remote.git")
    it.saved(1)
    it.push()
    it.check_pushed()
    assert not (tmp_path / "MARK").exists()


def test_insteadof_leads_to_no_refused_protocol(it: Pushing, tmp_path: Path) -> None:
    Path(os.environ["HOME"], ".gitconfig").write_text(
        f'[url "ext::touch {tmp_path}/MARK "]\ninsteadOf = https://example.invalid/\n'
        "[protocol]\nallow = always\n"
    )
    it.use("https://example.invalid/remote.git")
    assert "not allowed" in _unreachable(it).message
    assert not (tmp_path / "MARK").exists()


def test_insteadof_that_goes_in_circles_ends(it: Pushing) -> None:
    Path(os.environ["HOME"], ".gitconfig").write_text(
        '[url "https://a.invalid/"]\ninsteadOf = https://b.invalid/\n'
        '[url "https://b.invalid/"]\ninsteadOf = https://a.invalid/\n'
    )
    it.use("https://a.invalid/remote.git")
    _unreachable(it)


def test_git_variables_of_the_caller_change_nothing(
    it: Pushing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set inside every git hook, they would lead into another repository."""
    git("init", "--quiet", str(tmp_path / "user"))
    for name, value in {
        "GIT_DIR": str(tmp_path / "user/.git"),
        "GIT_WORK_TREE": str(tmp_path / "user"),
        "GIT_INDEX_FILE": str(tmp_path / "index"),
        "GIT_SSH_COMMAND": "false",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": str(tmp_path),
    }.items():
        monkeypatch.setenv(name, value)
    it.saved(1)
    it.push()
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_COUNT"):
        monkeypatch.delenv(name)
    it.check_pushed()
    user = subprocess.run(
        ["git", "-C", str(tmp_path / "user"), "count-objects"], capture_output=True, check=True
    )
    assert user.stdout.startswith(b"0 ")
