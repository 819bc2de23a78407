"""Made-up annotators, who take the same path as real ones."""
