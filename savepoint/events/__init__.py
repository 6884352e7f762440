"""What the hook does at each event of the agent, other than to save."""
