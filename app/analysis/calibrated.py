"""The calibrated intervals of all items of a campaign, from every stored judgment."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.answers import in_pieces, item_count
from app.analysis.findings import rows_of
from app.database.bulk import Numbers
from app.designs.design import Design
from app.designs.registry import design_of
from app.designs.scale import POINTS
from app.inference.ground.arrays import Array
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated import Moderated, moderated
from app.record.stream import COUNTING

COLUMNS = ("mean_score", "standard_error", "calibrated_low_95", "calibrated_high_95")  # for programs
# Of the newest responses, which others may still come before: they are read again. Rarely are more under way at once;
# what comes later still shows in the number of responses.
UNSETTLED = 200

# The revision, how many responses count up to a number, the last number that is settled, and the last of all.
NUMBERS = text(f"""
    SELECT (SELECT revision FROM campaigns WHERE id = :campaign) AS revision,
           (SELECT count(*) FROM responses WHERE campaign_id = :campaign AND seq <= :seq AND {COUNTING}) AS responses,
           coalesce((SELECT seq FROM responses WHERE campaign_id = :campaign
                     ORDER BY seq DESC OFFSET :unsettled LIMIT 1), 0) AS settled,
           (SELECT coalesce(max(seq), 0) FROM responses WHERE campaign_id = :campaign) AS last
""")  # noqa: S608  (made of constants)


@dataclass(frozen=True)
class Counted:
    """What the judgments of so many responses add up to: all that count in a revision, up to the number `seq`."""

    tally: Tally
    revision: int
    responses: int = 0
    seq: int = 0


def columns(of_some: Moderated) -> tuple[Array, ...]:
    """The `COLUMNS` of these items, NaN where there is nothing to say."""
    return of_some.mean, of_some.standard_error, *of_some.interval()


def cells(of_some: Moderated) -> list[tuple[Any, ...]]:
    """Each item's `COLUMNS`."""
    return rows_of(*columns(of_some))


async def intervals(connection: AsyncConnection, campaign: Row[Any]) -> Moderated:
    """By item number, on 0 to 1; give it a `snapshot`. Time: some microseconds a judgment, in a thread."""
    return (await newest(connection, campaign))[1]


async def newest(
    connection: AsyncConnection, campaign: Row[Any], known: Counted | None = None
) -> tuple[Counted, Moderated]:
    """What to give the next call, which then reads only what came since; and the same as `intervals`."""
    parameters = {"campaign": campaign.id, "seq": known.seq if known else 0, "unsettled": UNSETTLED}
    now = (await connection.execute(NUMBERS, parameters)).one()
    # Another number: one came late all the same, or was deleted. None: there may be more items since.
    if known is None or known.responses == 0 or (known.revision, known.responses) != (now.revision, now.responses):
        known = Counted(Tally.nothing(await item_count(connection, campaign.id)), now.revision)
    settled = await counted(connection, campaign, known, until=now.settled)
    whole = await counted(connection, campaign, settled, until=now.last)
    return settled, await asyncio.to_thread(moderated, whole.tally)


async def counted(connection: AsyncConnection, campaign: Row[Any], known: Counted, *, until: int) -> Counted:
    """With the judgments of later responses too, up to number `until`."""
    async for rows in in_pieces(connection, campaign.id, after=known.seq, until=until):
        known = await asyncio.to_thread(plus, known, rows, design_of(campaign))
    return replace(known, seq=max(known.seq, until))


def plus(known: Counted, rows: Mapping[str, Numbers], design: Design) -> Counted:
    """With these judgments too."""
    tally = known.tally.after(rows["item"], rows["annotator"], design.points(rows["value"]) / POINTS)
    seqs = np.unique(rows["seq"])
    return Counted(tally, known.revision, known.responses + len(seqs), int(seqs[-1]))
