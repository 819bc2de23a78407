"""Gold and attention items in the table of items: rows with `gold` or `attention` in the column `check`."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.errors import Invalid, pluralize
from app.quality.check_expectations import (
    CriterionDesigns,
    criterion_designs,
    expectation_cells,
    expected_and_tolerance_column_names,
    names_of_all_expectation_columns,
    parse_expectations_or_refuse,
)
from app.quality.checks import refuse_if_hits_cannot_show_checks
from app.uploads import UploadedRow, format_cell, raise_upload_refusal_at_line

ID_COLUMN = "id"
CHECK_COLUMN = "check"
EXPLANATION_COLUMN = "explanation"
UPLOADED_CHECK_KINDS = ("gold", "attention")
MAX_CHECKS_PER_CAMPAIGN = 1000

HAS_CHECKS = text("SELECT EXISTS (SELECT FROM check_items WHERE campaign_id = :campaign)")
STORE_HAS_CHECKS = text("UPDATE campaigns SET has_checks = :has_checks WHERE id = :campaign")
DELETE_CHECK_ITEMS = text("DELETE FROM check_items WHERE campaign_id = :campaign")
COUNT_CHECK_ITEMS = text("SELECT count(*) FROM check_items WHERE campaign_id = :campaign")
LIST_CHECK_ITEM_IDS = text("SELECT external_id FROM check_items WHERE campaign_id = :campaign")
LOAD_CHECK_ITEMS = text("""
    SELECT i.external_id, i.kind, i.shown, i.expected, i.fields, s.external_id AS segment
    FROM check_items i LEFT JOIN segments s ON s.campaign_id = i.campaign_id AND s.number = i.segment
    WHERE i.campaign_id = :campaign ORDER BY i.number
""")
INSERT_CHECK_ITEM = text("""
    INSERT INTO check_items (campaign_id, number, external_id, kind, shown, expected, fields, segment)
    VALUES (:campaign, :number, :external_id, :kind, :shown, CAST(:expected AS jsonb), CAST(:fields AS json), :segment)
""")


class NewCheck(NamedTuple):
    """A check of a table; `expected` and `fields` (the row as it came) are JSON.

    `segment`: number of the segment, if the items are systems.
    """

    external_id: str
    kind: str
    shown: str
    expected: str
    fields: str
    segment: int | None = None


def kind_of_check_in_row_or_default(row: UploadedRow, default_kind: str = "") -> str:
    """Return the kind of check that a row names, or the default one; empty if it is an item."""
    return format_cell(row.values.get(CHECK_COLUMN)).strip().lower() or default_kind


def parse_check_of_row(
    row: UploadedRow, kind: str, external_id: str, shown_text: str, designs: CriterionDesigns
) -> NewCheck:
    """Return the check in a row.

    Raises `Invalid` (`check_unknown`, `expected_missing`, `expected_unreadable`, `expected_impossible`,
    `expected_misplaced`), with the line.
    """
    names = [*names_of_all_expectation_columns(designs), *expected_and_tolerance_column_names("")]
    cells = {name: format_cell(row.values.get(name)) for name in names}
    try:
        expected = expected_answers_json_or_refuse(kind, cells, designs)
    except Invalid as problem:
        raise_upload_refusal_at_line(problem.code, row.line, str(problem), **problem.details)
    return NewCheck(external_id, kind, shown_text, expected, json.dumps(row.values, ensure_ascii=False))


def expected_answers_json_or_refuse(kind: str, cells: Mapping[str, str], designs: CriterionDesigns) -> str:
    """Return the expected answers to a check of some kind, as JSON. Raises `Invalid` as `parse_check_of_row` does."""
    if kind not in UPLOADED_CHECK_KINDS:
        raise Invalid("The column “check” may contain only gold, attention or nothing.", code="check_unknown")
    return json.dumps(parse_expectations_or_refuse(designs, cells), ensure_ascii=False)


def gold_and_attention_counts_text(check_count: int, gold_count: int | None) -> str:
    """Return a number of checks by their kinds; `gold_count` is None if it is unknown."""
    if gold_count is None:
        return pluralize(check_count, "gold or attention item")
    counts = {"gold item": gold_count, "attention item": check_count - gold_count}
    return " and ".join(pluralize(count, noun) for noun, count in counts.items() if count)


async def delete_check_items(connection: AsyncConnection, campaign_id: int) -> None:
    await connection.execute(DELETE_CHECK_ITEMS, {"campaign": campaign_id})
    await store_whether_campaign_has_checks(connection, campaign_id)


async def store_whether_campaign_has_checks(connection: AsyncConnection, campaign_id: int) -> None:
    """Store in the campaign's row whether it has checks. Call this after each change of its checks."""
    parameters = {"campaign": campaign_id}
    has_checks = await connection.scalar(HAS_CHECKS, parameters)
    await connection.execute(STORE_HAS_CHECKS, parameters | {"has_checks": has_checks})


async def load_external_ids_of_checks(connection: AsyncConnection, campaign_id: int) -> set[str]:
    """Return the researcher's ids of the checks, which no item may have."""
    return set(await connection.scalars(LIST_CHECK_ITEM_IDS, {"campaign": campaign_id}))


async def insert_check_items_or_refuse_too_many(
    connection: AsyncConnection, campaign: Campaign, checks: Sequence[NewCheck]
) -> None:
    """Add checks to a campaign, numbered after its present ones. Raises `Invalid` (`too_many_checks`)."""
    parameters = {"campaign": campaign.id}
    if not checks:
        return
    existing_count: int = (await connection.execute(COUNT_CHECK_ITEMS, parameters)).scalar_one()
    refuse_too_many_checks(existing_count + len(checks))
    rows = [
        {**parameters, "number": number, **check._asdict()} for number, check in enumerate(checks, start=existing_count)
    ]
    await connection.execute(INSERT_CHECK_ITEM, rows)
    await store_whether_campaign_has_checks(connection, campaign.id)


def refuse_too_many_checks(count: int) -> None:
    if count > MAX_CHECKS_PER_CAMPAIGN:
        raise Invalid(
            f"A campaign has at most {MAX_CHECKS_PER_CAMPAIGN} checks. Nothing was imported.", code="too_many_checks"
        )


async def load_check_items(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """Return all checks of a campaign, in their order; `segment` is the researcher's id of the segment."""
    return (await connection.execute(LOAD_CHECK_ITEMS, {"campaign": campaign_id})).all()


def table_row_of_check(check: Row[Any], original_id_column: str, shown_column: str) -> dict[str, Any]:
    """Return the row of the table of items that describes a check; `original_id_column` holds the uploaded `id`."""
    uploaded = {original_id_column if name == ID_COLUMN else name: cell for name, cell in check.fields.items()}
    check_cells = {shown_column: check.shown, CHECK_COLUMN: check.kind} | expectation_cells(check.expected)
    return {ID_COLUMN: check.external_id} | uploaded | check_cells | {ID_COLUMN: check.external_id}


def iterate_item_rows_appending_checks(
    rows: Iterable[UploadedRow],
    checks: list[NewCheck],
    read_id_and_text: Callable[[UploadedRow], tuple[str, str]],
    campaign: Campaign,
    default_kind: str = "",
) -> Iterator[UploadedRow]:
    """Yield the rows that are no checks, and append the checks to `checks`.

    Id and text of a check are read by `read_id_and_text`, its expected answer by the campaign's design. Rows that name
    no kind of check have `default_kind`; if it is empty, they are items.
    """
    designs = criterion_designs(campaign)
    for record in rows:
        if kind := kind_of_check_in_row_or_default(record, default_kind):
            if not checks:
                refuse_if_hits_cannot_show_checks(campaign)
            checks.append(parse_check_of_row(record, kind, *read_id_and_text(record), designs))
            refuse_too_many_checks(len(checks))
        else:
            yield record
