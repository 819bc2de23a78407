"""The languages that annotators' pages speak: which there are, which one somebody reads, and what is said in it."""
