"""Find a person among the annotators of a campaign, by anything that they or their platform may name."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.hits.withdrawal_code import withdrawal_code_hash
from app.annotation.platforms.personal import PLATFORM as PERSONAL_PLATFORM
from app.database.audit_log import log_change
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, NotFound, shorten_echo
from app.privacy.invited_people import (
    LINK_NAME_PATTERN,
    find_invited_people,
    find_or_create_annotator_id_of_link_or_none,
)
from app.privacy.listed_people import LISTED_NAME_PATTERN, create_annotator_of_listed_person_or_none, find_listed_people
from app.quality.decisions import annotator_not_found_error, find_annotator_id_or_refuse

MAX_TERM_CHARACTERS = 500
MAX_PEOPLE_FOUND = 50

SELECT_PERSON = """
    SELECT a.id, n.name, a.pseudonym, a.platform, a.created_at, erased.receipt, erased.rule, (
        SELECT count(*) FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id
        AND r.replaces IS NULL) AS answers"""
JOIN_NAME_AND_ERASURE = """
    JOIN named_annotators n ON n.campaign_id = :campaign AND n.id = a.id
    LEFT JOIN LATERAL (
        SELECT receipt, rule FROM erasures e WHERE e.campaign_id = :campaign AND e.annotator_id = a.id
        ORDER BY e.id DESC LIMIT 1) AS erased ON true"""

# Each part finds by an index; a person's link counts by its name, whatever its case.
FIND_PEOPLE = text(f"""
    WITH matching AS (
        SELECT id FROM annotators WHERE campaign_id = :campaign AND worker_id = :term AND platform <> :personal_platform
        UNION SELECT id FROM annotators WHERE campaign_id = :campaign AND pseudonym = :term
        UNION SELECT id FROM named_annotators WHERE campaign_id = :campaign AND name = upper(:term)
        UNION SELECT annotator_id FROM assignments WHERE campaign_id = :campaign AND external_id = :term
        UNION SELECT annotator_id FROM withdrawal_codes WHERE campaign_id = :campaign AND code_hash = :code_hash
        UNION SELECT annotator_id FROM erasures WHERE campaign_id = :campaign AND receipt = upper(:term)
        UNION SELECT a.id FROM personal_links p JOIN annotators a ON a.campaign_id = p.campaign_id
            AND a.platform = :personal_platform AND a.worker_id = CAST(p.number AS text)
        WHERE p.campaign_id = :campaign AND lower(p.name) = lower(:term)
    ) {SELECT_PERSON}
    FROM matching JOIN annotators a ON a.campaign_id = :campaign AND a.id = matching.id {JOIN_NAME_AND_ERASURE}
    ORDER BY a.id LIMIT :limit
""")

LOAD_PERSON = text(f"""
    {SELECT_PERSON} FROM annotators a {JOIN_NAME_AND_ERASURE} WHERE a.campaign_id = :campaign AND a.id = :annotator
""")

LIST_SLUGS = text("SELECT slug FROM campaigns ORDER BY id")


@dataclass(frozen=True)
class Person:
    """A person who was found: how pages and exports call them, and whether they were erased.

    `receipt` and `rule` are those of the latest erasure, or None. A person who never came is no annotator and has no
    `id` and no pseudonym; their name is L3, for the third personal link, or P7 if only a list of those who may take
    part, or may not, or a group has them, and then they have no `platform`.
    """

    id: int | None
    name: str
    pseudonym: str
    platform: str
    arrived_at: datetime
    answers: int
    receipt: str | None
    rule: str | None

    @classmethod
    def from_person_row(cls, row: Row[Any]) -> "Person":
        return cls(row.id, row.name, row.pseudonym, row.platform, row.created_at, row.answers, row.receipt, row.rule)

    @classmethod
    def from_link_row(cls, row: Row[Any]) -> "Person":
        return cls(None, row.name, "", PERSONAL_PLATFORM.name, row.added_at, 0, None, None)

    @classmethod
    def from_listed_row(cls, row: Row[Any]) -> "Person":
        return cls(None, row.name, "", "", row.added_at, 0, None, None)


async def find_people_and_log_search(connection: AsyncConnection, campaign: Campaign, term: str) -> Sequence[Person]:
    """Return the people whom a term names, and log the search without the term.

    Args:
        connection: A connection in a transaction.
        campaign: The campaign.
        term: A platform's id of a person or a submission, the name or mail address of a personal link, an id on a list,
            a pseudonym, a name such as A7, L3 or P7, a withdrawal code, or the number of a receipt.

    Raises:
        Invalid: `person_missing`, `person_too_long`.

    """
    people = await list_people_named_by_term(connection, campaign, search_term_or_refuse(term))
    await log_change(connection, "people.searched", campaign, new_values={"found": len(people)})
    return people


async def load_only_person_or_refuse(connection: AsyncConnection, campaign: Campaign, term: str) -> Person:
    """Return the one annotator whom a term names, as `find_people_and_log_search` does, without a line in the log.

    Raises:
        Invalid: As `find_people_and_log_search`.
        NotFound: `person_not_found`.
        Conflict: `person_ambiguous`.

    """
    people = await list_people_named_by_term(connection, campaign, search_term_or_refuse(term))
    if not people:
        raise NotFound(
            f"“{campaign.name}” has no annotator with this id, name or code. Nothing was changed.",
            code="person_not_found",
        )
    if len(people) > 1:
        names = [person.name for person in people]
        raise Conflict(
            f"This names several annotators: {', '.join(names)}. Choose one of them. Nothing was changed.",
            code="person_ambiguous",
            annotators=names,
        )
    return people[0]


async def load_person_by_name_or_refuse(
    connection: AsyncConnection, campaign: Campaign, name_or_pseudonym: str
) -> Person:
    """Return a person by their name on pages, such as A7, their pseudonym in exports, L3 or P7; ids do not count.

    Raises:
        NotFound: `annotator_not_found`.

    """
    number = number_in_name_or_none(name_or_pseudonym, LINK_NAME_PATTERN)
    for row in await find_invited_people(connection, campaign, number=number, limit=1):
        return Person.from_link_row(row)
    number = number_in_name_or_none(name_or_pseudonym, LISTED_NAME_PATTERN)
    for row in await find_listed_people(connection, campaign, number=number, limit=1):
        return Person.from_listed_row(row)
    annotator_id = await find_annotator_id_or_refuse(connection, campaign, name_or_pseudonym)
    parameters = {"campaign": campaign.id, "annotator": annotator_id}
    return Person.from_person_row((await connection.execute(LOAD_PERSON, parameters)).one())


async def find_or_create_annotator_id_or_refuse(
    connection: AsyncConnection, campaign: Campaign, name: str, *, now: datetime
) -> int:
    """Return the id of an annotator by A7, by a pseudonym, or by L3 or P7, who need not have come.

    Raises:
        NotFound: `annotator_not_found`.

    """
    annotator_id: int | None
    if number := number_in_name_or_none(name, LINK_NAME_PATTERN):
        annotator_id = await find_or_create_annotator_id_of_link_or_none(connection, campaign, number, now=now)
    elif number := number_in_name_or_none(name, LISTED_NAME_PATTERN):
        annotator_id = await create_annotator_of_listed_person_or_none(connection, campaign, number, now=now)
    else:
        annotator_id = await find_annotator_id_or_refuse(connection, campaign, name)
    if annotator_id is None:
        raise annotator_not_found_error(campaign, name)
    return annotator_id


def number_in_name_or_none(name: str, pattern: re.Pattern[str]) -> int | None:
    """Return 3 for L3, if the pattern is that of such names; None for another name."""
    return int(name[1:]) if pattern.fullmatch(name) else None


async def list_people_named_by_term(connection: AsyncConnection, campaign: Campaign, term: str) -> Sequence[Person]:
    parameters = {
        "campaign": campaign.id,
        "term": term,
        "code_hash": withdrawal_code_hash(term),
        "personal_platform": PERSONAL_PLATFORM.name,
        "limit": MAX_PEOPLE_FOUND,
    }
    rows = await connection.execute(FIND_PEOPLE, parameters)
    people = [Person.from_person_row(row) for row in rows]
    number = number_in_name_or_none(term.upper(), LINK_NAME_PATTERN)
    left = MAX_PEOPLE_FOUND - len(people)
    invited = await find_invited_people(connection, campaign, term=term, number=number, limit=left)
    people += map(Person.from_link_row, invited)
    number = number_in_name_or_none(term.upper(), LISTED_NAME_PATTERN)
    left = MAX_PEOPLE_FOUND - len(people)
    listed = await find_listed_people(connection, campaign, term=term, number=number, limit=left)
    return [*people, *map(Person.from_listed_row, listed)]


async def load_slugs_of_campaigns(connection: AsyncConnection) -> list[str]:
    """Return the slugs of all campaigns, the oldest first."""
    return list(await connection.scalars(LIST_SLUGS))


def search_term_or_refuse(term: str) -> str:
    """Return a search term without surrounding blanks. Raises `Invalid`: `person_missing`, `person_too_long`."""
    stripped = term.replace("\0", "").strip()
    if not stripped:
        raise Invalid("Enter an id, a name or a code of the person.", code="person_missing")
    if len(stripped) > MAX_TERM_CHARACTERS:
        raise Invalid(
            f"“{shorten_echo(stripped)}” is too long: an id or name has at most {MAX_TERM_CHARACTERS} characters.",
            code="person_too_long",
        )
    return stripped
