"""What is asked and how an answer reads."""
