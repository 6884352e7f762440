"""`savepoint sync`, and what a store has at its remote."""
