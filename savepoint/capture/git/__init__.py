"""The user's repository, only read, with none of its programs run."""
