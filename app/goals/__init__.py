"""Goals of campaigns, and how far a campaign is from its goal.

`settings.GoalSettings` holds the researcher's choices. `estimates` decides whether a goal is measured by the update
law's own scores or by plain means, and `progress` computes the measure. All of this is pure; `app/goal_monitor` reads
the record and acts when a goal is reached.

Open `progress.py` first.
"""
