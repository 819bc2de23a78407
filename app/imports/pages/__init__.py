"""Researchers' pages of imports and of campaign files."""
