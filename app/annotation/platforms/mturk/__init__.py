"""Mechanical Turk: its external questions, and its result files."""
