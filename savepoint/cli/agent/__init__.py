"""What the agent itself meets: `install`, and the status line that it shows."""
