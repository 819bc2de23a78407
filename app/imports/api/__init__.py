"""API of imports and of campaign files."""
