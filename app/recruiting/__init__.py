"""Studies on platforms, made from a campaign: draft, publish, pause, and more places. Open `study_plan.py` first.

`study_plan.py` computes reward, minutes and places; `studies.py` makes the calls, each only when a person asks for it.
"""
