"""Changes of single items: retire and restore them, and delete them from a draft.

A retired item keeps its answers and its posterior, and no new HIT asks about it. Leases read `posteriors.settled`. This
module sets it and then locks the room of the campaign (`lease_sql`): a lease that came first is committed before the
item is retired, and a later one is refused. `items.retired_at` tells goals and new revisions to keep it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Literal, get_args

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.lease_sql import LOCK_ROOM
from app.campaigns.item_list import load_item_rows_of_ids
from app.campaigns.lifecycle import COUNT_RELEASE, lock_and_load_draft_or_refuse
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, NotFound, join_names, shorten_echo
from app.imports.checks_import import store_whether_campaign_has_checks
from app.record import law_storage
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION

ItemAction = Literal["retire", "restore", "delete"]
MAX_ITEMS_PER_CHANGE = 1_000

FIND_ITEM_NUMBERS = text("""
    SELECT external_id, number FROM items WHERE campaign_id = :campaign AND external_id = ANY(CAST(:ids AS text[]))
    ORDER BY number
""")
FIND_CHECK_IDS = text("""
    SELECT external_id FROM check_items WHERE campaign_id = :campaign AND external_id = ANY(CAST(:ids AS text[]))
""")

# In the order in which answers lock these rows, to avoid deadlocks.
LOCK_POSTERIORS_OF_ITEMS = text(f"""
    SELECT FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:numbers AS int[]))
    ORDER BY p.subject FOR NO KEY UPDATE OF p
""")
SET_RETIRED_AT = text("""
    UPDATE items SET retired_at = CAST(:retired_at AS timestamptz)
    WHERE campaign_id = :campaign AND number = ANY(CAST(:numbers AS int[]))
    AND (retired_at IS NULL) = (CAST(:retired_at AS timestamptz) IS NOT NULL) RETURNING number
""")
SET_SETTLED = text(f"""
    UPDATE posteriors p SET settled = :settled
    WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST(:numbers AS int[]))
""")

DELETE_ITEMS = text("DELETE FROM items WHERE campaign_id = :campaign AND external_id = ANY(CAST(:ids AS text[]))")
DELETE_CHECKS = text(
    "DELETE FROM check_items WHERE campaign_id = :campaign AND external_id = ANY(CAST(:ids AS text[]))"
)
# Numbers run from 0 without gaps. Renumber in two steps, so that no two rows ever have the same number.
CLOSE_NUMBER_GAPS = tuple(
    statement
    for table in ("items", "check_items")
    for statement in (
        text(f"""
            UPDATE {table} SET number = -renumbered.place FROM (
                SELECT number AS former, row_number() OVER (ORDER BY number) AS place
                FROM {table} WHERE campaign_id = :campaign
            ) AS renumbered
            WHERE campaign_id = :campaign AND number = renumbered.former AND number <> renumbered.place - 1
        """),
        text(f"UPDATE {table} SET number = -number - 1 WHERE campaign_id = :campaign AND number < 0"),
    )
)


def item_not_found_error(campaign: Campaign, item_id: str) -> NotFound:
    shown_id = shorten_echo(item_id)
    return NotFound(f"“{campaign.name}” has no item “{shown_id}”.", code="item_not_found", item=shown_id)


async def retire_restore_or_delete_items_and_count(
    connection: AsyncConnection, slug: str, action: str, item_ids: Sequence[str], *, now: datetime
) -> int:
    """Retire, restore or delete items, all or none; return how many changed.

    The caller must not commit its transaction if this raises.

    Raises:
        NotFound: `campaign_not_found`, `item_not_found`, `unknown_action`.
        Conflict: `not_a_draft` for a deletion after the launch, `not_launched` for the others before it,
            `item_always_shown`, `not_for_systems`.
        Invalid: `too_many_chosen`.

    """
    if action not in get_args(ItemAction):
        shown_action = shorten_echo(action)
        raise NotFound(f"Items cannot be changed by “{shown_action}”.", code="unknown_action", action=shown_action)
    if len(item_ids) > MAX_ITEMS_PER_CHANGE:
        message = f"At most {MAX_ITEMS_PER_CHANGE:,} items can be changed at once. Nothing was changed."
        raise Invalid(message, code="too_many_chosen")
    if action == "delete":
        return await delete_items_of_draft_and_count(connection, slug, item_ids)
    return await retire_or_restore_items_counting_changed(
        connection, slug, item_ids, retired_at=now if action == "retire" else None
    )


async def load_item_numbers_or_refuse(
    connection: AsyncConnection, campaign: Campaign, item_ids: Sequence[str]
) -> list[int]:
    """Return the numbers of items, in order. Raises `NotFound` (`item_not_found`)."""
    rows = (await connection.execute(FIND_ITEM_NUMBERS, {"campaign": campaign.id, "ids": [*item_ids]})).all()
    known_ids = {row.external_id for row in rows}
    for item_id in item_ids:
        if item_id not in known_ids:
            raise item_not_found_error(campaign, item_id)
    return [row.number for row in rows]


async def load_listed_items_or_refuse(
    connection: AsyncConnection, campaign: Campaign, item_ids: Sequence[str]
) -> Sequence[Row[Any]]:
    """Return rows of the list for items and checks with these ids. Raises `NotFound` (`item_not_found`)."""
    rows = await load_item_rows_of_ids(connection, campaign.id, item_ids)
    known_ids = {row.external_id for row in rows}
    for item_id in item_ids:
        if item_id not in known_ids:
            raise item_not_found_error(campaign, item_id)
    return rows


async def retire_or_restore_items_counting_changed(
    connection: AsyncConnection, slug: str, item_ids: Sequence[str], *, retired_at: datetime | None
) -> int:
    """Retire items, or restore them if the time is None; return how many were not so before."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await connection.execute(law_storage.SHARE_STORE_LOCK, {"campaign": campaign.id})
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    if campaign.status == "draft":
        message = f"“{campaign.name}” is a draft: delete the item instead. Nothing was changed."
        raise Conflict(message, code="not_launched")
    parameters: dict[str, Any] = {"campaign": campaign.id, "retired_at": retired_at, "settled": retired_at is not None}
    parameters["numbers"] = await load_item_numbers_or_refuse(connection, campaign, item_ids)
    if retired_at and set(parameters["numbers"]) & set(campaign.always_shown):
        message = "An item that every task shows, or every annotator judges, cannot be retired. Nothing was changed."
        raise Conflict(message, code="item_always_shown")
    for statement in (law_storage.LOCK_LAW_STATE, LOCK_POSTERIORS_OF_ITEMS):
        await connection.execute(statement, parameters)
    changed_numbers = list(await connection.scalars(SET_RETIRED_AT, parameters))
    if changed_numbers:
        await connection.execute(SET_SETTLED, parameters | {"numbers": changed_numbers})
        for statement in (LOCK_ROOM, COUNT_RELEASE):
            await connection.execute(statement, parameters)
        action = "items.retired" if retired_at else "items.restored"
        await log_change(connection, action, campaign, new_values=item_facts_for_audit_log(item_ids))
    return len(changed_numbers)


def item_facts_for_audit_log(item_ids: Sequence[str]) -> dict[str, Any]:
    return {"items": len(item_ids), "ids": join_names(item_ids)}


async def delete_items_of_draft_and_count(connection: AsyncConnection, slug: str, item_ids: Sequence[str]) -> int:
    """Delete items and checks of a draft, and return how many."""
    campaign = await lock_and_load_draft_or_refuse(
        connection, slug, "items can be retired, but not deleted. Nothing was changed"
    )
    refuse_campaign_of_systems(campaign, "upload the outputs again and replace them")
    parameters = {"campaign": campaign.id, "ids": [*item_ids]}
    check_ids = set(await connection.scalars(FIND_CHECK_IDS, parameters))
    await load_item_numbers_or_refuse(
        connection, campaign, [item_id for item_id in item_ids if item_id not in check_ids]
    )
    for statement in (DELETE_ITEMS, DELETE_CHECKS, *CLOSE_NUMBER_GAPS):
        await connection.execute(statement, parameters)
    await store_whether_campaign_has_checks(connection, campaign.id)
    await log_change(connection, "items.deleted", campaign, new_values=item_facts_for_audit_log(item_ids))
    return len(item_ids)


def refuse_campaign_of_systems(campaign: Campaign, advice: str) -> None:
    """Raise `Conflict` (`not_for_systems`) if the items are systems."""
    if campaign.segment_count:
        message = f"“{campaign.name}” compares systems: {advice}. Nothing was changed."
        raise Conflict(message, code="not_for_systems")
