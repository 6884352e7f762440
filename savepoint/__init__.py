"""savepoint: the whole working state of an AI coding agent, saved, proven, brought back."""

__version__ = "0.1.0"
