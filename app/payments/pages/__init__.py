"""Pages of payments: the ledger (`ledger.py`) and submissions (`submissions.py`) for researchers, and the address for
signed notices of the platform's service (`notices.py`).
"""
