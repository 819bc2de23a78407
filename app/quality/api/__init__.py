"""API of annotators, of decisions about them, and of quality rules and checks."""
