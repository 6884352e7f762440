"""`savepoint ledger` and `savepoint proof`: what is anchored, where, and for how much."""
