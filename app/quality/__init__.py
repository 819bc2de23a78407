"""Checks on answers: gold and attention items, pace, agreement with the others. None are there yet."""
