"""What a campaign is for (`settings`), and how far it is from it (`progress`)."""
