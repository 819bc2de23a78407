"""The courses of the campaigns that someone looks at through this process, kept up with their responses.

Responses are replayed once: what is settled is kept, so each look replays what came since. After a start of the server
a long campaign is caught up with in steps, a part of a second each, and no page waits for the whole of it.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.dashboard.course import Course, begun, followed
from app.designs import slider
from app.inference.online import ONLINE, Hit

MOST_COURSES = 50  # in memory at once, about 70 bytes for each item of their campaigns
AT_ONCE = 1_000  # responses that are read and replayed between two looks at the clock
PATIENCE_SECONDS = 0.3
# Answers commit out of order; more than these are never under way at once, so what lies before them is settled.
UNSETTLED = 200

PRIORS = text("""
    SELECT coalesce(array_agg(coalesce(prior_a, :prior_a) ORDER BY number), '{}') AS a,
           coalesce(array_agg(coalesce(prior_b, :prior_b) ORDER BY number), '{}') AS b
    FROM items WHERE campaign_id = :campaign
""")

# BETWEEN instead of =: so the order can only come from the index that has campaign and number.
RESPONSES = text("""
    SELECT seq, annotator_id, items, scores FROM responses
    WHERE campaign_id BETWEEN :campaign AND :campaign AND seq > :after ORDER BY campaign_id, seq LIMIT :limit
""")


@dataclass(frozen=True)
class Settled:
    """A course, and the number of the last response in it."""

    course: Course
    seq: int = 0


@dataclass
class Courses:
    """The settled courses by campaign."""

    settled: dict[int, Settled] = field(default_factory=dict)

    async def newest(
        self,
        connection: AsyncConnection,
        campaign: Row[Any],
        answers: int,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> Course:
        """The course as of now, or as far as patience goes; `answers` is the number of responses there are.

        A course that is behind has fewer `answers` than that, and the next call goes on with it.
        """
        known = self.settled.get(campaign.id) or Settled(await course_of(connection, campaign))
        deadline = clock() + PATIENCE_SECONDS
        # Answers under a law that learns about annotators commit in order, and replaying them takes longer.
        unsettled = UNSETTLED if known.course.learned is None else 0
        while True:
            rows = await responses_after(connection, campaign.id, known.seq)
            settled = len(rows) - unsettled
            if settled > 0:
                known = await settled_further(known, campaign, rows[:settled], answers)
                self.keep(campaign.id, known)
            if len(rows) < AT_ONCE + UNSETTLED:
                return await further(known.course, campaign, rows[max(settled, 0) :], answers)
            if clock() > deadline:
                return known.course

    def keep(self, campaign_id: int, known: Settled) -> None:
        """Of two that follow at once, the one that came further counts. Of too many, the first has to start again."""
        before = self.settled.get(campaign_id)
        if before is None or before.seq < known.seq:
            self.settled[campaign_id] = known
        if len(self.settled) > MOST_COURSES:
            del self.settled[next(iter(self.settled))]


async def course_of(connection: AsyncConnection, campaign: Row[Any]) -> Course:
    """The course of a launched campaign before its first answer."""
    parameters = {"campaign": campaign.id, "prior_a": campaign.prior_a, "prior_b": campaign.prior_b}
    priors = (await connection.execute(PRIORS, parameters)).one()
    return begun(ONLINE[campaign.update_law], np.array(priors.a, float), np.array(priors.b, float))


async def responses_after(connection: AsyncConnection, campaign_id: int, seq: int) -> Sequence[Row[Any]]:
    parameters = {"campaign": campaign_id, "after": seq, "limit": AT_ONCE + UNSETTLED}
    return (await connection.execute(RESPONSES, parameters)).all()


async def settled_further(known: Settled, campaign: Row[Any], rows: Sequence[Row[Any]], answers: int) -> Settled:
    return Settled(await further(known.course, campaign, rows, answers), rows[-1].seq)


async def further(course: Course, campaign: Row[Any], rows: Sequence[Row[Any]], answers: int) -> Course:
    """The course after these responses too; a thread replays them."""
    hits: list[Hit] = [(row.items, [score / slider.POINTS for score in row.scores]) for row in rows]
    law, parameters = ONLINE[campaign.update_law], slider.parameters(campaign)
    annotators = [row.annotator_id for row in rows]
    return await asyncio.to_thread(followed, course, law, hits, parameters, annotators=annotators, total=answers)
