"""The update laws that read scores; `tests/inference/test_every_law.py` checks all laws."""

from app.designs.slider import Slider
from app.inference.observations.judgment_kinds import can_law_read_answers
from app.inference.online.laws import ONLINE_LAWS

SCORE_LAWS = {name: law for name, law in ONLINE_LAWS.items() if can_law_read_answers(law.reads, Slider.value_kind, 0)}
