"""API of campaigns: settings and life cycle, items, and imports of items and answers."""
