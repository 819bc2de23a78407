"""Home: the list of campaigns, and changes of several at once. Open `chosen_campaigns.py` first."""
