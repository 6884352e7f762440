"""Fixtures of the tests of resurrection: those of the command line's."""

from __future__ import annotations

from tests.cli.conftest import bare, cli, project

__all__ = ["bare", "cli", "project"]
