"""Update laws: each HIT changes the posteriors of its items at once."""
