"""Researchers' pages about campaigns: settings, life cycle, and imports of items and answers."""
