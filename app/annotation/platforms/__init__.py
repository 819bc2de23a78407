"""Platforms that annotators come from, and the result files that can be imported.

Open `platform.py` first: `Platform` is the contract for arrival, return and result files. `registry.py` lists all
platforms in `PLATFORMS`; each is one module (`panel.py`, `link.py`, ...) or folder (`prolific`). `assignments.py`
creates annotators and their signed page tokens, and `visit_limit.py` limits new visits. Result files pass from
`answer_files.py` through `tool_formats.py`, `column_mapping.py` and `cell_reading.py` to a platform's reader, which
returns `ResultRow`s (`result_format.py`).
"""
