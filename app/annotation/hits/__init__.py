"""HITs of a running campaign: which HIT an annotator gets, how long it is reserved, and how the answer is stored.

Open `leases.py` first: `find_or_lease_next_hits` returns a `NextHit` for each waiting annotator, which contains a HIT
to answer or the reason why there is none. `draw_hit.py` and `iteration_schedule.py` choose the items, `lease_sql.py`
reserves them. `submission.py` stores the waiting answers (`locked_answers.py` locks what they change and
`answer_storage.py` writes it), and `undo.py` replaces one. `AssignmentState` (`assignment.py`) is the row that all of
them read, and `PosteriorCache` (`campaign_index.py`) keeps posteriors in the memory of this process. `pages` serves
people, and `api.py` serves programs.
"""
