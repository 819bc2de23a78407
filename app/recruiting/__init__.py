"""Studies on platforms, made from a campaign: draft, publish, pause, and more places.

`study_plan.py` computes reward, minutes and places from the settings and the plan. `studies.py` makes the calls to the
platform's service; a study is drafted once, published after a person has typed its total, and gets more places only if
a person says so.

Open `study_plan.py` first.
"""
