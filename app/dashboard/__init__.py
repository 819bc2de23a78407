"""Live dashboard of a campaign for researchers: counts, pace, scores, intervals, items and charts.

Main types: `DashboardState` (what every viewer of a campaign sees), `CampaignSnapshot` (the data from which it is made,
read from the database), `IncrementalReplays` (the answers read so far, condensed in memory) and `LiveDashboards` (one
task for all viewers of a campaign).

Start with `pages.py`, which has the routes, then `state.py`.
"""
