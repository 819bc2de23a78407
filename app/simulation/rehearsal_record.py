"""Record of a finished rehearsal: its scores, and what its rules noticed, next to the truth that its crowd knew.

The truth is not stored: the seed of the rehearsal and the description of its crowd draw the same again.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.annotation.platforms.programs import SIMULATION_PLATFORM
from app.designs.campaign import Campaign
from app.errors import Invalid
from app.inference.ground.arrays import Array
from app.simulation.crowd import draw_crowd, worker_id_of_simulated_annotator
from app.simulation.rehearsals import RehearsalCrowd

LOAD_REHEARSAL_CROWD = text("SELECT described, led_until FROM crowds WHERE campaign_id = :campaign")

LIST_FINAL_SCORES = text("""
    SELECT score, settled IS TRUE OR judgments >= :wanted AS is_done FROM current_posteriors
    WHERE campaign_id = :campaign AND criterion = 0 ORDER BY number
""")

COUNT_ANSWERED_HITS = text("SELECT count(*) FROM responses WHERE campaign_id = :campaign AND replaces IS NULL")

LIST_SIMULATED_ANNOTATORS = text("""
    SELECT a.worker_id, a.barred IS NOT NULL AS is_held,
           EXISTS (SELECT FROM findings f WHERE f.campaign_id = :campaign AND f.annotator_id = a.id) AS has_finding
    FROM annotators a WHERE a.campaign_id = :campaign AND a.platform = :platform
    AND EXISTS (SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id)
""")


@dataclass(frozen=True)
class AnnotatorOutcome:
    """A simulated annotator, as the crowd drew them and as the rules saw them.

    Attributes:
        is_careless: True if they answered without looking.
        is_held: True if they are held or excluded.
        has_finding: True if a rule found something.

    """

    is_careless: bool
    is_held: bool
    has_finding: bool


@dataclass(frozen=True)
class RehearsalRecord:
    """Record of a finished rehearsal.

    Attributes:
        annotators: Annotators who answered.
        hit_count: Number of answered HITs.
        true_values: True values of the items, (N,).
        scores: Their scores, (N,).
        is_complete: True if every item has the judgments that it wants.

    """

    annotators: Sequence[AnnotatorOutcome]
    hit_count: int
    true_values: Array
    scores: Array
    is_complete: bool


async def load_rehearsal_record_or_none(connection: AsyncConnection, campaign: Campaign) -> RehearsalRecord | None:
    """Load the record of a finished rehearsal; None if its truth cannot be drawn again."""
    parameters = {"campaign": campaign.id}
    row = (await connection.execute(LOAD_REHEARSAL_CROWD, parameters)).one_or_none()
    if row is None:
        return None
    crowd = RehearsalCrowd.from_description(row.described, row.led_until)
    try:
        drawn = await draw_crowd(
            connection,
            campaign,
            annotator_count=crowd.annotators,
            population=crowd.population,
            truth_column=crowd.truth_column,
            rng=np.random.default_rng(campaign.seed),
        )
    except Invalid:  # an item came later, without the column of true values
        return None
    careless_ids = {
        worker_id_of_simulated_annotator(k) for k, habits in enumerate(drawn.habits) if habits.careless is not None
    }
    annotators = await connection.execute(
        LIST_SIMULATED_ANNOTATORS, parameters | {"platform": SIMULATION_PLATFORM.name}
    )
    items = (await connection.execute(LIST_FINAL_SCORES, parameters | {"wanted": campaign.judgments_per_item})).all()
    return RehearsalRecord(
        [AnnotatorOutcome(row.worker_id in careless_ids, row.is_held, row.has_finding) for row in annotators],
        (await connection.execute(COUNT_ANSWERED_HITS, parameters)).scalar_one(),
        drawn.true_values,
        np.array([item.score for item in items]),
        all(item.is_done for item in items),
    )
