"""What `doctor` checks, a part of the set-up in each file."""
