"""The experiment of Sakaguchi & Van Durme (2018), section 5.1, with people: its arms are campaigns about verbs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import experiment_arms, lifecycle
from app.campaigns.settings import CampaignSettings
from app.campaigns.starter_questions import load_starter_question_or_refuse
from app.designs.campaign import Campaign
from app.errors import Invalid
from app.imports import items
from app.imports.columns import ColumnMapping
from app.imports.demo import DEMO_ITEMS_FILE, DEMO_QUESTION_NAME

MAX_EXPERIMENT_NAME_CHARS = 200
RECALL_INSTRUCTIONS = "Think of everything you read, hear and say."

# Settings in which the arms differ. From the default prior on, the score of `easl` is the mean of the answers.
HUMAN_ARMS: dict[str, dict[str, Any]] = {
    "DA": {
        "design": "rating",
        "items_per_hit": 1,
        "update_law": "easl",
        "rule": "scores",
        "instructions": f"{RECALL_INSTRUCTIONS} Use the whole scale.",
    },
    "RA": {
        "design": "ranking",
        "design_settings": {"best_label": "most frequent", "worst_label": "rarest"},
        "items_per_hit": 5,
        "update_law": "ra",
        "rule": "easl",
        "instructions": (
            f"{RECALL_INSTRUCTIONS} Compare the verbs with each other; verbs that are used equally often may share a "
            "place."
        ),
    },
    "EASL": {"design": "slider", "items_per_hit": 5, "update_law": "easl", "rule": "easl"},
}


@dataclass(frozen=True)
class ExperimentRequest:
    """A new experiment.

    Attributes:
        name: Name of the experiment.
        judgments_per_item: Judgments of each item in each arm.
        judgments_per_annotator: Most judgments of one person, in HITs as large as the arm shows; None for no limit.

    """

    name: str
    judgments_per_item: int = 10
    judgments_per_annotator: int | None = None


@dataclass(frozen=True)
class CreatedExperiment:
    """An experiment that was created.

    Attributes:
        name: Name for commands.
        campaigns: Campaigns by arm.

    """

    name: str
    link_key: str
    campaigns: Mapping[str, Campaign]


async def create_experiment(
    connection: AsyncConnection, request: ExperimentRequest, *, is_launched: bool, now: datetime
) -> CreatedExperiment:
    """Create a campaign for each arm, launched or as drafts, and the link that leads to any of them.

    Raises `Invalid` (`experiment_name`) and `Conflict` (`experiment_exists`).
    """
    if not 0 < len(request.name.strip()) <= MAX_EXPERIMENT_NAME_CHARS:
        raise Invalid(
            f"The name of an experiment must have 1 to {MAX_EXPERIMENT_NAME_CHARS} characters.", code="experiment_name"
        )
    name = lifecycle.slugify_campaign_name(request.name)
    await experiment_arms.refuse_taken_and_lock_experiment_name(connection, name)
    campaigns = {
        arm: await create_arm_campaign_with_demo_items(connection, arm, request, is_launched=is_launched, now=now)
        for arm in HUMAN_ARMS
    }
    key = await experiment_arms.create_experiment_arms_and_link_key(
        connection, name, {arm: row.id for arm, row in campaigns.items()}
    )
    return CreatedExperiment(name, key, campaigns)


async def create_arm_campaign_with_demo_items(
    connection: AsyncConnection, arm: str, request: ExperimentRequest, *, is_launched: bool, now: datetime
) -> Campaign:
    draft = await lifecycle.create_draft_campaign_or_refuse(
        connection, demo_campaign_settings_for_arm(arm, request), now=now
    )
    with DEMO_ITEMS_FILE.open("rb") as file:
        await items.import_items_and_return_receipt(
            connection, draft.slug, file, DEMO_ITEMS_FILE.name, mapping=ColumnMapping(shown="verb"), max_mb=1
        )
    return (
        await lifecycle.change_campaign_status_or_refuse(connection, draft.slug, "launch", now=now)
        if is_launched
        else draft
    )


def demo_campaign_settings_for_arm(arm: str, request: ExperimentRequest) -> CampaignSettings:
    """Return the settings of the demo question, changed as the arm needs."""
    max_judgments = request.judgments_per_annotator
    changes = {
        "name": f"{request.name} ({arm})",
        "judgments_per_item": request.judgments_per_item,
        "repeat_items": True,  # the same in all arms, whose designs have different defaults
        "hits_per_annotator": max_judgments and -(-max_judgments // HUMAN_ARMS[arm]["items_per_hit"]),
    }
    return CampaignSettings.model_validate(
        load_starter_question_or_refuse(DEMO_QUESTION_NAME).settings.model_dump() | HUMAN_ARMS[arm] | changes
    )
