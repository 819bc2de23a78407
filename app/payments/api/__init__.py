"""Addresses for programs: the ledger, and the platform's submissions."""
