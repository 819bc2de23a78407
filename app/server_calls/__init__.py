"""Calls of Easel's server that tell the annotators' platform how a visit ended, such as one that gives credit.

The row of a call is stored with the outcome (`annotation.hits.visit_outcome`). `call_work.py` makes the calls that are
due in the background, through `http_call.py`. A call is prepared, sending (committed before it is made), sent, failed
or unknown; `ledger.py` lists them and stores what people decide. Open `call_work.py` first.
"""
