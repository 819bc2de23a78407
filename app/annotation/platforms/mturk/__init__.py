"""Mechanical Turk: external questions (`platform.py`) and result files (`results.py`)."""
