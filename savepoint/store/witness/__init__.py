"""The local witness: what this machine's disk says of savepoints."""
