"""The answers and what follows from them: stored together, read in order, replayed."""
