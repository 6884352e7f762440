"""The store's own git repository: each savepoint is a commit that can be recovered without us."""
