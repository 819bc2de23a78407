"""Researchers' pages about annotators and checks."""
