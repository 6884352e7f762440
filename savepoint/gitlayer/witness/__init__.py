"""The git witness: what our repository and its remote say of savepoints."""
