"""The worker: detached, one a store. It does what no save may wait for, and may die anywhere."""
