"""Rehearsal of a campaign as its pages show it: the existing one, or the form that starts one."""

from dataclasses import dataclass
from math import ceil

from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.known_answers import COMMON_TRUE_VALUE_COLUMNS
from app.campaigns.totals import (
    count_planned_tasks,
    fewest_different_people_or_none,
)
from app.database.tables import campaigns, items
from app.designs.campaign import Campaign
from app.designs.person_work import most_tasks_of_one_person_or_none
from app.errors import NotFound, pluralize
from app.goals.settings import NO_GOAL
from app.record.campaign import CountedCampaign, load_campaign, load_campaign_for_page_or_refuse
from app.simulation.annotators import POPULATION_TITLES
from app.uploads import parse_finite_number_or_none

ITEMS_READ_FOR_NUMERIC_COLUMNS = 20
DEFAULT_REHEARSAL_ANNOTATORS, MAX_REHEARSAL_ANNOTATORS = 12, 100


# Compared by the database's clock. True if no process runs the simulated crowd.
IS_CROWD_GONE = text("""
    SELECT NOT EXISTS (SELECT FROM crowds WHERE campaign_id = :campaign AND led_until >= clock_timestamp())
""")


@dataclass(frozen=True)
class RehearsalOffer:
    """The form that starts a rehearsal.

    Attributes:
        existing_rehearsal: The rehearsal that the campaign already has.
        is_crowd_gone: Whether the process that ran its crowd has died.
        numeric_columns: Columns that hold numbers.
        min_annotators: Fewer annotators may be unable to give the judgments that the campaign wants.
        reason_for_minimum: The reason, as a sentence.
        max_annotators: Largest crowd.

    """

    existing_rehearsal: Campaign | None
    is_crowd_gone: bool
    numeric_columns: list[str]
    min_annotators: int
    reason_for_minimum: str
    max_annotators: int = MAX_REHEARSAL_ANNOTATORS

    @property
    def default_annotator_count(self) -> int:
        """Return the form's initial number of annotators: enough for the campaign, up to the maximum."""
        return (
            max(DEFAULT_REHEARSAL_ANNOTATORS, self.min_annotators)
            if self.min_annotators <= self.max_annotators
            else DEFAULT_REHEARSAL_ANNOTATORS
        )

    @property
    def population_titles(self) -> dict[str, str]:
        """Return the titles of the crowds that answer like real people, by the value that the form sends."""
        return POPULATION_TITLES

    @property
    def default_true_value_column_or_empty(self) -> str:
        """Return the column that plainly holds the crowd's true values; empty if there is none."""
        return next((name for name in COMMON_TRUE_VALUE_COLUMNS if name in self.numeric_columns), "")


async def load_rehearsal_offer_or_none_for_rehearsal(
    connection: AsyncConnection, campaign: Campaign
) -> RehearsalOffer | None:
    """Return the offer for a campaign; None if it is a rehearsal itself."""
    if campaign.rehearsal_of is not None:
        return None
    counted = await load_campaign_for_page_or_refuse(connection, campaign.slug)
    rehearsal, number_columns = (
        await load_rehearsal_of_campaign_or_none(connection, campaign.id),
        await load_names_of_numeric_columns(connection, campaign.id),
    )
    crowd_gone = rehearsal is not None and await is_rehearsal_crowd_gone(connection, rehearsal)
    return RehearsalOffer(rehearsal, crowd_gone, number_columns, *min_annotator_count_for_rehearsal_and_reason(counted))


async def is_rehearsal_crowd_gone(connection: AsyncConnection, rehearsal: Campaign) -> bool:
    """Return whether the process that ran the crowd of a rehearsal died before the end."""
    if rehearsal.rehearsal_of is None or rehearsal.status != "running":
        return False
    return bool((await connection.execute(IS_CROWD_GONE, {"campaign": rehearsal.id})).scalar_one())


def min_annotator_count_for_rehearsal_and_reason(campaign: CountedCampaign) -> tuple[int, str]:
    """Return how many annotators a campaign needs, and why, as a sentence; 1 if any will do."""
    judgments_per_item, hits_needed = campaign.judgments_per_item, count_planned_tasks(campaign)
    limit = most_tasks_of_one_person_or_none(campaign)
    minimums_with_reasons = [(1, "")]
    if limit:
        minimums_with_reasons.append(
            (
                ceil(hits_needed / limit),
                f"the campaign asks for {pluralize(hits_needed, 'task')}, and each annotator may answer {limit:,}",
            )
        )
    if different_people := fewest_different_people_or_none(campaign):
        judgments = pluralize(judgments_per_item, "judgment")
        reason = (
            f"all judgments take {pluralize(hits_needed, 'task')}, and no one does more than one task for a segment"
            if campaign.segment_count
            else f"each item needs {judgments} by different people"
        )
        minimums_with_reasons.append((different_people, reason))
    elif not campaign.segment_count and campaign.goal != NO_GOAL:
        minimums_with_reasons.append(
            (judgments_per_item, "a second judgment by the same annotator hardly helps its goal")
        )
    fewest, reason = max(minimums_with_reasons)
    advice = (
        "Choose more"
        if fewest <= MAX_REHEARSAL_ANNOTATORS
        else f"A rehearsal can have at most {MAX_REHEARSAL_ANNOTATORS}"
    )
    return fewest, f"Fewer than {fewest:,} annotators may be too few: {reason}. {advice}."


async def load_rehearsal_of_campaign_or_none(connection: AsyncConnection, campaign_id: int) -> Campaign | None:
    """Return the rehearsal of a campaign, if it has one."""
    rows = await connection.execute(select(campaigns).where(campaigns.c.rehearsal_of == campaign_id))
    columns = rows.mappings().one_or_none()
    return None if columns is None else Campaign.from_columns(columns)


async def load_campaign_of_rehearsal_or_refuse(connection: AsyncConnection, rehearsal: Campaign) -> Campaign:
    """Return the campaign that this one rehearses. Raises `NotFound` (`campaign_not_found`) if it is no rehearsal."""
    if rehearsal.rehearsal_of is None:
        raise NotFound(f"“{rehearsal.name}” is not a rehearsal.", code="campaign_not_found")
    return await load_campaign(connection, rehearsal.rehearsal_of)


async def load_names_of_numeric_columns(connection: AsyncConnection, campaign_id: int) -> list[str]:
    """Return the names of the columns, except the id, that hold a number in each of the first items."""
    statement = select(items.c.fields).where(
        items.c.campaign_id == campaign_id, items.c.number < ITEMS_READ_FOR_NUMERIC_COLUMNS
    )
    rows = list(await connection.scalars(statement))
    first = rows[0] if rows else {}
    return [
        name
        for name in first
        if name != "id" and all(parse_finite_number_or_none(row.get(name)) is not None for row in rows)
    ]
