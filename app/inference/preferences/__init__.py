"""What items are worth, from which one people prefer."""
