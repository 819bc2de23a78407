"""Turn items of a draft into gold or attention items, and back."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.known_answers import (
    KnownAnswersChoice,
    choose_gold_id_and_cell_pairs_or_refuse,
    load_known_answers,
    refuse_known_answer_column_if_several_criteria,
)
from app.campaigns.lifecycle import lock_and_load_draft_or_refuse
from app.database.audit_log import log_change
from app.database.campaign import number_of_items_sql
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, shorten_echo
from app.imports import checks_import
from app.imports.checks_import import (
    CHECK_COLUMN,
    EXPLANATION_COLUMN,
    NewCheck,
    expected_answers_json_or_refuse,
)
from app.imports.item_changes import (
    item_facts_for_audit_log,
    item_not_found_error,
    refuse_campaign_of_systems,
)
from app.imports.items import parse_item_prior_or_none
from app.imports.text_corrections import refuse_unshowable_or_unchanged_text
from app.quality.check_expectations import (
    EXPECTED_COLUMN,
    SET_COLUMN,
    TOLERANCE_COLUMN,
    criterion_designs,
    expectation_cells,
    names_of_all_expectation_columns,
)
from app.quality.checks import refuse_if_hits_cannot_show_checks
from app.uploads import UploadedRow

CHECKS_OF_SYSTEMS_ADVICE = "add checks as rows of its table of outputs, with the column check"
CHECKS_ARE_FIXED_MESSAGE = "checks can’t be changed after launch. Nothing was changed"

COPY_COLUMN = "copy_of"  # of a check whose item stayed in the study: the id of the item

LOCK_CHECK = text("""
    SELECT number, shown, fields FROM check_items WHERE campaign_id = :campaign AND external_id = :name FOR UPDATE
""")
UPDATE_CHECK = text("""
    UPDATE check_items SET kind = :kind, shown = :shown, expected = CAST(:expected AS jsonb),
        fields = CAST(:fields AS json)
    WHERE campaign_id = :campaign AND external_id = :external_id
""")
FIND_ITEM = text("SELECT number, shown, fields FROM items WHERE campaign_id = :campaign AND external_id = :name")
IS_ID_TAKEN = text("""
    SELECT EXISTS (SELECT FROM items WHERE campaign_id = :campaign AND external_id = :name)
        OR EXISTS (SELECT FROM check_items WHERE campaign_id = :campaign AND external_id = :name)
""")

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


class CheckToMark(NamedTuple):
    """An item that becomes a check, or a check that changes.

    Attributes:
        item_id: The researcher's id.
        cells: Its expected answers and tolerances, as the table of items has them.
        text: What annotators see from now on; None keeps it. Only a check has a new one.
        explanation: Reason for the expected answer; None keeps it. Only a check has a new one.

    """

    item_id: str
    cells: Mapping[str, str]
    text: str | None = None
    explanation: str | None = None


async def turn_draft_items_into_checks_or_refuse(
    connection: AsyncConnection, slug: str, checks: Sequence[CheckToMark], *, kind: str, keeps_items: bool = False
) -> None:
    """Make items of a draft checks of one kind, all or none; a check gets this kind and these expected answers.

    Args:
        connection: The caller must not commit its transaction if this raises.
        slug: The campaign.
        checks: The items, with their expected answers.
        kind: gold or attention.
        keeps_items: Whether each item stays an item, too. The check is then a copy with an id of its own.

    Raises:
        NotFound: `campaign_not_found`, `item_not_found`.
        Conflict: `not_a_draft`, `no_checks_here`, `id_taken`; `not_for_systems` for a system.
        Invalid: `check_unknown`, `expected_missing`, `expected_unreadable`, `expected_impossible`, `too_many_checks`,
            with the id of the item in the details; for a new text `shown_empty`, `shown_too_long`, and what media of
            it may be missing.

    """
    campaign = await lock_and_load_draft_or_refuse(connection, slug, CHECKS_ARE_FIXED_MESSAGE)
    refuse_if_hits_cannot_show_checks(campaign)
    for check in checks:
        if await try_to_update_check(connection, campaign, check, kind=kind):
            continue
        new_check = await make_check_of_item_and_remove_unless_kept(
            connection, campaign, check, kind=kind, keeps_item=keeps_items
        )
        await checks_import.insert_check_items_or_refuse_too_many(connection, campaign, [new_check])
        facts = {"item": check.item_id, "check": kind} | ({"copy": new_check.external_id} if keeps_items else {})
        await log_change(connection, "items.copied" if keeps_items else "items.marked", campaign, new_values=facts)


async def mark_gold_by_known_answers_returning_ids(
    connection: AsyncConnection, slug: str, choice: KnownAnswersChoice
) -> list[str]:
    """Make items of a draft gold items by the known answers in a column of their table, and return the items' ids.

    Raises:
        NotFound: `campaign_not_found`.
        Conflict: `not_a_draft`, `no_checks_here`, `not_for_systems`, `known_answers_by_criteria`, `id_taken`.
        Invalid: `known_answers_missing`, `known_answers_too_few`, `known_answers_other_scale`, `expected_impossible`,
            `too_many_checks`.

    """
    campaign = await lock_and_load_draft_or_refuse(connection, slug, CHECKS_ARE_FIXED_MESSAGE)
    refuse_if_hits_cannot_show_checks(campaign)
    refuse_campaign_of_systems(campaign, CHECKS_OF_SYSTEMS_ADVICE)
    refuse_known_answer_column_if_several_criteria(campaign)
    known = await load_known_answers(connection, campaign, choice.column)
    checks = [
        CheckToMark(item_id, {EXPECTED_COLUMN: expected, TOLERANCE_COLUMN: choice.tolerance_cell})
        for item_id, expected in choose_gold_id_and_cell_pairs_or_refuse(known, campaign.design, choice.count)
    ]
    await turn_draft_items_into_checks_or_refuse(connection, slug, checks, kind="gold", keeps_items=choice.keep)
    return [check.item_id for check in checks]


async def make_check_of_item_and_remove_unless_kept(
    connection: AsyncConnection, campaign: Campaign, check: CheckToMark, *, kind: str, keeps_item: bool
) -> NewCheck:
    """Return the check that an item becomes, and remove the item unless it is kept. Raises as
    `turn_draft_items_into_checks_or_refuse` does.
    """
    item_id = check.item_id
    expected_json = expected_answers_json_refusing_with_item(campaign, check, kind)
    row = await (load_item_row_or_refuse if keeps_item else delete_item_row_and_return_it)(
        connection, campaign, item_id
    )
    fields = {**row.fields, CHECK_COLUMN: kind} | filled_expectation_cells(campaign, check)
    check_id = f"{item_id} ({kind})" if keeps_item else item_id
    if keeps_item:
        fields |= {COPY_COLUMN: item_id}
        if await connection.scalar(IS_ID_TAKEN, {"campaign": campaign.id, "name": check_id}):
            message = f"“{campaign.name}” already has “{shorten_echo(check_id)}”. Nothing was changed."
            raise Conflict(message, code="id_taken", item=shorten_echo(item_id))
    return NewCheck(check_id, kind, row.shown, expected_json, json.dumps(fields, ensure_ascii=False))


async def try_to_update_check(
    connection: AsyncConnection, campaign: Campaign, check: CheckToMark, *, kind: str
) -> bool:
    """Give a check of a draft this kind, these expected answers, and what else is given; return False if the id is not
    that of a check. Raises as `turn_draft_items_into_checks_or_refuse` does.
    """
    parameters = {"campaign": campaign.id, "name": check.item_id}
    row = (await connection.execute(LOCK_CHECK, parameters)).one_or_none()
    if row is None:
        refuse_campaign_of_systems(campaign, CHECKS_OF_SYSTEMS_ADVICE)
        return False
    expected_json = expected_answers_json_refusing_with_item(campaign, check, kind)
    shown = row.shown if check.text is None else check.text
    if shown != row.shown:
        await refuse_unshowable_or_unchanged_text(connection, campaign, row.shown, shown)
    replaced_columns = names_of_all_expectation_columns(criterion_designs(campaign))
    fields = {column: cell for column, cell in row.fields.items() if column not in replaced_columns}
    fields |= {CHECK_COLUMN: kind} | filled_expectation_cells(campaign, check)
    if check.explanation is not None and check.explanation != fields.get(EXPLANATION_COLUMN, ""):
        fields[EXPLANATION_COLUMN] = check.explanation
    changed = {"campaign": campaign.id, "external_id": check.item_id, "kind": kind, "shown": shown}
    changed |= {"expected": expected_json, "fields": json.dumps(fields, ensure_ascii=False)}
    await connection.execute(UPDATE_CHECK, changed)
    facts = {"item": check.item_id, "check": kind}
    await log_change(connection, "items.check_changed", campaign, new_values=facts)
    return True


def expected_answers_json_refusing_with_item(campaign: Campaign, check: CheckToMark, kind: str) -> str:
    """Return the expected answers of a check, as JSON. Raises `Invalid`, which names the item."""
    try:
        return expected_answers_json_or_refuse(kind, check.cells, criterion_designs(campaign))
    except Invalid as problem:
        item_id = shorten_echo(check.item_id)
        message = f"Item {item_id}: {problem}"
        raise Invalid(message, code=problem.code, **problem.details, item=item_id) from None


def stored_check_as_entered(row: Row[Any]) -> CheckToMark:
    """Return a check of the list of items as a form that changes it has it."""
    explanation = str(row.fields.get(EXPLANATION_COLUMN) or "")
    return CheckToMark(row.external_id, expectation_cells(row.expected), row.shown, explanation)


def filled_expectation_cells(campaign: Campaign, check: CheckToMark) -> dict[str, str]:
    """Return the cells of a check that say something of its expected answers, and of its set."""
    columns = [*names_of_all_expectation_columns(criterion_designs(campaign)), SET_COLUMN]
    return {name: check.cells[name] for name in columns if check.cells.get(name)}


async def turn_check_back_into_item_or_refuse(connection: AsyncConnection, slug: str, item_id: str) -> Campaign:
    """Make a check an item again, the last one, and return its campaign.

    A check of a segment, or a copy of an item that stayed in the study, is deleted instead.

    Raises `NotFound` (`campaign_not_found`, `item_not_found`) and `Conflict` (`not_a_draft`).
    """
    campaign = await lock_and_load_draft_or_refuse(connection, slug, CHECKS_ARE_FIXED_MESSAGE)
    row = await delete_row_closing_number_gap_and_return_it(connection, campaign, "check_items", item_id)
    if campaign.segment_count or COPY_COLUMN in row.fields:
        await checks_import.store_whether_campaign_has_checks(connection, campaign.id)
        await log_change(connection, "items.deleted", campaign, new_values=item_facts_for_audit_log([item_id]))
        return campaign
    check_columns = {CHECK_COLUMN, SET_COLUMN, *names_of_all_expectation_columns(criterion_designs(campaign))}
    fields = {column: cell for column, cell in row.fields.items() if column not in check_columns}
    prior_columns = campaign.law.family.parameter_names
    takes_priors = set(prior_columns) <= fields.keys() and await connection.scalar(
        HAS_PRIORS, {"campaign": campaign.id}
    )
    prior = parse_item_prior_or_none(UploadedRow(0, fields), prior_columns, campaign.law) if takes_priors else None
    item = {"campaign": campaign.id, "name": item_id, "shown": row.shown, "fields": json.dumps(fields)}
    item |= {
        "number": await connection.scalar(select(number_of_items_sql(campaign.id))),
        "prior": prior and list(prior),
    }
    await connection.execute(INSERT_UNMARKED_ITEM, item)
    await checks_import.store_whether_campaign_has_checks(connection, campaign.id)
    await log_change(connection, "items.unmarked", campaign, new_values={"item": item_id})
    return campaign


async def load_item_row_or_refuse(connection: AsyncConnection, campaign: Campaign, item_id: str) -> Row[Any]:
    """Return the row of an item. Raises `NotFound` (`item_not_found`)."""
    row = (await connection.execute(FIND_ITEM, {"campaign": campaign.id, "name": item_id})).one_or_none()
    if row is None:
        raise item_not_found_error(campaign, item_id)
    return row


async def delete_item_row_and_return_it(connection: AsyncConnection, campaign: Campaign, item_id: str) -> Row[Any]:
    return await delete_row_closing_number_gap_and_return_it(connection, campaign, "items", item_id)


async def delete_row_closing_number_gap_and_return_it(
    connection: AsyncConnection, campaign: Campaign, table: Literal["items", "check_items"], item_id: str
) -> Row[Any]:
    """Delete an item or a check and return its row. Raises `NotFound` (`item_not_found`)."""
    parameters = {"campaign": campaign.id}
    row = (
        await connection.execute(text(DELETE_ITEM_OR_CHECK.format(table=table)), parameters | {"name": item_id})
    ).one_or_none()
    if row is None:
        raise item_not_found_error(campaign, item_id)
    for statement in CLOSE_NUMBER_GAP:
        await connection.execute(text(statement.format(table=table)), parameters | {"gap": row.number})
    return row
