"""Simulated annotators: they rehearse campaigns, and forecast what a campaign's goal will cost.

Main types: `Habits` and `Population` (how simulated annotators answer), `SimulatedCampaign` (a campaign in memory,
without a database), `RehearsalCrowd` (a crowd that answers a copy of a campaign through the real serving path) and
`Plan` (a forecast of a goal, with costs).

Start with `annotators.py`, then `campaign.py` for simulations in memory, `crowd.py` for the real serving path and
`forecast.py` for plans.
"""
