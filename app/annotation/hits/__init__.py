"""HITs of a running campaign: which HIT an annotator gets, how long it is reserved, and how the answer is stored.

Open `leases.py` first: `find_or_lease_next_hit` returns a `NextHit`, which contains a HIT to answer or the reason why
there is
none. `draw_hit.py` and `iteration_schedule.py` choose the items, `lease_sql.py` reserves them, `submission.py` stores
an answer and `undo.py` replaces one. `AssignmentState` (`assignment.py`) is the row that all of them read, and
`PosteriorCache` (`campaign_index.py`) keeps posteriors in the memory of this process. `pages` serves people,
and `api.py` serves programs.
"""
