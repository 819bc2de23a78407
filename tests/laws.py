"""The update laws that tests of scores go through; `test_every_law.py` has all."""

from app.designs.slider import Slider
from app.inference.observations.judgment_kinds import can_law_read
from app.inference.online.laws import ONLINE_LAWS

OF_POINTS = {name: law for name, law in ONLINE_LAWS.items() if can_law_read(law.reads, Slider.value_kind, 0)}
