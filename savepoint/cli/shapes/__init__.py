"""The shapes of what `--json` prints, a topic in each file."""
