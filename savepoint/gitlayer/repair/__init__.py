"""Repair: a damaged repository, or a store that git can help."""
