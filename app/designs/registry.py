"""The designs by name. A new one is a module with a `DESIGN`, a template, and one line here."""

from typing import Any

from app.designs import slider
from app.designs.design import Design

DESIGNS: dict[str, Design] = {design.name: design for design in (slider.DESIGN,)}


def design_of(campaign: Any) -> Design:
    """The design of a campaign's row."""
    return DESIGNS[campaign.design]
