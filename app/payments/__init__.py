"""Money: bonuses to annotators as rows, sent through the service of their platform.

A payment is a row with a state: prepared, sending (committed before the call), sent, failed or unknown. `ledger.py`
adds rows within the campaign's budget, `sending.py` makes the calls that pay, and `reading_back.py` finds out what
became of unclear ones. `reconciliation.py` reads the platform's submissions, and `review.py` compares them
with ours, approves and rejects. `payment_work.py` runs all of this in the background, for one campaign at a time.
`connections.py` keeps the tokens, and `notices.py` takes the service's signed messages.

Open `ledger.py` first, then `sending.py`.
"""
