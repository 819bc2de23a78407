"""What items are worth, from scores on a scale."""
