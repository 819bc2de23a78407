"""Turn items of a draft into gold or attention items, and back."""

import json
from typing import Any, Literal

from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.lifecycle import lock_draft
from app.database.audit_log import log_change
from app.database.campaign import item_count_sql
from app.designs.campaign import Campaign
from app.errors import NotFound, shorten_echo
from app.imports import checks_import
from app.imports.checks_import import CHECK_COLUMN, EXPECTED_COLUMN, TOLERANCE_COLUMN, NewCheck, expected_answer_json
from app.imports.items import read_item_prior
from app.quality.checks import refuse_if_checks_do_not_fit
from app.uploads import UploadedRow

CHECKS_ARE_FIXED_MESSAGE = "checks can’t be changed after launch. Nothing was changed"

DELETE_ITEM_OR_CHECK = (
    "DELETE FROM {table} WHERE campaign_id = :campaign AND external_id = :name RETURNING number, shown, fields"
)

# Numbers run from 0 without gaps. Renumber in two steps, so that no two rows ever have the same number.
CLOSE_NUMBER_GAP = (
    "UPDATE {table} SET number = -number WHERE campaign_id = :campaign AND number > :gap",
    "UPDATE {table} SET number = -number - 1 WHERE campaign_id = :campaign AND number < 0",
)

INSERT_UNMARKED_ITEM = text("""
    INSERT INTO items (campaign_id, number, external_id, shown, fields, prior)
    VALUES (:campaign, :number, :name, :shown, CAST(:fields AS json), CAST(:prior AS float8[]))
""")

# If any item has a prior, the import used the columns of priors.
HAS_PRIORS = text("SELECT EXISTS (SELECT FROM items WHERE campaign_id = :campaign AND prior IS NOT NULL)")


async def mark_item_as_check(
    connection: AsyncConnection, slug: str, item_id: str, *, kind: str, expected: str, tolerance: str = ""
) -> None:
    """Make the item with this id a check; `expected` and `tolerance` are written as in cells of the table of items.

    Raises `NotFound` (`campaign_not_found`, `item_not_found`), `Conflict` (`not_a_draft`, `no_checks_here`) and
    `Invalid` (`check_unknown`, `expected_missing`, `expected_unreadable`, `expected_impossible`, `too_many_checks`);
    the caller must not commit its transaction then.
    """
    campaign = await lock_draft(connection, slug, CHECKS_ARE_FIXED_MESSAGE)
    refuse_if_checks_do_not_fit(campaign)
    expected_json = expected_answer_json(kind, expected, tolerance, campaign.design)
    row = await remove_item_or_check(connection, campaign, "items", item_id)
    fields = {**row.fields, CHECK_COLUMN: kind, EXPECTED_COLUMN: expected} | (
        {TOLERANCE_COLUMN: tolerance} if tolerance else {}
    )
    await checks_import.insert_check_items(
        connection, campaign, [NewCheck(item_id, kind, row.shown, expected_json, json.dumps(fields))]
    )
    await log_change(connection, "items.marked", campaign, after={"item": item_id, "check": kind})


async def turn_check_into_item(connection: AsyncConnection, slug: str, item_id: str) -> None:
    """Make a check an item again, the last one.

    Raises `NotFound` (`campaign_not_found`, `item_not_found`) and `Conflict` (`not_a_draft`).
    """
    campaign = await lock_draft(connection, slug, CHECKS_ARE_FIXED_MESSAGE)
    row = await remove_item_or_check(connection, campaign, "check_items", item_id)
    fields = {
        column: cell
        for column, cell in row.fields.items()
        if column not in (CHECK_COLUMN, EXPECTED_COLUMN, TOLERANCE_COLUMN)
    }
    prior_columns = campaign.law.family.parameter_names
    takes_priors = set(prior_columns) <= fields.keys() and await connection.scalar(
        HAS_PRIORS, {"campaign": campaign.id}
    )
    prior = read_item_prior(UploadedRow(0, fields), prior_columns, campaign.law) if takes_priors else None
    item = {"campaign": campaign.id, "name": item_id, "shown": row.shown, "fields": json.dumps(fields)}
    item |= {"number": await connection.scalar(select(item_count_sql(campaign.id))), "prior": prior and list(prior)}
    await connection.execute(INSERT_UNMARKED_ITEM, item)
    await connection.execute(checks_import.UPDATE_HAS_CHECKS, {"campaign": campaign.id})
    await log_change(connection, "items.unmarked", campaign, after={"item": item_id})


async def remove_item_or_check(
    connection: AsyncConnection, campaign: Campaign, table: Literal["items", "check_items"], item_id: str
) -> Row[Any]:
    """Delete an item or a check and return its row. Raises `NotFound` (`item_not_found`)."""
    parameters = {"campaign": campaign.id}
    row = (
        await connection.execute(text(DELETE_ITEM_OR_CHECK.format(table=table)), parameters | {"name": item_id})
    ).one_or_none()
    if row is None:
        shown_id = shorten_echo(item_id)
        raise NotFound(f"“{campaign.name}” has no item “{shown_id}”.", code="item_not_found", item=shown_id)
    for statement in CLOSE_NUMBER_GAP:
        await connection.execute(text(statement.format(table=table)), parameters | {"gap": row.number})
    return row
