"""What a session hears of the dynasty, and what is drawn from it."""
