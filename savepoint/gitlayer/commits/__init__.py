"""Commits: from records to the commits of an instance's branch."""
