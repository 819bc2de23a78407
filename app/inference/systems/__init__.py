"""Estimators of systems' values from comparisons of their outputs with a baseline or with each other."""
