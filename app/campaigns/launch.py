"""Posteriors of a draft's items before the first answer, made at the launch."""

import asyncio
from collections.abc import Sequence

import numpy as np
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.settings import note_on_form_origins_of_campaign_or_empty
from app.campaigns import (
    always_shown,
    assigned_items_check,
    conditions_check,
    media_checks,
    recordings_check,
    systems_check,
)
from app.database import tables
from app.database.bulk import NumberColumn
from app.database.campaign import number_of_items_sql
from app.database.statistics import analyze_tables_with_many_new_rows
from app.designs.campaign import Campaign
from app.errors import Conflict, pluralize
from app.goals.settings import best_goal_covers_all_reason_or_empty
from app.inference.ground.arrays import distinct_row_positions_with_codes
from app.inference.online.law import Law, LawBeliefs, LawParameters
from app.quality.check_fitness import refuse_checks_that_cannot_be_shown_or_met
from app.quality.checks import refuse_if_hits_cannot_show_checks
from app.record import posterior_storage, replay
from app.record.law_storage import Revision
from app.record.retired import mark_retired_items_as_settled

STORE_DEFAULT_PRIOR = text(
    "UPDATE campaigns SET prior = CAST(:prior AS float8[]) WHERE id = :campaign AND prior IS NULL"
)


async def refuse_unusable_items_and_create_posteriors(connection: AsyncConnection, campaign: Campaign) -> None:
    """Give every item its posterior before the first answer: its own prior if it came with one, else the campaign's."""
    item_total = await connection.scalar(select(number_of_items_sql(campaign.id))) or 0
    if item_total < campaign.fewest_items:
        shortage_phrase = (
            f"has {item_total} of the {campaign.fewest_items} items that one task needs"
            if item_total
            else "has no items yet"
        )
        raise Conflict(
            f"“{campaign.name}” {shortage_phrase}. Upload them, then launch.",
            code="too_few_items" if item_total else "no_items",
            campaign=campaign.slug,
        )
    refuse_if_all_items_are_best(campaign, item_total)
    await assigned_items_check.refuse_items_for_nobody(connection, campaign)
    await always_shown.store_always_shown_item_numbers_or_refuse(connection, campaign)
    await conditions_check.refuse_unfit_conditions_and_contents(connection, campaign)
    if campaign.checks_percent is not None:
        refuse_if_hits_cannot_show_checks(campaign)
        await refuse_checks_that_cannot_be_shown_or_met(connection, campaign)
    if campaign.segment_count:
        await systems_check.refuse_incomparable_systems(connection, campaign, item_total)
    else:
        refuse_rule_for_systems_only(campaign)
        await media_checks.refuse_unshowable_media_of_items(connection, campaign)
    await media_checks.refuse_unshowable_media_of_practice_items(connection, campaign)
    law = campaign.law
    await connection.execute(STORE_DEFAULT_PRIOR, {"campaign": campaign.id, "prior": law.family.default_prior})
    priors = await replay.load_prior_columns(connection, campaign.criteria[0])
    # In a thread: a million items take a while, and answers to other campaigns keep coming in.
    for criterion in campaign.criteria:
        beliefs = await asyncio.to_thread(make_law_beliefs_or_refuse, criterion.law, priors, criterion.law_parameters)
        await posterior_storage.store_revision_with_posteriors_and_law_state(
            connection, Revision.present_revision_of_criterion(criterion), criterion.law, beliefs
        )
    await mark_retired_items_as_settled(connection, campaign.id)
    await analyze_tables_with_many_new_rows(connection, (tables.items, tables.posteriors), added_count=item_total)


def refuse_if_all_items_are_best(campaign: Campaign, item_total: int) -> None:
    """Raise `Conflict` (`all_are_best`) if the goal is to settle the best items and would count all items as best."""
    if reason := best_goal_covers_all_reason_or_empty(campaign, item_total):
        raise Conflict(reason, code="all_are_best", campaign=campaign.slug, setting="goal")


def refuse_rule_for_systems_only(campaign: Campaign) -> None:
    """Raise `Conflict` (`rule_needs_systems`) if the selection rule of a campaign of plain items is for systems."""
    if campaign.rule.for_systems_only:
        raise Conflict(
            f"The selection rule {campaign.rule_name} compares systems, but “{campaign.name}” has plain items. Choose "
            "another rule, or upload outputs of systems.",
            code="rule_needs_systems",
        )


def make_law_beliefs_or_refuse(law: Law, priors: Sequence[NumberColumn], parameters: LawParameters) -> LawBeliefs:
    """Return a law's beliefs about items with these priors, as columns. Raises `Conflict` (`impossible_prior`)."""
    first_index, distinct_index = distinct_row_positions_with_codes(priors)
    distinct_priors = zip(*(column[first_index].tolist() for column in priors), strict=True)
    possible = np.array([law.family.is_valid_prior(*prior) for prior in distinct_priors])
    impossible = np.flatnonzero(~possible[distinct_index]).tolist()
    if impossible:
        raise Conflict(
            f"The prior of item number {impossible[0] + 1} is not possible with the update law {law.name}.",
            code="impossible_prior",
            items=impossible[:20],
        )
    return law.initial_beliefs(priors, parameters)


async def load_launch_notes(connection: AsyncConnection, campaign: Campaign) -> list[str]:
    """Return sentences about items that a researcher should know at the launch."""
    notes = [
        await load_sentence_on_own_priors_or_none(connection, campaign.id),
        *await recordings_check.load_recording_notes(connection, campaign),
        await conditions_check.load_short_block_note_or_empty(connection, campaign),
        note_on_form_origins_of_campaign_or_empty(campaign),
    ]
    return [note for note in notes if note]


COUNT_PRIORS = text("SELECT count(*) FROM items WHERE campaign_id = :campaign AND prior IS NOT NULL")


async def load_sentence_on_own_priors_or_none(connection: AsyncConnection, campaign_id: int) -> str | None:
    """Return a sentence for the launch page if items have priors of their own."""
    count = await connection.scalar(COUNT_PRIORS, {"campaign": campaign_id})
    if not count:
        return None
    predicate = "starts with its own prior" if count == 1 else "start with their own priors"
    return (
        f"{pluralize(count, 'item')} {predicate} (the scores assumed before any judgment), read from columns of the "
        "table, not with the prior in the settings."
    )
