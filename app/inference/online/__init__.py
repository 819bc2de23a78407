"""The update laws: posteriors that each HIT changes at once."""
