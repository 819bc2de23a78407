"""Simulated annotators, for rehearsals of campaigns, for plans and for experiments.

Main types: `Habits` and `Population` (how simulated annotators answer), `SimulatedCampaign` (a campaign in memory,
without a database) and `RehearsalCrowd` (a crowd that answers a copy of a campaign through the real serving path).

Start with `annotators.py`, then `campaign.py` for simulations in memory and `crowd.py` for the real serving path.
`rehearsals.py` runs a crowd for a researcher; `rehearsal_offer.py` is the form that starts one.
`rehearsal_lessons.py` says what a finished rehearsal shows, from its `rehearsal_record.py`.
"""
