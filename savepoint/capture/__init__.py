"""What goes into a snapshot: the transcript, its companions, files, repository and state."""
