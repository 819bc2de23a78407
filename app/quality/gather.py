"""What rules know of a campaign's annotators, read from its record."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.bulk import Numbers, numbers
from app.database.session import driver_of
from app.designs.criteria import number_of
from app.designs.design import Design
from app.inference.ground.arrays import Array, Integers, quotient
from app.inference.online.law import AnnotatorDescribed
from app.inference.ratings.annotator_evidence import Judged
from app.quality.checks import CheckKind, CheckMet, answered
from app.quality.conduct import Conduct, Met
from app.record import states, stream
from app.record.law import law_of
from app.record.states import Revision

FEWEST_ANSWERS = 5  # of different people mostly, so that a check can be called wrong
MOST = 3_000_000  # judgments that are read; of a longer record the last ones

# When the HIT of an answer was answered first.
FIRST_AT = """
    CASE WHEN r.replaces IS NULL THEN r.received_at ELSE (
        SELECT f.received_at FROM responses f
        WHERE f.campaign_id = r.campaign_id AND f.hit_id = r.hit_id AND f.replaces IS NULL) END"""

# Of answers that came by leases, since nobody knows how long others took.
SECONDS = f"""
    SELECT r.seq, r.annotator_id, extract(epoch FROM {FIRST_AT} - h.issued_at)::float8 AS seconds
    FROM (SELECT * FROM responses
          WHERE campaign_id = $1 AND {stream.counting("$1", stream.DECIDED.format(campaign="$1"))}) AS r
    JOIN hits h ON h.campaign_id = r.campaign_id AND h.id = r.hit_id WHERE h.leader IS NOT NULL
"""  # noqa: S608  (made of constants)

SINCE = text("SELECT DISTINCT annotator_id FROM responses WHERE campaign_id = :campaign AND seq >= :first")

FROM = text("""
    SELECT seq FROM responses WHERE campaign_id = :campaign ORDER BY seq DESC OFFSET :most LIMIT 1
""")

NO_SECONDS: Mapping[str, Numbers] = {name: np.zeros(0) for name in ("seq", "annotator", "seconds")}


@dataclass(frozen=True, slots=True)
class RecordRead:
    """The judgments of a campaign by one criterion that count, (J,) each, what its law has learned of annotators by it;
    with the first criterion the seconds of its answers, (H,) each, and the checks that annotators answered.
    """

    judgments: Mapping[str, Numbers]
    seconds: Mapping[str, Numbers]
    at_random: Mapping[int, float]
    checks: Sequence[CheckMet] = ()


async def annotators_since(connection: AsyncConnection, campaign_id: int, first: int) -> set[int]:
    """Who has answered, from the response of a number on."""
    found = await connection.scalars(SINCE, {"campaign": campaign_id, "first": first})
    return set(found)


async def read(connection: AsyncConnection, campaign: Any) -> RecordRead:
    """All that rules look at by the criterion by which the campaign is read, by one snapshot of the record or nearly
    so.
    """
    most, criterion = MOST // max(1, campaign.items_per_hit), number_of(campaign)
    before = (await connection.execute(FROM, {"campaign": campaign.id, "most": most})).scalar()
    judgments = await stream.judgments(connection, campaign.id, after=before or 0, limit=2 * most, criterion=criterion)
    annotators = np.unique(judgments["annotator"]).tolist()
    by_law = await described(connection, campaign, annotators)
    at_random = {number: one.at_random for number, one in by_law.items()}
    if criterion:
        return RecordRead(judgments, NO_SECONDS, at_random)
    arguments = (campaign.id,)
    seconds = await numbers(connection, SECONDS, arguments, seq="i8", annotator="i8", seconds="f8")
    return RecordRead(judgments, seconds, at_random, await answered(connection, campaign))


async def described(
    connection: AsyncConnection, campaign: Any, annotators: Sequence[int]
) -> dict[int, AnnotatorDescribed]:
    """What the campaign's law has learned of annotators, by their rows' ids; of none by most laws."""
    law = law_of(campaign)
    if not law.layout:
        return {}
    driver, of = await driver_of(connection), Revision.present(campaign)
    common = await states.of_campaign(driver, of, layout=law.layout)
    return await asyncio.to_thread(law.described, await states.annotators(driver, of, annotators), common or [])


def conducts(design: Design, record: RecordRead) -> dict[int, Conduct]:
    """What is known of each annotator, by their row's id."""
    numbers_of, who = np.unique(record.judgments["annotator"], return_inverse=True)
    order = np.argsort(who, kind="stable")
    ends = np.searchsorted(who[order], np.arange(len(numbers_of) + 1))
    columns = compared(design, record.judgments, who, len(numbers_of))
    sorted_columns = {name: column[order] for name, column in columns.items()}
    seconds, checks = seconds_of(record), trusted(record.checks)
    found = {}
    for place, number in enumerate(numbers_of.tolist()):
        own = slice(ends[place], ends[place + 1])
        mine = {name: column[own] for name, column in sorted_columns.items()}
        mine["hit"] = np.unique(mine["hit"], return_inverse=True)[1]
        found[number] = Conduct(
            yields=design.yields,
            classes=len(design.classes),
            ties=design.equal == "tie",
            seconds=seconds.get(number, np.zeros(0)),
            at_random=record.at_random.get(number, nan),
            gold=met_by(number, checks, "gold"),
            attention=met_by(number, checks, "attention"),
            **mine,
        )
    return found


def trusted(checks: Sequence[CheckMet]) -> list[CheckMet]:
    """Those that tell something: not the ones that most people fail, which are probably wrong themselves."""
    wrong = probably_wrong(checks)
    return [one for one in checks if wrong.isdisjoint(one.numbers)]


def probably_wrong(checks: Sequence[CheckMet]) -> set[int]:
    """The checks, by number, that more than half of at least `FEWEST_ANSWERS` answers failed."""
    failed: Counter[int] = Counter()
    shown: Counter[int] = Counter()
    for one in checks:
        shown.update(one.numbers)
        failed.update(() if one.met else one.numbers)
    return {number for number in shown if shown[number] >= FEWEST_ANSWERS and 2 * failed[number] > shown[number]}


def met_by(annotator: int, checks: Sequence[CheckMet], kind: CheckKind) -> Met:
    """Whether an annotator met each check of a kind, in the order of their answers."""
    return np.array([one.met for one in checks if one.annotator == annotator and one.kind == kind], np.bool_)


def seconds_of(record: RecordRead) -> dict[int, Array]:
    """By annotator, of all their answers."""
    numbers_of, who = np.unique(record.seconds["annotator"], return_inverse=True)
    order = np.lexsort((record.seconds["seq"], who))
    parts = np.split(record.seconds["seconds"][order], np.searchsorted(who[order], np.arange(1, len(numbers_of))))
    return dict(zip(numbers_of.tolist(), parts, strict=False))


def compared(design: Design, judgments: Mapping[str, Numbers], who: Integers, people: int) -> dict[str, Any]:
    """Of all judgments the columns that `Conduct` has, (J,) each."""
    items, values = judgments["item"].astype(np.intp), judgments["value"]
    hit = np.unique(judgments["seq"], return_inverse=True)[1]
    share = values if design.yields == "classes" else design.points(values, hit) / 100.0
    judged = Judged.of(items, who, share, int(items.max(initial=-1)) + 1, people)
    company = np.rint(judged.of_others(np.ones(len(share)))).astype(np.intp)
    others = (
        likeliest(judged, len(design.classes))
        if design.yields == "classes"
        else quotient(judged.of_others(share), company.astype(np.float64))
    )
    return {"hit": hit, "item": items, "share": share, "others": others, "company": company}


def likeliest(judged: Judged, classes: int) -> Array:
    """Of each judgment the class that most others chose for its item, (J,); of several the first."""
    counts = np.column_stack([judged.of_others((judged.scores == number) * 1.0) for number in range(classes)])
    return np.asarray(counts.argmax(axis=1), np.float64)
