"""Handoff: a thread passes its work to a successor, and nothing open is dropped."""
