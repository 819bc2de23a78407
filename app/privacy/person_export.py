"""Copy of all data about a person: a ZIP with `person.json` and a CSV for each table, made from the inventory."""

import asyncio
import csv
import io
import json
import math
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.personal import PLATFORM as PERSONAL_PLATFORM
from app.annotation.platforms.registry import PLATFORMS
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.privacy.inventory import PERSONAL_TABLES
from app.privacy.inventory_types import PersonalTable
from app.privacy.person_search import Person
from app.text.spreadsheets import guard_against_formula
from app.text.table_formats import format_utc_time

# Words of what the person was shown, as they are now.
SELECT_SHOWN_ITEMS = text("""
    SELECT i.number, i.external_id, i.shown FROM items i WHERE i.campaign_id = :campaign AND i.number IN (
        SELECT unnest(items) FROM hits WHERE campaign_id = :campaign AND annotator_id = :annotator)
    ORDER BY i.number
""")
SELECT_SHOWN_OUTPUTS = text("""
    SELECT DISTINCT o.segment, o.item, o.shown FROM hits h
    JOIN outputs o ON o.campaign_id = h.campaign_id AND o.segment = h.segment AND o.item = ANY(h.items)
    WHERE h.campaign_id = :campaign AND h.annotator_id = :annotator ORDER BY 1, 2
""")
SELECT_CONSENT_TEXTS = text("""
    SELECT t.version, t.markdown, t.sha256, t.since FROM consent_texts t WHERE t.campaign_id = :campaign
    AND t.version IN (SELECT version FROM visits WHERE campaign_id = :campaign AND annotator_id = :annotator
                      AND step = 'consent') ORDER BY t.version
""")

# Researchers who downloaded files about people since the person came. They have no names here.
SELECT_DOWNLOADS = text("""
    SELECT noted_at, about FROM audit_log
    WHERE campaign_id = :campaign AND action = 'people.downloaded' AND noted_at >= :arrived ORDER BY id
""")

# All that is stored about a person who has not opened their personal link, and about one whom only lists name.
OWN_LINK_SQL = "campaign_id = :campaign AND number = :number"
ROWS_OF_UNOPENED_LINK = {
    "participant_lists": f"""campaign_id = :campaign AND worker_id = (
        SELECT name FROM personal_links WHERE {OWN_LINK_SQL})""",
    "personal_links": OWN_LINK_SQL,
}
ROWS_OF_LISTED_PERSON = {
    "participant_lists": """campaign_id = :campaign AND worker_id = (
        SELECT worker_id FROM participant_lists WHERE campaign_id = :campaign AND number = :number)""",
}

README = """This is what Easel stores about you in one study.

person.json has everything, with the meaning of each column. The folder "tables" has the same rows as CSV.
"not_included" in person.json says what is left out, and why.
"""


@dataclass(frozen=True)
class ExportedTable:
    """Rows about a person in one table: its name, its columns, and the rows."""

    name: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


async def build_person_zip_and_log(
    connection: AsyncConnection, campaign: Campaign, person: Person, *, now: datetime
) -> bytes:
    """Return a ZIP with all that is stored about a person, and log that it was made. Pass a transaction."""
    key = {
        "campaign": campaign.id,
        "annotator": person.id,
        "number": int(person.name[1:]) if person.id is None else None,
        "name": person.name,
        "personal_platform": PERSONAL_PLATFORM.name,
        "arrived": person.arrived_at,
    }
    tables = [await load_rows_of_person_as_exported_table(connection, table, key) for table in tables_of_person(person)]
    shown = {
        name: await load_rows_as_dicts(connection, statement, key)
        for name, statement in {
            "items": SELECT_SHOWN_ITEMS,
            "outputs": SELECT_SHOWN_OUTPUTS,
            "consent_texts": SELECT_CONSENT_TEXTS,
            "downloads": SELECT_DOWNLOADS,
        }.items()
    }
    await log_change(connection, "people.exported", campaign, about=person.name)
    return await asyncio.to_thread(person_zip_bytes, person_json_document(campaign, person, tables, shown, now), tables)


def tables_of_person(person: Person) -> Sequence[PersonalTable]:
    """Return the tables with rows about a person, and which rows these are."""
    if person.id is not None:
        return PERSONAL_TABLES
    rows = ROWS_OF_UNOPENED_LINK if person.platform == PERSONAL_PLATFORM.name else ROWS_OF_LISTED_PERSON
    return [replace(table, rows=rows[table.name]) for table in PERSONAL_TABLES if table.name in rows]


async def load_rows_of_person_as_exported_table(
    connection: AsyncConnection, table: PersonalTable, key: Mapping[str, Any]
) -> ExportedTable:
    columns = table.exported_columns
    if not columns:
        return ExportedTable(table.name, columns, [])
    names = ", ".join(f'"{name}"' for name in columns)
    statement = text(f"SELECT {names} FROM {table.name} WHERE {table.rows}")
    parameters = {name: key[name] for name in statement.compile().params}
    rows = [tuple(row) for row in await connection.execute(statement, parameters)]
    return ExportedTable(table.name, columns, rows)


async def load_rows_as_dicts(connection: AsyncConnection, statement: Any, key: Mapping[str, Any]) -> list[Any]:
    parameters = {name: key[name] for name in statement.compile().params}
    return [dict(row) for row in (await connection.execute(statement, parameters)).mappings()]


def person_json_document(
    campaign: Campaign, person: Person, tables: Sequence[ExportedTable], shown: Mapping[str, Any], now: datetime
) -> dict[str, Any]:
    """Return the content of `person.json`."""
    platform = PLATFORMS.get(person.platform)
    return {
        "made_at": now,
        "study": {"name": campaign.name, "question": campaign.question},
        "person": {"name": person.name, "pseudonym": person.pseudonym, "arrived_at": person.arrived_at},
        "came_from": platform.title if platform else person.platform,
        "tables": {
            table.name: [dict(zip(table.columns, row, strict=True)) for row in table.rows]
            for table in tables
            if table.rows
        },
        "meaning": {
            table.name: {name: column.meaning for column in table.columns for name in column.names}
            for table in PERSONAL_TABLES
        },
        "shown_items": shown["items"],
        "shown_outputs": shown["outputs"],
        "consent_texts": shown["consent_texts"],
        "files_downloaded_by_researchers": shown["downloads"],
        "not_included": {
            f"{table.name}.{name}": column.withheld
            for table in PERSONAL_TABLES
            for column in table.columns
            for name in column.names
            if column.withheld
        },
    }


def person_zip_bytes(document: Mapping[str, Any], tables: Sequence[ExportedTable]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("README.txt", README)
        archive.writestr("person.json", json.dumps(plain_json_value(document), ensure_ascii=False, indent=2) + "\n")
        for table in tables:
            if table.rows:
                archive.writestr(f"tables/{table.name}.csv", csv_of_exported_table(table))
    return buffer.getvalue()


def csv_of_exported_table(table: ExportedTable) -> str:
    """Return a table as CSV; text that a spreadsheet program would take for a formula is guarded."""
    file = io.StringIO(newline="")
    writer = csv.writer(file)
    writer.writerow(table.columns)
    for row in table.rows:
        writer.writerow([csv_cell_of_value(value) for value in row])
    return file.getvalue()


def csv_cell_of_value(value: Any) -> Any:
    plain = plain_json_value(value)
    if isinstance(plain, dict | list):
        plain = json.dumps(plain, ensure_ascii=False)
    return guard_against_formula(plain) if isinstance(plain, str) else plain


def plain_json_value(value: Any) -> Any:
    """Return a value as JSON has it: times in ISO 8601, bytes as hexadecimal digits, and null for what has no value."""
    if isinstance(value, Mapping):
        return {name: plain_json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json_value(part) for part in value]
    if isinstance(value, datetime):
        return format_utc_time(value)
    if isinstance(value, bytes):
        return value.hex()
    return None if isinstance(value, float) and math.isnan(value) else value
