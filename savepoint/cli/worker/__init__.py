"""`savepoint worker`, and the process that it looks at."""
