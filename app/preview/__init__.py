"""Trying a campaign out as annotators will see it."""
