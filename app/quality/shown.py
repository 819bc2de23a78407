"""What rules found and how checks were answered, as pages and programs show it."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.design import Design
from app.designs.registry import design_of
from app.quality.checks import ANSWERS, answered, met_in
from app.quality.expected import ExpectedAnswer, all_that_do, span
from app.quality.gather import probably_wrong
from app.quality.registry import RULES

MOST_SHOWN = 200

FINDINGS = text("""
    SELECT f.id, n.name, n.pseudonym, f.rule, f.action, f.seen, f.said, f.found_at, a.barred
    FROM findings f JOIN named_annotators n ON n.campaign_id = f.campaign_id AND n.id = f.annotator_id
    JOIN annotators a ON a.campaign_id = f.campaign_id AND a.id = f.annotator_id
    WHERE f.campaign_id = :campaign ORDER BY f.id DESC LIMIT :limit
""")

COUNT = text("SELECT count(DISTINCT annotator_id) FROM findings WHERE campaign_id = :campaign")

CHECKS = text("""
    SELECT k.number, k.external_id, k.kind, k.shown, k.expected,
           (SELECT count(*) FROM check_reports r WHERE r.campaign_id = k.campaign_id AND r.check_number = k.number)
           AS not_loaded
    FROM check_items k WHERE k.campaign_id = :campaign ORDER BY k.number
""")


@dataclass(frozen=True)
class CheckLine:
    """A check as a researcher sees it: what is expected, in words; how often it was answered, and failed; whether so
    many failed it that it is probably wrong itself; for how many annotators its file did not load.
    """

    external_id: str
    kind: str
    shown: str
    expected: str
    answers: int
    failed: int
    probably_wrong: bool
    not_loaded: int


async def findings(connection: AsyncConnection, campaign_id: int, limit: int = MOST_SHOWN) -> Sequence[Row[Any]]:
    """The newest, newest first. barred: where their annotator stands now."""
    return (await connection.execute(FINDINGS, {"campaign": campaign_id, "limit": limit})).all()


async def people_found(connection: AsyncConnection, campaign_id: int) -> int:
    """How many annotators some rule has found."""
    return int((await connection.execute(COUNT, {"campaign": campaign_id})).scalar_one())


def title_of(rule: str) -> str:
    """What a rule is called."""
    return RULES[rule].title if rule in RULES else rule


async def checks(connection: AsyncConnection, campaign: Row[Any]) -> list[CheckLine]:
    """All checks of a campaign."""
    met = await answered(connection, campaign)
    shown = Counter(number for one in met for number in one.numbers)
    failed = Counter(number for one in met if not one.met for number in one.numbers)
    wrong, design = probably_wrong(met), design_of(campaign)
    return [
        CheckLine(
            row.external_id,
            row.kind,
            row.shown,
            in_words(design, ExpectedAnswer.model_validate(row.expected)),
            shown[row.number],
            failed[row.number],
            row.number in wrong,
            row.not_loaded,
        )
        for row in await connection.execute(CHECKS, {"campaign": campaign.id})
    ]


class CheckSaid(NamedTuple):
    """What somebody said of a check: the researcher's id, its kind, what is expected and what they said, in words, and
    whether that is as expected.
    """

    name: str
    kind: str
    expected: str
    said: str
    met: bool


async def checks_said(connection: AsyncConnection, campaign: Row[Any], annotator: int) -> list[CheckSaid]:
    """All checks that an annotator, by their row's id, answered, in the order of their answers."""
    if not campaign.has_checks:
        return []
    design = design_of(campaign)
    rows = (await connection.execute(ANSWERS, {"campaign": campaign.id, "those": [annotator]})).all()
    return [said for _, hit in groupby(rows, key=lambda row: row.hit_id) for said in said_in(design, list(hit))]


def said_in(design: Design, rows: Sequence[Row[Any]]) -> list[CheckSaid]:
    """Of the checks of one HIT; of an order each is as expected if all are."""
    missed = {number for one in met_in(design, rows) if not one.met for number in one.numbers}
    values = [row.value for row in rows]
    return [
        CheckSaid(
            row.external_id,
            row.kind,
            in_words(design, ExpectedAnswer.model_validate(row.expected)),
            "cannot be judged" if math.isnan(row.value) else design.said(values, place),
            row.check_number not in missed,
        )
        for place, row in enumerate(rows)
    ]


def in_words(design: Design, expected: ExpectedAnswer) -> str:
    """What is expected, for a cell of a table."""
    if expected.place is not None:
        return f"place {expected.place}"
    if expected.labels:
        return " or ".join(all_that_do(design, expected))
    low, high = span(design, expected)
    return f"{low:g} to {high:g}"
