"""What whoever runs a campaign should hear of, shown until they have seen it. `database.alerts` raises it."""
