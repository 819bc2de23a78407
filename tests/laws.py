"""The update laws that tests of scores go through; `test_every_law.py` has all."""

from app.designs.slider import Slider
from app.inference.observations.coarsening import readable
from app.inference.online.laws import ONLINE

OF_POINTS = {name: law for name, law in ONLINE.items() if readable(law.reads, Slider.yields, 0)}
