"""Calls of Easel's server that tell the annotators' platform how a visit ended. Open `call_work.py` first.

Their rows are stored with the outcome (`annotation.hits.visit_outcome`). `ledger.py` has what people decide.
"""
