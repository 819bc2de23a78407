"""How far each annotator goes with the others, where few enough have answered to ask it for a page."""

import asyncio
import math
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.registry import design_of
from app.quality import gather
from app.quality.conduct import Conduct
from app.quality.evidence import interval
from app.quality.rules.agreement import AgreementWithOthers

MOST_ANSWERS = 5_000  # of more, the analysis has it, which keeps what it has fitted
ALARM = 0.05

FEW = text("""
    SELECT count(*) <= :most FROM (
        SELECT FROM responses WHERE campaign_id = :campaign LIMIT :most + 1) AS some_of_them
""")


class GoesWithOthers(NamedTuple):
    """The correlation with the others' means, and the ends of its 95 % interval; of labels the share that most others
    gave, too, without an interval.
    """

    value: float
    low: float | None = None
    high: float | None = None


async def with_others(connection: AsyncConnection, campaign: Any) -> dict[int, GoesWithOthers] | None:
    """By annotator, for whom enough is known; None in a campaign of too many answers."""
    key = {"campaign": campaign.id, "most": MOST_ANSWERS}
    if not (await connection.execute(FEW, key)).scalar_one():
        return None
    record = await gather.read(connection, campaign)
    conducts = await asyncio.to_thread(gather.conducts, design_of(campaign), record)
    found = {number: of(conduct) for number, conduct in conducts.items()}
    return {number: one for number, one in found.items() if not math.isnan(one.value)}


def of(conduct: Conduct) -> GoesWithOthers:
    rule = AgreementWithOthers()
    value = rule.measure(conduct)
    if math.isnan(value) or conduct.yields == "classes":
        return GoesWithOthers(value)
    return GoesWithOthers(value, *interval(value, int(rule.compared(conduct).sum()), ALARM))
