"""The program on chain, as built from programs/savepoint_anchor, and how it is called."""
