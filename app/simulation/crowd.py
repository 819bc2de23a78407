"""A made-up crowd that answers a campaign through the real serving path, to rehearse it or to see the dashboard live.

Each annotator reports an item's true value after habits of their own (`annotators`); where items are systems, less or
more by how difficult the segment is, for all systems alike. By another criterion another value is true. Their answers
are marked by the platform `simulation`, here and in every export, and never mix with people's answers by accident.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.hits import leases, submission
from app.annotation.hits.assignment import assignment_query_by_id
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.platforms.assignments import ADMITTED_TO_EVERY_VERSION, AssignmentId, find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.programs import SIMULATION_PLATFORM
from app.annotation.platforms.registry import simulated_platform_names
from app.database.session import borrow_autocommit_driver, driver_of
from app.designs.answer import Answer, AnswerByCriterion, Touch
from app.designs.criteria import criterion_names, criterion_views
from app.designs.design import Design
from app.designs.registry import design_of
from app.errors import Conflict, Invalid, join_names, shorten_echo
from app.simulation.annotators import Habits, Population

HAS_ANSWERS_OF_PEOPLE = text("""
    SELECT EXISTS (SELECT 1 FROM responses r
                   JOIN annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id
                   WHERE r.campaign_id = :campaign AND a.platform <> ALL(:made_up))
""")

LOAD_TRUTH_COLUMN = text("SELECT fields ->> :column FROM items WHERE campaign_id = :campaign ORDER BY number")

SHARED_TRUTH_WEIGHT = 0.3  # of what is true of an item by one criterion and by another
# Why one annotator gets no HIT while others may.
PERSONAL_NO_HIT_REASONS = ("limit", "seen_all", "assignment_done", "held")

LIST_ITEM_COLUMNS = text("SELECT json_object_keys(fields) FROM items WHERE campaign_id = :campaign AND number = 0")


@dataclass
class SimulatedAnnotator:
    """Someone with habits, who has answered so many HITs."""

    assignment: AssignmentId
    habits: Habits
    hits_done: int = 0


async def load_true_values(
    connection: AsyncConnection, campaign_id: int, column: str | None, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """What the crowd believes, (N,) in 0..1: a column of the items scaled to its range, or uniform random values.

    Raises `Invalid`: `column_unknown`, and `truth_not_numeric` when the column is not a number for every item.
    """
    values = list(await connection.scalars(LOAD_TRUTH_COLUMN, {"campaign": campaign_id, "column": column or ""}))
    if column is None:
        return rng.random(len(values))
    if all(value is None for value in values):
        columns = list(await connection.scalars(LIST_ITEM_COLUMNS, {"campaign": campaign_id}))
        raise Invalid(
            f"The items have no column “{shorten_echo(column)}”. Their columns are: {join_names(columns)}.",
            code="column_unknown",
        )
    try:
        numbers = np.array(values, dtype=np.float64)
    except ValueError:
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise Invalid(
            f"The column “{shorten_echo(column)}” does not hold a number for every item.", code="truth_not_numeric"
        )
    low, high = numbers.min(), numbers.max()
    return (numbers - low) / (high - low) if high > low else np.full(len(numbers), 0.5)


def correlated_true_values(true_values: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """What the crowd believes by another criterion, (N,) in 0..1: a little like the first."""
    return SHARED_TRUTH_WEIGHT * true_values + (1 - SHARED_TRUTH_WEIGHT) * rng.random(len(true_values))


def simulate_hit_answer(
    annotator: SimulatedAnnotator,
    design: Design,
    true_values: npt.NDArray[np.float64],
    items: Sequence[int],
    *,
    unjudgeable_items: Mapping[int, str],
    rng: np.random.Generator,
) -> Answer:
    """What someone says of the items of a HIT. beyond: those that cannot be judged, with the reason."""
    judged = [item for item in items if item not in unjudgeable_items]
    respond = annotator.habits.score_items if design.value_kind == "points" else annotator.habits.perceive_values
    scores = respond(true_values[judged], annotator.hits_done, rng).tolist() if judged else []
    values = dict(zip(judged, design.simulate_answer(scores), strict=True)) if judged else {}
    touches = {
        item: Touch(int(1000 * (k + rng.gamma(4, 0.5))), 1 + int(rng.poisson(0.6)), "mouse")
        for k, item in enumerate(items)
    }
    unjudged = {item: unjudgeable_items[item] for item in items if item in unjudgeable_items}
    return Answer(values, touches, source=SIMULATION_PLATFORM.name, unjudged=unjudged)


def refuse_unless_running(campaign: Row[Any]) -> None:
    """Raise `Conflict` (`not_running`) when the campaign hands out no HITs."""
    if campaign.status != "running":
        state = "a draft: launch it first" if campaign.status == "draft" else f"{campaign.status}: it hands out no HITs"
        raise Conflict(f"“{campaign.name}” is {state}. Nobody answered.", code="not_running", status=campaign.status)


async def has_answers_of_people(connection: AsyncConnection, campaign: Row[Any]) -> bool:
    """Whether the campaign holds answers of people."""
    result = await connection.execute(
        HAS_ANSWERS_OF_PEOPLE, {"campaign": campaign.id, "made_up": simulated_platform_names()}
    )
    return bool(result.scalar_one())


async def refuse_if_people_answered(connection: AsyncConnection, campaign: Row[Any]) -> None:
    """Raise `Conflict` (`people_have_answered`) when the campaign holds answers of people."""
    if await has_answers_of_people(connection, campaign):
        raise Conflict(
            f"People have answered “{campaign.name}”, and made-up answers would spoil theirs. Make another campaign "
            "for them, or try things out on fresh data: start Easel with EASEL_DATA_DIR=~/easel-demo.",
            code="people_have_answered",
        )


async def create_simulated_annotators(
    connection: AsyncConnection,
    campaign: Row[Any],
    all_habits: Sequence[Habits],
    *,
    now: datetime,
) -> list[SimulatedAnnotator]:
    """An annotator for each of these habits, who has come."""
    driver = await driver_of(connection)
    arrivals = [Arrival(f"simulated {k}", SIMULATION_PLATFORM.name) for k in range(len(all_habits))]
    return [
        SimulatedAnnotator(
            await find_or_create_assignment(
                driver, campaign.id, SIMULATION_PLATFORM.name, arrival, now=now, admitted=ADMITTED_TO_EVERY_VERSION
            ),
            habits,
        )
        for arrival, habits in zip(arrivals, all_habits, strict=True)
    ]


def draw_unjudgeable_items(
    campaign: Row[Any], item_count: int, share: float, rng: np.random.Generator
) -> dict[int, str]:
    """About this share of the items, with a reason of the campaign why they cannot be judged.

    Raises `Invalid` (`unjudged_not_offered`).
    """
    if not share:
        return {}
    if not campaign.cannot_be_judged:
        raise Invalid(
            f"In “{campaign.name}” every item is judged: it does not offer “cannot be judged”. Nobody answered.",
            code="unjudged_not_offered",
        )
    reasons = campaign.unjudged_reasons or [""]
    return {item: reasons[item % len(reasons)] for item in np.flatnonzero(rng.random(item_count) < share).tolist()}


async def simulate(
    database: AsyncEngine,
    campaign: Row[Any],
    *,
    hits: int,
    annotators: int,
    population: Population,
    truth_column: str | None,
    rng: np.random.Generator,
    clock: Callable[[], datetime],
    unjudgeable: float = 0.0,
    on_answer: Callable[[], Awaitable[object]] | None = None,
) -> int:
    """Answer up to `hits` HITs, by annotators in random order; the number answered before nothing was left for any of
    them.

    unjudgeable: the share of the items of which everybody says that they cannot be judged. `clock` gives the time of
    each step; `answered` is awaited after every HIT. Raises `Conflict` (`not_running`, `people_have_answered`) and
    `Invalid` for a truth that cannot be, or that nobody may judge (`unjudged_not_offered`).
    """
    refuse_unless_running(campaign)
    cache, names = PosteriorCache(), criterion_names(campaign)
    designs = [design_of(view) for view in criterion_views(campaign)]
    async with database.begin() as connection:
        await refuse_if_people_answered(connection, campaign)
        truth = await load_true_values(connection, campaign.id, truth_column, rng)
        unjudgeable_items = draw_unjudgeable_items(campaign, len(truth), unjudgeable, rng)
        difficulty = population.noise * rng.standard_normal(campaign.segment_count)
        crowd = await create_simulated_annotators(
            connection, campaign, population.draw_habits(annotators, rng), now=clock()
        )
    truths = [truth, *(correlated_true_values(truth, rng) for _ in designs[1:])]
    hits_done = 0
    while hits_done < hits and crowd:
        annotator = crowd[rng.integers(len(crowd))]
        async with borrow_autocommit_driver(database) as connection:
            next_hit = await leases.find_next_hit(
                connection, cache, assignment_query_by_id(annotator.assignment), now=clock()
            )
        if next_hit.hit is None:
            if next_hit.reason not in PERSONAL_NO_HIT_REASONS:
                break
            crowd.remove(annotator)
            continue
        extra_difficulty = 0.0 if next_hit.hit.segment is None else difficulty.item(next_hit.hit.segment)
        parts = [
            simulate_hit_answer(
                annotator,
                design,
                true - extra_difficulty,
                next_hit.hit.items,
                unjudgeable_items=unjudgeable_items,
                rng=rng,
            )
            for design, true in zip(designs, truths, strict=True)
        ]
        answer = AnswerByCriterion(dict(zip(names, parts, strict=True))) if names else parts[0]
        async with borrow_autocommit_driver(database) as connection:
            await submission.submit_answer(connection, annotator.assignment, next_hit.hit.id, answer, now=clock())
        annotator.hits_done += 1
        hits_done += 1
        if on_answer is not None:
            await on_answer()
    return hits_done
