"""Calls from Easel's server that tell the annotators' platform how a visit ended. Open `call_work.py` first.

Each call is a row, stored with the outcome (`annotation.hits.visit_outcome`). `ledger.py` stores people's decisions.
"""
