"""Estimators of items' values from pairwise preferences."""
