"""Studies on platforms: draft one from a campaign, publish it, pause it, and add places. Open `study_plan.py` first.

`study_plan.py` computes reward, minutes and places; `studies.py` calls the platform when a person asks for it.
"""
