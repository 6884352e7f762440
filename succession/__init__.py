"""What outlives a conversation: the dynasty (what was learned) and handoff (what is still owed)."""
