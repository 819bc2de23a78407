"""Home: the list of all campaigns that a researcher sees, and actions on several of them at once.

`pages.py` shows the list as its address filters and sorts it. `chosen_campaigns.py` archives, restores, tags or deletes
the ticked campaigns, each as the researcher's role there allows; `api.py` does the same for programs.

Open `chosen_campaigns.py` first.
"""
