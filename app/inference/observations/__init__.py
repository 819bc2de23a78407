"""Answers as estimators read them: judgments, comparisons, comparisons with a baseline, ties."""
