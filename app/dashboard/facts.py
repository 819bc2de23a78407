"""What is read of a campaign for its page, as of one moment: counts from SQL, the rest from what is in memory."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

import numpy as np
from sqlalchemy import Row, select, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.listing import made_up_hits
from app.campaigns.rehearsed import crowd_is_gone
from app.dashboard.course import Course
from app.dashboard.follow import Followers
from app.dashboard.halo import HaloSoFar, can_tell
from app.dashboard.heatmap import CELLS
from app.dashboard.implied import Implied
from app.dashboard.precision import Precision
from app.database.audit_log import since_launch
from app.database.bulk import numbers_of
from app.database.session import Driver, driver_of
from app.database.tables import items
from app.designs.criteria import for_criterion, number_of
from app.inference.ground.arrays import Array, Mask
from app.record import pace
from app.record.per_minute import FIRST_AT, per_minute
from app.record.stream import COUNTING
from app.selection.rule import GONE, SETTLED, Counts, Index
from app.serving.posterior_cache import PosteriorCache

LONGEST_NAME = 60

OPEN_HITS = """
    SELECT count(*) FROM hits WHERE campaign_id = :campaign AND closed_at IS NULL AND leader IS NOT NULL
    AND expires_at > :now"""

COUNTS = text(f"""
    SELECT {FIRST_AT},
           (SELECT count(*) FROM annotators a WHERE a.campaign_id = :campaign
            AND EXISTS (SELECT 1 FROM responses r
                        WHERE r.campaign_id = :campaign AND r.annotator_id = a.id AND {COUNTING})) AS annotators,
           ({OPEN_HITS}) AS open_hits
""")  # noqa: S608  (made of constants)

BY_CRITERION = """
    SELECT score, variance FROM current_posteriors WHERE campaign_id = $1 AND criterion = $2 ORDER BY number
"""


@dataclass(frozen=True)
class Facts:
    """What was read of a campaign by a criterion, as of one moment: how many HITs count, those by minute, arrays (N,),
    names if few.

    gone: which items have left the pool, since so many people could not judge them. settled: which are released.
    """

    campaign: Any
    until: datetime
    hits: int
    counts: Row[Any]
    made_up_hits: int
    minutes: dict[int, int]
    names: list[str]
    score: Array
    variance: Array
    judgments: Counts
    gone: Mask
    settled: Mask
    precision: Precision
    course: Course
    implied: Implied | None
    halo: HaloSoFar | None
    changed: Sequence[Row[Any]]  # of the campaign since its launch, as the audit log has it
    crowd_gone: bool  # it is a rehearsal, and no process leads its crowd any more

    @property
    def drawn(self) -> Counts:
        """The judgments of the items that are drawn: all but those that every HIT shows."""
        return np.delete(self.judgments, self.campaign.always_shown)

    @property
    def left(self) -> int:
        """Judgments still wanted."""
        return int(np.maximum(self.wanted_of_each - self.drawn, 0).sum())

    @property
    def wanted(self) -> int:
        """Judgments in all."""
        return int(self.wanted_of_each.sum())

    @cached_property
    def wanted_of_each(self) -> Counts:
        """Of the items that are drawn; of those that have left the pool or are settled, what they have."""
        gone = np.delete(self.gone | self.settled, self.campaign.always_shown)
        return np.where(gone, self.drawn, int(self.campaign.judgments_per_item))

    @property
    def behind(self) -> int:
        """Answers that the calibrated intervals do not know yet."""
        return self.hits - self.precision.answers

    @property
    def first_and_now(self) -> tuple[float, float]:
        """Seconds since 1970, of the first answer and of this moment."""
        now = self.until.timestamp()
        return min(self.counts.first_at.timestamp(), now) if self.counts.first_at else now, now

    @property
    def recent_rate(self) -> tuple[int, float] | None:
        return pace.recent_rate(self.minutes, *self.first_and_now)


async def newest_facts(
    connection: AsyncConnection, cache: PosteriorCache, followers: Followers, campaign: Any, *, now: datetime
) -> Facts:
    """As of now, of a campaign that was launched, by the criterion by which it is read."""
    until = min(now, campaign.finished_at or now)
    made_up = await made_up_hits(connection, campaign.id)  # first, so that they are never more than all
    counts = (await connection.execute(COUNTS, {"campaign": campaign.id, "now": now})).one()
    minutes = await per_minute(connection, campaign.id, until)
    driver = await driver_of(connection)
    index = (await cache.posteriors(driver, campaign)).index
    # Copies: the originals change under other requests while a thread draws.
    gone, settled = index.judgments & GONE > 0, index.judgments & SETTLED > 0
    judgments = index.judgments % SETTLED
    scores = await scores_of(driver, campaign, index)
    names = await names_of(connection, campaign.id) if len(index.score) <= CELLS else []
    known = await followers.precisions.newest(connection, campaign)
    course = (await followers.courses.newest(connection, campaign)).past
    hits = known.past.answers + known.behind
    skips = campaign.implied_asked_percent is not None
    orders = (await followers.implied.newest(connection, campaign)).past if skips else None
    first = for_criterion(campaign, 0)
    halo = (await followers.halos.newest(connection, first)).past if can_tell(campaign) else None
    changed = await since_launch(connection, campaign.id)
    crowd_gone = await crowd_is_gone(connection, campaign)
    arrays = *scores, judgments, gone, settled
    pasts = known.past, course, orders, halo
    return Facts(campaign, until, hits, counts, made_up, minutes, names, *arrays, *pasts, changed, crowd_gone)


async def scores_of(connection: Driver, campaign: Any, index: Index) -> tuple[Array, Array]:
    """Score and variance of each item, (N,): those that decide what is asked, or, of several criteria, those of the one
    by which the campaign is read.
    """
    if not campaign.criteria:
        return index.score.copy(), index.variance.copy()
    found = await numbers_of(connection, BY_CRITERION, (campaign.id, number_of(campaign)), score="f8", variance="f8")
    count = len(index.score)  # an item may have joined since
    return found["score"][:count], found["variance"][:count]


async def names_of(connection: AsyncConnection, campaign_id: int) -> list[str]:
    """What the items of a small campaign are called, by number."""
    statement = select(items.c.shown).where(items.c.campaign_id == campaign_id).order_by(items.c.number)
    return [shortened(shown) for shown in await connection.scalars(statement)]


def shortened(words: str) -> str:
    line = " ".join(words.split())
    return line if len(line) <= LONGEST_NAME else line[: LONGEST_NAME - 1] + "…"
