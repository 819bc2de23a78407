"""Answers in the form that estimators read: judgments, comparisons, comparisons with a baseline, ties."""
