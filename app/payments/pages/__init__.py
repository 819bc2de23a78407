"""Pages of payments: the ledger and submissions for researchers, and the address for the service's notices."""
