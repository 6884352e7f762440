"""`savepoint resurrect` and `savepoint bootstrap`: the way back."""
