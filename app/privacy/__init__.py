"""People's data: which columns hold it, and how a person gets a copy, is erased, or withdraws.

`inventory` lists every column of the database; the export, the erasure, the retention and the table in the
documentation are made from it. Main types: `PersonalTable` (rows and columns about one annotator), `Person` (an
annotator who was found), `Erasure` (a request with its receipt).

Open `inventory.py` first, then `person_search.py` and `erasures.py`. To store something new about annotators, add the
column to the inventory: a test fails until you do.
"""
