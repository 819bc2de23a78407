"""Campaigns without answers: they can become a draft again, or be deleted. An answer that comes first wins."""

from dataclasses import replace

from sqlalchemy import delete, exists, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.lifecycle import lock_and_load_campaign_or_refuse
from app.database.audit_log import log_change
from app.database.content_tables import item_versions, output_versions, unfinished_imports
from app.database.quality_tables import adjudications
from app.database.tables import annotators, campaigns, hits, planned_hits, posteriors, responses, states
from app.designs.campaign import Campaign
from app.errors import Conflict
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.deletion import delete_campaign_and_all_its_data_or_refuse, unsettled_payments_or_calls_error_or_none
from app.record.revisions import block_answers_until_transaction_ends, block_writers_until_transaction_ends

# Former texts and final labels are deleted, too: no answer is about them, and the items of a draft get other numbers.
TABLES_OF_LAUNCH = (
    *(hits, planned_hits, posteriors, states, unfinished_imports, item_versions, output_versions, adjudications),
)
COLUMNS_OF_SQUARE = ("square_row", "square_row_at", "square_done")  # the next launch may have other conditions
STATE_BEFORE_LAUNCH: dict[str, object] = {
    "status": "draft",
    "goal_reached": None,
    "releases": 0,
    "always_shown": [],
    "iteration": -1,
    **dict.fromkeys(("launched_at", "finished_at", "archived_at")),
}


async def has_any_answer(connection: AsyncConnection, campaign_id: int) -> bool:
    return bool(await connection.scalar(select(exists().where(responses.c.campaign_id == campaign_id))))


async def is_campaign_deletable(connection: AsyncConnection, campaign: Campaign) -> bool:
    return campaign.status == "draft" or (
        campaign.status == "finished" and not await has_any_answer(connection, campaign.id)
    )


async def revert_unanswered_to_draft_or_refuse(connection: AsyncConnection, slug: str) -> Campaign:
    """Make a launched campaign without answers a draft again. Open HITs end; their pages refuse to submit.

    People who have come stay known, with their consent. Raises `Conflict`: `wrong_status` for a draft, `has_answers`.
    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    # Waits for answers that are being stored, so the statements below see them; later ones find no HIT.
    await block_writers_until_transaction_ends(connection, campaign.id)
    # The new revision makes each process forget its index of the items.
    changes = STATE_BEFORE_LAUNCH | {"revision": campaigns.c.revision + 1}
    statement = update(campaigns).where(campaigns.c.id == campaign.id, campaigns.c.status != "draft")
    columns = None
    if not await has_any_answer(connection, campaign.id):
        columns = (await connection.execute(statement.values(changes).returning(campaigns))).mappings().one_or_none()
    if columns is None:
        present = await load_campaign_by_slug_or_refuse(connection, slug)
        raise cannot_revert_error(present)
    draft = Campaign.from_columns(columns)
    for table in TABLES_OF_LAUNCH:
        await connection.execute(delete(table).where(table.c.campaign_id == draft.id))
    of_draft = annotators.c.campaign_id == draft.id
    await connection.execute(update(annotators).where(of_draft).values(dict.fromkeys(COLUMNS_OF_SQUARE)))
    if draft.prior == list(draft.law.family.default_prior):  # stored by the launch
        await connection.execute(update(campaigns).where(campaigns.c.id == draft.id).values(prior=None))
        draft = replace(draft, prior=None)
    await log_change(connection, "campaign.revert", draft, new_values={"status": draft.status})
    return draft


def cannot_revert_error(campaign: Campaign) -> Conflict:
    """Return why a campaign that is a draft or has answers cannot become a draft: `wrong_status`, `has_answers`."""
    if campaign.status == "draft":
        message = f"“{campaign.name}” is a draft already."
        return Conflict(message, code="wrong_status", status=campaign.status, action="revert")
    return has_answers_error(campaign, "so it cannot become a draft again")


async def load_cannot_revert_error_or_none(connection: AsyncConnection, campaign: Campaign) -> Conflict | None:
    """Return why a campaign cannot become a draft now; None if it can."""
    can_revert = campaign.status != "draft" and not await has_any_answer(connection, campaign.id)
    return None if can_revert else cannot_revert_error(campaign)


async def load_cannot_delete_error_or_none(connection: AsyncConnection, campaign: Campaign) -> Conflict | None:
    """Return why a campaign cannot be deleted now (`not_a_draft`, `has_answers`, `payments_unsettled`,
    `calls_unsettled`); None if it can.
    """
    if not await is_campaign_deletable(connection, campaign):
        return cannot_delete_error(campaign)
    return await unsettled_payments_or_calls_error_or_none(connection, campaign.id)


def has_answers_error(campaign: Campaign, consequence: str) -> Conflict:
    return Conflict(
        f"“{campaign.name}” has answers, {consequence}. Copy it to change the question.",
        code="has_answers",
        status=campaign.status,
    )


async def delete_empty_campaign_or_refuse(connection: AsyncConnection, slug: str) -> None:
    """Delete a draft, or a finished campaign without answers, with its items.

    Raises what `block_answers_until_transaction_ends` and `lock_and_load_deletable_campaign_or_refuse` raise.
    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await block_answers_until_transaction_ends(connection, campaign.id)
    campaign = await lock_and_load_deletable_campaign_or_refuse(connection, slug)
    await delete_campaign_and_all_its_data_or_refuse(connection, campaign.id)
    await log_change(connection, "campaign.deleted", campaign, old_values={"name": campaign.name})


async def lock_and_load_deletable_campaign_or_refuse(connection: AsyncConnection, slug: str) -> Campaign:
    """Return the campaign, locked, if it can be deleted.

    Raises `Conflict`: `not_a_draft` if it is running or paused, `has_answers`.
    """
    campaign = await lock_and_load_campaign_or_refuse(connection, slug)
    if await is_campaign_deletable(connection, campaign):
        return campaign
    raise cannot_delete_error(campaign)


def cannot_delete_error(campaign: Campaign) -> Conflict:
    """Return why a campaign that is neither a draft nor finished without answers stays."""
    if campaign.status == "finished":
        return has_answers_error(campaign, "and these are never deleted")
    return Conflict(
        f"“{campaign.name}” is {campaign.status}: only a draft, or a finished campaign without answers, can be "
        "deleted.",
        code="not_a_draft",
        status=campaign.status,
    )
