"""The designs by name. A new one is a module with a class, a template, and one line here."""

from typing import Any

from app.designs.design import Design
from app.designs.slider import Slider

DESIGNS: dict[str, type[Design]] = {design.name: design for design in (Slider,)}


def design_of(campaign: Any) -> Design:
    """The design of a campaign's row, with its settings."""
    return DESIGNS[campaign.design].model_validate(campaign.design_settings)
