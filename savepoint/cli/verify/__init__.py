"""`savepoint verify` and `savepoint fsck`: is everything whole and unchanged?"""
