"""Money: bonuses as rows, sent through the service of the annotators' platform. Open `ledger.py`, then `sending.py`.

A payment is prepared, sending (committed before the call), sent, failed or unknown. `ledger.py` adds rows within the
budget, `sending.py` makes the calls that pay, and `reading_back.py` settles unclear ones. `reconciliation.py` reads the
platform's submissions, and `review.py` compares them with ours. `payment_work.py` runs this in the background.
"""
