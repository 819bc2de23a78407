"""Personal links of a campaign: the list of people, and which links were used."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.onboarding.people_tables import reword_refusals_for_people
from app.annotation.platforms.personal import PLATFORM
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.same_person import count_invited_people_who_took_part_in_none
from app.database.audit_log import log_change
from app.database.session import Driver, fetch_first_value_or_none
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, NotFound, TooLarge, pluralize
from app.uploads import UNICODE_OPTIONS, ReadOptions, format_cell, read_table

MAX_PERSONAL_LINKS = 10_000
MAX_PERSON_NAME_CHARACTERS = 200
USUAL_NAME_COLUMNS = ("mail", "email", "e-mail", "name", "person", "id")

SELECT_PERSON_NUMBER = text("SELECT number FROM personal_links WHERE campaign_id = :campaign AND link = :link")

SELECT_PERSON_NAMES = text("SELECT name FROM personal_links WHERE campaign_id = :campaign")

INSERT_PERSONAL_LINKS = text("""
    INSERT INTO personal_links (campaign_id, number, name, link, added_at)
    SELECT :campaign, coalesce((SELECT max(number) FROM personal_links WHERE campaign_id = :campaign), 0) + place,
           name, link, :now
    FROM unnest(CAST(:names AS text[]), CAST(:links AS text[])) WITH ORDINALITY AS added (name, link, place)
""")

SELECT_PERSONAL_LINKS = text("""
    SELECT p.number, p.name, p.link, a.created_at AS opened_at,
           (SELECT count(*) FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id
            AND r.replaces IS NULL) AS answered
    FROM personal_links p
    LEFT JOIN annotators a ON a.campaign_id = p.campaign_id AND a.platform = :platform
         AND a.worker_id = CAST(p.number AS text)
    WHERE p.campaign_id = :campaign ORDER BY p.number LIMIT :limit OFFSET :offset
""")

COUNT_PERSONAL_LINKS = text("""
    SELECT count(*) AS people, count(a.id) AS used FROM personal_links p
    LEFT JOIN annotators a ON a.campaign_id = p.campaign_id AND a.platform = :platform
         AND a.worker_id = CAST(p.number AS text)
    WHERE p.campaign_id = :campaign
""")


async def load_arrival_with_person_number_or_refuse(connection: Driver, campaign_id: int, arrival: Arrival) -> Arrival:
    """Return the arrival with the person's number instead of the link, so that annotators' rows hold no links.

    Raises:
        NotFound: `personal_link_unknown`.

    """
    key = {"campaign": campaign_id, "link": arrival.worker_id}
    number: int | None = await fetch_first_value_or_none(connection, SELECT_PERSON_NUMBER, key)
    if number is None:
        raise NotFound(
            "This link is not on the list of this task. Please use the whole link that you were sent, or ask who sent "
            "it.",
            code="personal_link_unknown",
        )
    return replace(arrival, worker_id=str(number))


@reword_refusals_for_people()
def read_person_names(
    file: BinaryIO, file_name: str, column: str | None, *, max_mb: int, read_options: ReadOptions = UNICODE_OPTIONS
) -> list[str]:
    """Return the names of people in a table.

    Args:
        file: The table.
        file_name: Its name, whose ending tells the format.
        column: Column with the names; None for the likeliest one.
        max_mb: Largest accepted size.
        read_options: Encoding and quotation marks.

    Raises:
        Invalid: `column_unknown`, and the refusals of `read_table`.

    """
    upload = read_table(file, file_name, max_mb=max_mb, read_options=read_options)
    columns_by_name = {name.casefold(): name for name in reversed(upload.columns)}
    name_column = column or next(
        (columns_by_name[name] for name in USUAL_NAME_COLUMNS if name in columns_by_name), upload.columns[0]
    )
    if name_column not in upload.columns:
        raise Invalid(
            f"There is no column “{name_column}”. No one was added.", code="column_unknown", column=name_column
        )
    return [format_cell(record.values.get(name_column)).strip() for record in upload.rows]


async def create_missing_links_and_count_them(
    connection: AsyncConnection, campaign: Campaign, names: Iterable[str], *, now: datetime
) -> int:
    """Create a link for each person who has none yet, and return how many were created.

    Raises:
        Invalid: `names_missing`, `name_too_long`.
        TooLarge: `too_many_people`.
        Conflict: `is_a_rehearsal`.

    """
    if campaign.rehearsal_of is not None:
        raise Conflict(f"“{campaign.name}” is a rehearsal. You cannot invite people to it.", code="is_a_rehearsal")
    entered_names = [name for name in dict.fromkeys(names) if name]
    if not entered_names:
        raise Invalid("Enter a name or mail address. No one was added.", code="names_missing")
    await connection.execute(
        text("SELECT 1 FROM campaigns WHERE id = :campaign FOR NO KEY UPDATE"), {"campaign": campaign.id}
    )
    existing_names = set(await connection.scalars(SELECT_PERSON_NAMES, {"campaign": campaign.id}))
    new_names = [name for name in entered_names if name not in existing_names]
    if any(len(name) > MAX_PERSON_NAME_CHARACTERS or not name.isprintable() for name in new_names):
        raise Invalid(
            f"Use at most {MAX_PERSON_NAME_CHARACTERS} characters in a name, and only visible ones. No one was added.",
            code="name_too_long",
        )
    if len(existing_names) + len(new_names) > MAX_PERSONAL_LINKS:
        raise TooLarge(
            f"A campaign has at most {pluralize(MAX_PERSONAL_LINKS, 'personal link')}. No one was added.",
            code="too_many_people",
        )
    links = [secrets.token_urlsafe(16) for _ in new_names]
    await connection.execute(
        INSERT_PERSONAL_LINKS, {"campaign": campaign.id, "names": new_names, "links": links, "now": now}
    )
    if new_names:
        await log_change(connection, "people.added", campaign, new_values={"people": len(new_names)})
    return len(new_names)


async def list_personal_links(
    connection: AsyncConnection, campaign_id: int, *, limit: int = MAX_PERSONAL_LINKS, offset: int = 0
) -> Sequence[Row[Any]]:
    """Return people in the order of the list: `name`, `link` (the key in the address), `opened_at` and `answered`."""
    key = {"campaign": campaign_id, "platform": PLATFORM.name, "limit": limit, "offset": offset}
    return (await connection.execute(SELECT_PERSONAL_LINKS, key)).all()


async def count_created_and_used_personal_links(connection: AsyncConnection, campaign_id: int) -> tuple[int, int]:
    """Return how many people have a link, and how many have used it."""
    row = (await connection.execute(COUNT_PERSONAL_LINKS, {"campaign": campaign_id, "platform": PLATFORM.name})).one()
    return row.people, row.used


def personal_link_url(base_url: str, link_key: str, personal_key: str) -> str:
    """Return the address for one person. `base_url` is the public address of this server."""
    return f"{base_url}{PLATFORM.entry_path(link_key)}?person={personal_key}"


async def sentence_on_invited_people_or_empty(
    connection: AsyncConnection, campaign_id: int, slugs: Sequence[str]
) -> str:
    """Return a warning about people with a personal link whom `only_campaigns` keeps out; empty if there are none."""
    if not slugs:
        return ""
    unknown_count, count = await count_invited_people_who_took_part_in_none(connection, campaign_id, slugs)
    if not unknown_count:
        return ""
    return (
        f"{unknown_count:,} of {count:,} {'person' if count == 1 else 'people'} with a personal link cannot take part: "
        f"they answered no task in {' or '.join(slugs)}."
    )
