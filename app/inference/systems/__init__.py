"""What systems are worth, from comparisons of their outputs with a baseline."""
