"""Rules on annotators, one module each."""
