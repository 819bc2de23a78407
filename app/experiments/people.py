"""The experiment of Sakaguchi & Van Durme (2018), section 5.1, with people: its arms are campaigns on the verbs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import experiment_arms, items, lifecycle
from app.campaigns.columns import Matching
from app.campaigns.demo import QUESTION, VERBS
from app.campaigns.questions import question
from app.campaigns.settings import CampaignSettings
from app.errors import Invalid

LONGEST = 200  # characters of a name
THINK = "Think of everything you read, hear and say."

# In what each arm differs from the others. From the usual prior on the score of `easl` is the mean of what was said.
ARMS: dict[str, dict[str, Any]] = {
    "DA": {
        "design": "rating",
        "items_per_hit": 1,
        "update_law": "easl",
        "rule": "scores",
        "instructions": f"{THINK} Use the whole scale.",
    },
    "RA": {
        "design": "ranking",
        "design_settings": {"best_label": "most frequent", "worst_label": "rarest"},
        "items_per_hit": 5,
        "update_law": "ra",
        "rule": "easl",
        "instructions": f"{THINK} Compare the verbs with each other; those that are used as often may share a place.",
    },
    "EASL": {"design": "slider", "items_per_hit": 5, "update_law": "easl", "rule": "easl"},
}


@dataclass(frozen=True)
class ExperimentWanted:
    """The name of an experiment, and how much is asked in each arm. judgments_per_annotator: the most that one person
    gives, in HITs of as many items as the arm shows; None for no limit.
    """

    name: str
    judgments_per_item: int = 10
    judgments_per_annotator: int | None = None


@dataclass(frozen=True)
class SetUp:
    """An experiment as it was set up. name: what commands call it. campaigns: by arm."""

    name: str
    link_key: str
    campaigns: Mapping[str, Row[Any]]


async def set_up(connection: AsyncConnection, wanted: ExperimentWanted, *, launch: bool, now: datetime) -> SetUp:
    """Make a campaign for each arm, launched or as drafts, and the link that leads to any of them.

    Raises `Invalid` (`experiment_name`) and `Conflict` (`experiment_exists`).
    """
    if not 0 < len(wanted.name.strip()) <= LONGEST:
        raise Invalid(f"An experiment has a name of 1 to {LONGEST} characters.", code="experiment_name")
    name = lifecycle.slug_of(wanted.name)
    await experiment_arms.refuse_second(connection, name)
    made = {arm: await campaign_of(connection, arm, wanted, launch=launch, now=now) for arm in ARMS}
    key = await experiment_arms.join(connection, name, {arm: row.id for arm, row in made.items()})
    return SetUp(name, key, made)


async def campaign_of(
    connection: AsyncConnection, arm: str, wanted: ExperimentWanted, *, launch: bool, now: datetime
) -> Row[Any]:
    """The campaign of an arm, with the verbs."""
    draft = await lifecycle.create(connection, settings_of(arm, wanted), now=now)
    with VERBS.open("rb") as file:
        await items.import_items(connection, draft.slug, file, VERBS.name, matching=Matching(shown="verb"), max_mb=1)
    return await lifecycle.transition(connection, draft.slug, "launch", now=now) if launch else draft


def settings_of(arm: str, wanted: ExperimentWanted) -> CampaignSettings:
    """The question that comes with Easel, asked in the arm’s way."""
    most = wanted.judgments_per_annotator
    changes = {
        "name": f"{wanted.name} ({arm})",
        "judgments_per_item": wanted.judgments_per_item,
        "hits_per_annotator": most and -(-most // ARMS[arm]["items_per_hit"]),
    }
    return CampaignSettings.model_validate(question(QUESTION).settings.model_dump() | ARMS[arm] | changes)
