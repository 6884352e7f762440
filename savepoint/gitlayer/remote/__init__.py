"""The remote: what is pushed there, what is fetched, and whether it is ours."""
