"""An experiment of Sakaguchi & Van Durme (2018), section 5.1, with people: its arms are campaigns on the same items."""

from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import experiment_arms, items, lifecycle
from app.campaigns.demo import QUESTION, VERBS
from app.campaigns.questions import question
from app.campaigns.settings import CampaignSettings

# What differs between the arms, by their titles. Of scores of one item at a time EASL's score is the mean.
BY_ITSELF = "Think of everything you read, hear and say. Use the whole scale."
IN_ORDER = "Think of everything you read, hear and say. Bring the verbs into an order; two may share a place."
ARMS = MappingProxyType(
    {
        "DA": {"design": "rating", "update_law": "easl", "rule": "scores", "instructions": BY_ITSELF},
        "RA": {
            "design": "ranking",
            "design_settings": {"best_label": "most frequent", "worst_label": "rarest"},
            "update_law": "ra",
            "rule": "easl",
            "instructions": IN_ORDER,
        },
        "EASL": {"design": "slider", "update_law": "easl", "rule": "easl"},
    }
)
LABELLED = {"low_label", "high_label"}


@dataclass(frozen=True)
class Wanted:
    """Of each arm. judgments_per_annotator: the most that one person gives, which are HITs of as many items as the arm
    shows; None for no limit.
    """

    name: str
    judgments_per_item: int = 10
    judgments_per_annotator: int | None = None


def settings_of(arm: str, wanted: Wanted) -> CampaignSettings:
    """Of the campaign that is an arm: the shipped question, asked in its way."""
    settings = question(QUESTION).settings.model_dump() | {"items_per_hit": 1 if arm == "DA" else 5} | ARMS[arm]
    hits = wanted.judgments_per_annotator and -(-wanted.judgments_per_annotator // settings["items_per_hit"])
    settings |= {"judgments_per_item": wanted.judgments_per_item, "hits_per_annotator": hits}
    return CampaignSettings.model_validate(settings | {"name": f"{wanted.name} ({arm})"})
