"""The store: what is on disk, how it becomes durable, and who may find it."""
