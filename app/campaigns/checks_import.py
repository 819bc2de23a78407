"""Gold and attention items out of the table of items, and back: rows that say `gold` or `attention` in `check`."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.design import Design
from app.designs.registry import design_of
from app.errors import Invalid
from app.quality.checks import refuse_where_none_fit
from app.quality.expected import ExpectedAnswer, as_cells, from_cells
from app.upload import UploadedRow, as_text, refuse

ID = "id"
COLUMN, EXPECTED, TOLERANCE = "check", "expected", "tolerance"
KINDS = ("gold", "attention")
MOST = 1000  # of a campaign

HAS = text("""
    UPDATE campaigns SET has_checks = EXISTS (SELECT FROM check_items WHERE campaign_id = :campaign)
    WHERE id = :campaign
""")
CLEAR = text("DELETE FROM check_items WHERE campaign_id = :campaign")
COUNT = text("SELECT count(*) FROM check_items WHERE campaign_id = :campaign")
IDS = text("SELECT external_id FROM check_items WHERE campaign_id = :campaign")
ALL = text("""
    SELECT external_id, kind, shown, expected, fields FROM check_items WHERE campaign_id = :campaign ORDER BY number
""")
ADD = text("""
    INSERT INTO check_items (campaign_id, number, external_id, kind, shown, expected, fields)
    VALUES (:campaign, :number, :external_id, :kind, :shown, CAST(:expected AS jsonb), CAST(:fields AS json))
""")


class NewCheck(NamedTuple):
    """A check of a table; expected, fields: as JSON, the latter the row as it came."""

    external_id: str
    kind: str
    shown: str
    expected: str
    fields: str


def is_check(record: UploadedRow) -> bool:
    """Whether a row is one."""
    return bool(as_text(record.values.get(COLUMN)).strip())


def check_of(record: UploadedRow, external_id: str, shown: str, design: Design) -> NewCheck:
    """The check in a row. Raises `Invalid` (`check_unknown`, `expected_missing`, `expected_unreadable`,
    `expected_impossible`), with the line.
    """
    kind = as_text(record.values.get(COLUMN)).strip().lower()
    cell, tolerance = (as_text(record.values.get(name)) for name in (EXPECTED, TOLERANCE))
    try:
        expected = expected_in(kind, cell, tolerance, design)
    except Invalid as problem:
        refuse(problem.code, record.line, str(problem), **problem.details)
    return NewCheck(external_id, kind, shown, expected, json.dumps(record.values, ensure_ascii=False))


def expected_in(kind: str, cell: str, tolerance: str, design: Design) -> str:
    """What is expected of a check of some kind, as JSON. Raises `Invalid`, as `check_of` does."""
    if kind not in KINDS:
        raise Invalid("In the column “check” stands gold, attention or nothing.", code="check_unknown")
    expected = from_cells(design, cell, tolerance)
    if expected is None:
        raise Invalid("A check says in the column “expected” what is expected of it.", code="expected_missing")
    return expected.model_dump_json(exclude_defaults=True)


async def clear(connection: AsyncConnection, campaign_id: int) -> None:
    """Take those of a draft."""
    for statement in (CLEAR, HAS):
        await connection.execute(statement, {"campaign": campaign_id})


async def ids(connection: AsyncConnection, campaign_id: int) -> set[str]:
    """The researcher's, which no item may have."""
    return set(await connection.scalars(IDS, {"campaign": campaign_id}))


async def store(connection: AsyncConnection, campaign: Any, checks: Sequence[NewCheck]) -> None:
    """Add checks to a campaign, after those it has. Raises `Invalid` (`too_many_checks`)."""
    of = {"campaign": campaign.id}
    if not checks:
        return
    there: int = (await connection.execute(COUNT, of)).scalar_one()
    if there + len(checks) > MOST:
        raise Invalid(f"A campaign has at most {MOST} checks. Nothing was imported.", code="too_many_checks")
    rows = [{**of, "number": number, **check._asdict()} for number, check in enumerate(checks, start=there)]
    await connection.execute(ADD, rows)
    await connection.execute(HAS, of)


async def as_stored(connection: AsyncConnection, campaign_id: int) -> Sequence[Row[Any]]:
    """All of a campaign, in their order."""
    return (await connection.execute(ALL, {"campaign": campaign_id})).all()


def as_row(check: Row[Any], own_id: str, column_shown: str) -> dict[str, Any]:
    """A row of the table of items that says the same. own_id: the column that holds what was uploaded as `id`."""
    expected, tolerance = as_cells(ExpectedAnswer.model_validate(check.expected))
    uploaded = {own_id if name == ID else name: cell for name, cell in check.fields.items()}
    said = {column_shown: check.shown, COLUMN: check.kind, EXPECTED: expected, TOLERANCE: tolerance}
    return {ID: check.external_id} | uploaded | said | {ID: check.external_id}


def taken_out(
    records: Iterable[UploadedRow], found: list[NewCheck], read: Callable[[UploadedRow], tuple[str, str]], campaign: Any
) -> Iterator[UploadedRow]:
    """The rows that are no checks; what is `read` of the others (id and text) is found with what is expected."""
    design = design_of(campaign)
    for record in records:
        if is_check(record):
            if not found:
                refuse_where_none_fit(campaign)
            found.append(check_of(record, *read(record), design))
        else:
            yield record
