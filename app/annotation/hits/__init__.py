"""HITs of a running campaign: which HIT an annotator gets, how long it is reserved, and how the answer is stored.

Open `visit_requests.py` first: it serves the waiting annotators of a campaign together. `leases.py` returns a `NextHit`
for each, which contains a HIT to answer or the reason why there is none: `draw_hit.py` and `iteration_schedule.py`
choose the items, `lease_sql.py` and `lease_functions_sql.py` reserve them. `submission.py` stores the answers
(`locked_answers.py` locks what they change, `answer_storage.py` writes it, `answer_leases.py` leases the next HITs in
the same transaction), and `undo.py` replaces one. `AssignmentState` (`assignment.py`) is the row that all of them read,
and `PosteriorCache` (`campaign_index.py`) keeps posteriors in the memory of this process. `pages` serves people, and
`api.py` serves programs.
"""
