"""Live pictures of a campaign for researchers."""
