"""The keys of a store: made, kept safe, backed up, retired."""
