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
from app.database.session import Driver, execute_statement, fetch_first_column, fetch_first_value_or_none
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

# More people than places are locked, in case some of them come back before they are locked.
SPARE_PEOPLE = 20

LIST_PEOPLE_WHO_LEFT = text(f"""
    SELECT v.annotator_id FROM visits v WHERE {HOLDS_PLACE} AND v.annotator_id <> :annotator AND {HAS_LEFT}
    ORDER BY v.taken_at, v.annotator_id LIMIT CAST(:wanted AS int) + {SPARE_PEOPLE}
""")

# HITs are locked before annotators, and both by id, as everywhere. The second lock waits for a HIT or answer that is
# being stored.
LOCK_HITS_OF_PEOPLE = text("""
    SELECT id FROM hits WHERE campaign_id = :campaign AND annotator_id = ANY(CAST(:people AS bigint[]))
    ORDER BY id FOR NO KEY UPDATE
""")
LOCK_PEOPLE_WHO_LEFT = text("""
    SELECT id FROM annotators WHERE campaign_id = :campaign AND id = ANY(CAST(:people AS bigint[]))
    ORDER BY id FOR UPDATE
""")

LIST_PEOPLE_WHO_STAYED_AWAY = text(f"""
    SELECT v.annotator_id FROM visits v
    WHERE v.campaign_id = :campaign AND v.annotator_id = ANY(CAST(:people AS bigint[])) AND v.step = 'questions'
      AND v.outcome = 'passed' AND {HAS_LEFT}
""")

# A page that is still open then stores no answer: see `SELECT_IF_LATE_ANSWER_FITS` of `annotation.hits.submission`. A
# request that read the passed step before admits nobody: see `ADMIT_ANNOTATOR` of `visit_progress`.
FREE_PLACES = text("""
    WITH freed AS (
        UPDATE visits v SET outcome = 'lapsed'
        WHERE v.campaign_id = :campaign AND v.annotator_id = ANY(CAST(:people AS bigint[])) AND v.step = 'questions'
          AND v.outcome = 'passed'
    )
    UPDATE annotators SET admitted = least(admitted, 0) - 1
    WHERE campaign_id = :campaign AND id = ANY(CAST(:people AS bigint[]))
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


class PlaceShortage(NamedTuple):
    """Number of places that are missing in a quota, and people who left, the first one first."""

    missing: int
    people: Sequence[int]


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
            f"“{shorten_echo(match['answer'])}” is not a choice of “{question.name}” that lets people take part"
        )
    return Quota(question.name, match["answer"], int(match["limit"]))


def quotas_of_answers(quotas: Sequence[Quota], answers: Mapping[str, str]) -> list[Quota]:
    """Return the quotas that a person with these answers needs a place in."""
    return [quota for quota in quotas if answers.get(quota.question) == quota.answer]


async def lock_quotas_and_try_to_reserve_places(
    connection: Driver, campaign_id: int, annotator_id: int, quotas: Sequence[Quota], *, now: datetime
) -> bool:
    """Return whether there is a place for the annotator in all of the quotas.

    Places of people who left are freed if that gives the annotator a place in every quota. Until the caller's
    transaction ends, no one else takes a place in this campaign.
    """
    await execute_statement(connection, LOCK_QUOTAS, {"campaign": campaign_id})
    shortages: list[PlaceShortage] = []
    for quota in quotas:
        key = {
            "campaign": campaign_id,
            "question": quota.question,
            "answer": quota.answer,
            "annotator": annotator_id,
        }
        missing: int = await fetch_first_value_or_none(connection, COUNT_PLACES_OF_OTHERS, key) + 1 - quota.limit
        if missing > 0:
            wanted = {"wanted": missing, "now": now}
            people = await fetch_first_column(connection, LIST_PEOPLE_WHO_LEFT, key | wanted) if quota.limit else []
            if len(people) < missing:
                return False
            shortages.append(PlaceShortage(missing, people))
    return not shortages or await try_to_free_places_in_all_quotas(connection, campaign_id, shortages, now=now)


async def try_to_free_places_in_all_quotas(
    connection: Driver, campaign_id: int, shortages: Sequence[PlaceShortage], *, now: datetime
) -> bool:
    """Free the missing places, those of the people who left first, and return True; or free none and return False."""
    people = {person for shortage in shortages for person in shortage.people}
    key = {"campaign": campaign_id, "people": sorted(people)}
    await execute_statement(connection, LOCK_HITS_OF_PEOPLE, key)
    await execute_statement(connection, LOCK_PEOPLE_WHO_LEFT, key)
    away = {*await fetch_first_column(connection, LIST_PEOPLE_WHO_STAYED_AWAY, key | {"now": now})}
    leaving: set[int] = set()
    for shortage in shortages:
        away_in_quota = [person for person in shortage.people if person in away]
        if len(away_in_quota) < shortage.missing:
            return False
        missing = shortage.missing - len(leaving.intersection(away_in_quota))
        leaving.update([person for person in away_in_quota if person not in leaving][: max(0, missing)])
    await execute_statement(connection, FREE_PLACES, key | {"people": sorted(leaving)})
    return True


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
