"""fsck of the local store: what is checked, what is listed, what can be repaired."""
