"""The list of people who have a link of their own, and which of the links were used."""

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.crowd.personal import PLATFORM
from app.crowd.platform import Arrival
from app.database.audit_log import note
from app.database.session import Driver, Record, fetch_one
from app.errors import Conflict, Invalid, NotFound, TooLarge, plural
from app.upload import UNICODE, ReadAs, as_text, read

MOST = 10_000
LONGEST_NAME = 200
USUAL_COLUMNS = ("mail", "email", "e-mail", "name", "person", "id")

FIND = text("SELECT number FROM personal_links WHERE campaign_id = :campaign AND link = :link")

NAMES = text("SELECT name FROM personal_links WHERE campaign_id = :campaign")

ADD = text("""
    INSERT INTO personal_links (campaign_id, number, name, link, added_at)
    SELECT :campaign, coalesce((SELECT max(number) FROM personal_links WHERE campaign_id = :campaign), 0) + place,
           name, link, :now
    FROM unnest(CAST(:names AS text[]), CAST(:links AS text[])) WITH ORDINALITY AS added (name, link, place)
""")

LISTED = text("""
    SELECT p.number, p.name, p.link, a.created_at AS opened_at,
           (SELECT count(*) FROM responses r WHERE r.campaign_id = p.campaign_id AND r.annotator_id = a.id
            AND r.replaces IS NULL) AS answered
    FROM personal_links p
    LEFT JOIN annotators a ON a.campaign_id = p.campaign_id AND a.platform = :platform
         AND a.worker_id = CAST(p.number AS text)
    WHERE p.campaign_id = :campaign ORDER BY p.number LIMIT :limit OFFSET :offset
""")

COUNT = text("""
    SELECT count(*) AS people, count(a.id) AS used FROM personal_links p
    LEFT JOIN annotators a ON a.campaign_id = p.campaign_id AND a.platform = :platform
         AND a.worker_id = CAST(p.number AS text)
    WHERE p.campaign_id = :campaign
""")


class NumberOfPerson(Record):
    """Where somebody stands on the list."""

    number: int


async def known(connection: Driver, campaign_id: int, arrival: Arrival) -> Arrival:
    """Who came by a link of the list, by their number there; so nobody learns a link from what is kept of annotators.

    Raises `NotFound` (`personal_link_unknown`).
    """
    key = {"campaign": campaign_id, "link": arrival.worker_id}
    row = await fetch_one(connection, FIND, key, NumberOfPerson)
    if row is None:
        raise NotFound(
            "This link is not on the list of this task. Please use the whole link that you were sent, or ask who sent "
            "it.",
            code="personal_link_unknown",
        )
    return replace(arrival, worker_id=str(row.number))


def names_in(file: BinaryIO, name: str, column: str | None, *, max_mb: int, read_as: ReadAs = UNICODE) -> list[str]:
    """The people in a table: what stands in a column, or in the one that is likeliest to name them.

    Raises what `upload.read` raises, and `Invalid` (`column_unknown`).
    """
    upload = read(file, name, max_mb=max_mb, read_as=read_as)
    by_name = {known.casefold(): known for known in reversed(upload.columns)}
    chosen = column or next((by_name[usual] for usual in USUAL_COLUMNS if usual in by_name), upload.columns[0])
    if chosen not in upload.columns:
        raise Invalid(f"There is no column “{chosen}”. Nothing was imported.", code="column_unknown", column=chosen)
    return [as_text(record.values.get(chosen)).strip() for record in upload.records]


async def add(connection: AsyncConnection, campaign: Row[Any], names: Iterable[str], *, now: datetime) -> int:
    """A link for each person who has none yet; how many there are. Raises `Invalid` (`name_too_long`), `TooLarge`
    (`too_many_people`) and `Conflict` (`is_a_rehearsal`).
    """
    if campaign.rehearsal_of is not None:
        raise Conflict(f"“{campaign.name}” is a rehearsal, which nobody can come to.", code="is_a_rehearsal")
    await connection.execute(
        text("SELECT 1 FROM campaigns WHERE id = :campaign FOR NO KEY UPDATE"), {"campaign": campaign.id}
    )
    there = set(await connection.scalars(NAMES, {"campaign": campaign.id}))
    new = [name for name in dict.fromkeys(names) if name and name not in there]
    if any(len(name) > LONGEST_NAME or not name.isprintable() for name in new):
        raise Invalid(
            f"A name has {LONGEST_NAME} characters at most, all of which can be seen. Nobody was added.",
            code="name_too_long",
        )
    if len(there) + len(new) > MOST:
        raise TooLarge(
            f"A campaign has at most {plural(MOST, 'personal link')}. Nobody was added.", code="too_many_people"
        )
    links = [secrets.token_urlsafe(16) for _ in new]
    await connection.execute(ADD, {"campaign": campaign.id, "names": new, "links": links, "now": now})
    if new:
        await note(connection, "people.added", campaign, after={"people": len(new)})
    return len(new)


async def listed(
    connection: AsyncConnection, campaign_id: int, *, limit: int = MOST, offset: int = 0
) -> Sequence[Row[Any]]:
    """Some of the people in their order: `name`, `link` (what stands in it), when they first opened it, and how many
    HITs they answered.
    """
    key = {"campaign": campaign_id, "platform": PLATFORM.name, "limit": limit, "offset": offset}
    return (await connection.execute(LISTED, key)).all()


async def counted(connection: AsyncConnection, campaign_id: int) -> tuple[int, int]:
    """How many people have a link, and how many have used it."""
    row = (await connection.execute(COUNT, {"campaign": campaign_id, "platform": PLATFORM.name})).one()
    return row.people, row.used


def link_of(base: str, link_key: str, link: str) -> str:
    """The address of one person; `base` is where people reach this server."""
    return f"{base}{PLATFORM.address(link_key)}?person={link}"
