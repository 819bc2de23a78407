"""Items of a draft become gold or attention items, and items again."""

import json
from typing import Any, Literal

from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns import checks_import
from app.campaigns.checks_import import COLUMN, EXPECTED, TOLERANCE, NewCheck, expected_in
from app.campaigns.items import prior_of
from app.campaigns.lifecycle import locked_draft
from app.database.audit_log import note
from app.database.campaign import item_count
from app.designs.registry import design_of
from app.errors import NotFound, shortened
from app.quality.checks import refuse_where_none_fit
from app.record.law import law_of
from app.upload import UploadedRow

FIXED = "the launch fixes which items are checks. Nothing was changed"

TAKE = "DELETE FROM {table} WHERE campaign_id = :campaign AND external_id = :name RETURNING number, shown, fields"

# Numbers run from 0 without gaps. In two steps, so that never two rows have the same one.
CLOSE_GAP = (
    "UPDATE {table} SET number = -number WHERE campaign_id = :campaign AND number > :gap",
    "UPDATE {table} SET number = -number - 1 WHERE campaign_id = :campaign AND number < 0",
)

ADD_ITEM = text("""
    INSERT INTO items (campaign_id, number, external_id, shown, fields, prior)
    VALUES (:campaign, :number, :name, :shown, CAST(:fields AS json), CAST(:prior AS float8[]))
""")

# Columns of priors were taken with the items if any item has one.
HAS_PRIORS = text("SELECT EXISTS (SELECT FROM items WHERE campaign_id = :campaign AND prior IS NOT NULL)")


async def mark(
    connection: AsyncConnection, slug: str, name: str, *, kind: str, expected: str, tolerance: str = ""
) -> None:
    """Make an item, by its id, a check. expected, tolerance: as in cells of the table of items.

    Raises `NotFound` (`campaign_not_found`, `item_not_found`), `Conflict` (`not_a_draft`, `no_checks_here`) and
    `Invalid` (`check_unknown`, `expected_missing`, `expected_unreadable`, `expected_impossible`, `too_many_checks`);
    the caller's transaction must not be committed then.
    """
    campaign = await locked_draft(connection, slug, FIXED)
    refuse_where_none_fit(campaign)
    answer = expected_in(kind, expected, tolerance, design_of(campaign))
    row = await taken(connection, campaign, "items", name)
    fields = {**row.fields, COLUMN: kind, EXPECTED: expected} | ({TOLERANCE: tolerance} if tolerance else {})
    await checks_import.store(connection, campaign, [NewCheck(name, kind, row.shown, answer, json.dumps(fields))])
    await note(connection, "items.marked", campaign, after={"item": name, "check": kind})


async def unmark(connection: AsyncConnection, slug: str, name: str) -> None:
    """Make a check an item again, the last one.

    Raises `NotFound` (`campaign_not_found`, `item_not_found`) and `Conflict` (`not_a_draft`).
    """
    campaign = await locked_draft(connection, slug, FIXED)
    row = await taken(connection, campaign, "check_items", name)
    fields = {column: cell for column, cell in row.fields.items() if column not in (COLUMN, EXPECTED, TOLERANCE)}
    names = law_of(campaign).family.parameter_names
    takes_priors = set(names) <= fields.keys() and await connection.scalar(HAS_PRIORS, {"campaign": campaign.id})
    prior = prior_of(UploadedRow(0, fields), names, law_of(campaign)) if takes_priors else None
    item = {"campaign": campaign.id, "name": name, "shown": row.shown, "fields": json.dumps(fields)}
    item |= {"number": await connection.scalar(select(item_count(campaign.id))), "prior": prior and list(prior)}
    await connection.execute(ADD_ITEM, item)
    await connection.execute(checks_import.HAS, {"campaign": campaign.id})
    await note(connection, "items.unmarked", campaign, after={"item": name})


async def taken(
    connection: AsyncConnection, campaign: Row[Any], table: Literal["items", "check_items"], name: str
) -> Row[Any]:
    """What one of them was, which is there no more. Raises `NotFound` (`item_not_found`)."""
    of = {"campaign": campaign.id}
    row = (await connection.execute(text(TAKE.format(table=table)), of | {"name": name})).one_or_none()
    if row is None:
        said = shortened(name)
        raise NotFound(f"“{campaign.name}” has no such item “{said}”.", code="item_not_found", item=said)
    for statement in CLOSE_GAP:
        await connection.execute(text(statement.format(table=table)), of | {"gap": row.number})
    return row
