"""`savepoint handoff`: a thread passes its work on."""
