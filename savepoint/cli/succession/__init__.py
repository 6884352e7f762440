"""`savepoint succession`: what the dynasty remembers."""
