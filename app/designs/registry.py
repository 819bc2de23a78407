"""Registry of the designs by name. To add a design, add a module with a class, a template, and one line here."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from app.designs.baseline import Baseline
from app.designs.best_worst import BestWorst
from app.designs.categories import Categories
from app.designs.design import Design
from app.designs.magnitude import Magnitude
from app.designs.ordinal import Ordinal
from app.designs.pairwise import Pairwise
from app.designs.ranking import Ranking
from app.designs.rating import Rating
from app.designs.several_labels import SeveralLabels
from app.designs.slider import Slider

DESIGNS: dict[str, type[Design]] = {
    design.name: design
    for design in (
        Slider,
        Rating,
        Ordinal,
        Categories,
        SeveralLabels,
        Pairwise,
        Baseline,
        Ranking,
        BestWorst,
        Magnitude,
    )
}

DEFAULT_DESIGN = next(iter(DESIGNS))  # where nobody chooses; the schema has it as the default of stored campaigns, too


def make_design(name: str, settings: Mapping[str, Any]) -> Design:
    return DESIGNS[name].model_validate(settings) if settings else cached_design_with_default_settings(DESIGNS[name])


@cache
def cached_design_with_default_settings(design: type[Design]) -> Design:
    """Return the design without settings of a campaign; cached, since every answer asks for it several times."""
    return design()
