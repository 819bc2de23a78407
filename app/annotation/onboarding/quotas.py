"""Quotas: at most so many people who answer an entry question in one way.

A person takes a place with the answer. One who gives no answer to a HIT and leaves keeps the place for the lease time;
then the next person who needs it gets it, and the one who left is asked the questions again.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.onboarding.entry_questions import EntryQuestion
from app.database.session import Driver, execute_statement, fetch_first_column, fetch_value
from app.designs.campaign import Campaign
from app.errors import shorten_echo

QUOTA_LINE_PATTERN = re.compile(
    r"(?P<question>[A-Za-z][A-Za-z0-9_]{0,39})\s*=\s*(?P<answer>\S.*?)\s*:\s*(?P<limit>[0-9]{1,7})"
)
MAX_QUOTAS = 100

# One at a time in a campaign: the next one sees the places that the one before has taken.
LOCK_QUOTAS = text(
    "SELECT pg_advisory_xact_lock(hashtext('easel.quotas'), hashtext(CAST(CAST(:campaign AS bigint) AS text)))"
)

# SQL: visit v holds a place for this answer. Researchers free places when they exclude people.
HOLDS_PLACE = """v.campaign_id = :campaign AND v.step = 'questions' AND v.outcome = 'passed'
    AND v.said ->> CAST(:question AS text) = CAST(:answer AS text)
    AND NOT EXISTS (SELECT FROM annotators b WHERE b.campaign_id = v.campaign_id AND b.id = v.annotator_id
                    AND b.barred IN ('excluded', 'erased'))"""

# SQL: the person of visit v has answered nothing, holds no HIT, and did nothing during the lease time.
HAS_LEFT = """
    NOT EXISTS (SELECT FROM responses r WHERE r.campaign_id = v.campaign_id AND r.annotator_id = v.annotator_id)
    AND NOT EXISTS (SELECT FROM hits h WHERE h.campaign_id = v.campaign_id AND h.annotator_id = v.annotator_id
                    AND h.closed_at IS NULL AND h.expires_at > statement_timestamp())
    AND NOT EXISTS (
        SELECT FROM visits recent JOIN campaigns c ON c.id = recent.campaign_id
        WHERE recent.campaign_id = v.campaign_id AND recent.annotator_id = v.annotator_id
          AND recent.taken_at > CAST(:now AS timestamptz) - make_interval(mins => c.lease_minutes))"""

COUNT_PLACES_OF_OTHERS = text(f"SELECT count(*) FROM visits v WHERE {HOLDS_PLACE} AND v.annotator_id <> :annotator")

LIST_PEOPLE_WHO_LEFT = text(f"""
    SELECT v.annotator_id FROM visits v WHERE {HOLDS_PLACE} AND v.annotator_id <> :annotator AND {HAS_LEFT}
    ORDER BY v.taken_at, v.annotator_id
""")

# HITs are locked before their annotator, as everywhere. The second lock waits for a HIT or answer that is being stored.
LOCK_HITS_OF_PERSON = text("""
    SELECT id FROM hits WHERE campaign_id = :campaign AND annotator_id = :annotator ORDER BY id FOR NO KEY UPDATE
""")
LOCK_PERSON_WHO_LEFT = text("""
    SELECT id FROM annotators WHERE campaign_id = :campaign AND id = :annotator FOR UPDATE
""")

# A page that is still open then stores no answer: see `SELECT_IF_LATE_ANSWER_FITS` of `annotation.hits.submission`.
FREE_PLACE = text(f"""
    WITH freed AS (
        UPDATE visits v SET outcome = 'lapsed'
        WHERE v.campaign_id = :campaign AND v.annotator_id = :annotator AND v.step = 'questions'
          AND v.outcome = 'passed' AND {HAS_LEFT}
        RETURNING v.annotator_id
    )
    UPDATE annotators SET admitted = 0 WHERE campaign_id = :campaign AND id IN (SELECT annotator_id FROM freed)
    RETURNING id
""")

COUNT_PLACES = text("""
    SELECT given.key AS question, given.value AS answer, count(*) AS people
    FROM visits v JOIN annotators a ON a.campaign_id = v.campaign_id AND a.id = v.annotator_id
    CROSS JOIN LATERAL jsonb_each_text(v.said) AS given
    WHERE v.campaign_id = :campaign AND v.step = 'questions' AND v.outcome = 'passed'
      AND coalesce(a.barred, '') NOT IN ('excluded', 'erased')
    GROUP BY 1, 2
""")


class Quota(NamedTuple):
    """At most `limit` people may answer the question with this name in this way."""

    question: str
    answer: str
    limit: int


class QuotaPlaces(NamedTuple):
    """A quota, and how many people have a place."""

    question: str
    answer: str
    limit: int
    people: int


def parse_quota_lines(lines: Sequence[str], questions: Sequence[EntryQuestion]) -> list[Quota]:
    """Return the quotas that the lines define. Raises ValueError."""
    quotas = [parse_quota_line(line, questions) for line in lines]
    if len({quota[:2] for quota in quotas}) < len(quotas):
        raise ValueError("give each answer only one quota")
    return quotas


def parse_quota_line(line: str, questions: Sequence[EntryQuestion]) -> Quota:
    """Return the quota in a line such as `gender = female: 50`. Raises ValueError."""
    match = QUOTA_LINE_PATTERN.fullmatch(line.strip())
    if match is None:
        raise ValueError(f"“{shorten_echo(line)}” must be like: gender = female: 50")
    question = next((question for question in questions if question.name == match["question"]), None)
    if question is None or not question.choices:
        raise ValueError(f"“{match['question']}” is not a question with choices")
    if match["answer"] not in question.choices or question.screens_out(match["answer"]):
        raise ValueError(
            f"“{shorten_echo(match['answer'])}” is not a choice of “{question.name}” with which people can take part"
        )
    return Quota(question.name, match["answer"], int(match["limit"]))


def quotas_of_answers(quotas: Sequence[Quota], answers: Mapping[str, str]) -> list[Quota]:
    """Return the quotas that a person with these answers needs a place in."""
    return [quota for quota in quotas if answers.get(quota.question) == quota.answer]


async def has_place_in_all_quotas(
    connection: Driver, campaign_id: int, annotator_id: int, quotas: Sequence[Quota], *, now: datetime
) -> bool:
    """Return whether there is a place for the annotator in all of the quotas.

    Places of people who left are freed if they are needed. Until the caller's transaction ends, no one else takes a
    place in this campaign.
    """
    await execute_statement(connection, LOCK_QUOTAS, {"campaign": campaign_id})
    for quota in quotas:
        key = {
            "campaign": campaign_id,
            "question": quota.question,
            "answer": quota.answer,
            "annotator": annotator_id,
        }
        missing: int = await fetch_value(connection, COUNT_PLACES_OF_OTHERS, key) + 1 - quota.limit
        if missing > 0 and quota.limit > 0:
            missing -= await free_places_of_people_who_left(connection, key, missing, now=now)
        if missing > 0:
            return False
    return True


async def free_places_of_people_who_left(
    connection: Driver, key: Mapping[str, object], wanted: int, *, now: datetime
) -> int:
    """Free places in a quota, those of the people who left first, and return how many; at most `wanted`."""
    freed_count = 0
    for annotator_id in await fetch_first_column(connection, LIST_PEOPLE_WHO_LEFT, {**key, "now": now}):
        if freed_count == wanted:
            break
        person = {"campaign": key["campaign"], "annotator": annotator_id}
        await execute_statement(connection, LOCK_HITS_OF_PERSON, person)
        await execute_statement(connection, LOCK_PERSON_WHO_LEFT, person)
        freed_count += len(await fetch_first_column(connection, FREE_PLACE, {**person, "now": now}))
    return freed_count


async def count_places_in_quotas(connection: AsyncConnection, campaign: Campaign) -> list[QuotaPlaces]:
    """Return the quotas of a campaign, each with the number of people who have a place."""
    if not campaign.quotas:
        return []
    rows = await connection.execute(COUNT_PLACES, {"campaign": campaign.id})
    people = {(row.question, row.answer): row.people for row in rows}
    matches = [match for line in campaign.quotas if (match := QUOTA_LINE_PATTERN.fullmatch(line))]
    return [
        QuotaPlaces(*key, int(match["limit"]), people.get(key, 0))
        for match in matches
        for key in [(match["question"], match["answer"])]
    ]
