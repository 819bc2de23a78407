"""Estimators of items' classes, and of how annotators confuse classes."""
