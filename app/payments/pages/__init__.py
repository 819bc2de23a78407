"""Pages of payments: the ledger for researchers (`ledger.py`)."""
