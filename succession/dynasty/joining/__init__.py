"""What comes into a dynasty from elsewhere: nothing of either is lost."""
