"""Estimators of items' values from scores on a scale."""
