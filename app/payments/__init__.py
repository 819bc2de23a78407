"""Payments: bonuses and rewards as rows, paid through the service of the annotators' platform. Open `ledger.py` first.

A payment is prepared, sending (committed before the call), sent, failed or unknown. `sending.py` makes the calls that
pay bonuses, and `reading_back.py` settles unclear ones. `reconciliation.py` reads the platform's submissions, and
`rewards.py` books their rewards. `payment_work.py` runs this in the background; `decisions.py` stores people's choices.
"""
