"""Prolific: arrival and return (`platform.py`), and its API for submissions and money (`service.py`)."""
