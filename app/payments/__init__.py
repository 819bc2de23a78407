"""Money: bonuses and rewards as rows, paid through the service of the annotators' platform. Open `ledger.py` first.

A payment is prepared, sending (committed before the call), sent, failed or unknown. `ledger.py` adds bonuses within the
budget, `sending.py` makes the calls that pay them, and `reading_back.py` settles unclear ones. `reconciliation.py`
reads the platform's submissions, `rewards.py` books their rewards, and `approving.py` approves them. `review.py`
compares them with ours, and `decisions.py` has what people decide. `payment_work.py` runs this in the background.
"""
