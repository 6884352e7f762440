"""The way back: from a savepoint to what people and agents can use again."""
