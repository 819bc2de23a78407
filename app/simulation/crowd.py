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

from app.crowd.annotators import ADMITTED_TO_EVERY_VERSION, AssignmentId, find_or_create_assignment
from app.crowd.platform import Arrival
from app.crowd.programs import SIMULATION_PLATFORM
from app.crowd.registry import simulated_platform_names
from app.database.session import driver_of, statements
from app.designs.answer import Answer, AnswerByCriterion, Touch
from app.designs.criteria import criteria_of, names_of
from app.designs.design import Design
from app.designs.registry import design_of
from app.errors import Conflict, Invalid, listed, shortened
from app.serving import leases, submission
from app.serving.posterior_cache import PosteriorCache
from app.serving.standing import assignment_query_by_id
from app.simulation.annotators import Habits, Population

PEOPLE = text("""
    SELECT EXISTS (SELECT 1 FROM responses r
                   JOIN annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id
                   WHERE r.campaign_id = :campaign AND a.platform <> ALL(:made_up))
""")

TRUTH = text("SELECT fields ->> :column FROM items WHERE campaign_id = :campaign ORDER BY number")

IN_COMMON = 0.3  # of what is true of an item by one criterion and by another
# Why one annotator gets no HIT while others may.
THEIRS_ALONE = ("limit", "seen_all", "assignment_done", "held")

COLUMNS = text("SELECT json_object_keys(fields) FROM items WHERE campaign_id = :campaign AND number = 0")


@dataclass
class MadeUpAnnotator:
    """Someone with habits, who has answered so many HITs."""

    assignment: AssignmentId
    habits: Habits
    done: int = 0


async def truth_of(
    connection: AsyncConnection, campaign_id: int, column: str | None, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """What the crowd believes, (N,) in 0..1: a column of the items scaled to its range, or uniform random values.

    Raises `Invalid`: `column_unknown`, and `truth_not_numeric` when the column is not a number for every item.
    """
    values = list(await connection.scalars(TRUTH, {"campaign": campaign_id, "column": column or ""}))
    if column is None:
        return rng.random(len(values))
    if all(value is None for value in values):
        columns = list(await connection.scalars(COLUMNS, {"campaign": campaign_id}))
        raise Invalid(
            f"The items have no column “{shortened(column)}”. Their columns are: {listed(columns)}.",
            code="column_unknown",
        )
    try:
        numbers = np.array(values, dtype=np.float64)
    except ValueError:
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise Invalid(
            f"The column “{shortened(column)}” does not hold a number for every item.", code="truth_not_numeric"
        )
    low, high = numbers.min(), numbers.max()
    return (numbers - low) / (high - low) if high > low else np.full(len(numbers), 0.5)


def correlated(truth: npt.NDArray[np.float64], rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """What the crowd believes by another criterion, (N,) in 0..1: a little like the first."""
    return IN_COMMON * truth + (1 - IN_COMMON) * rng.random(len(truth))


def made_up_answer(
    someone: MadeUpAnnotator,
    design: Design,
    truth: npt.NDArray[np.float64],
    items: Sequence[int],
    *,
    beyond: Mapping[int, str],
    rng: np.random.Generator,
) -> Answer:
    """What someone says of the items of a HIT. beyond: those that cannot be judged, with the reason."""
    judged = [item for item in items if item not in beyond]
    report = someone.habits.says if design.yields == "points" else someone.habits.sees
    seen = report(truth[judged], someone.done, rng).tolist() if judged else []
    values = dict(zip(judged, design.given(seen), strict=True)) if judged else {}
    touches = {
        item: Touch(int(1000 * (k + rng.gamma(4, 0.5))), 1 + int(rng.poisson(0.6)), "mouse")
        for k, item in enumerate(items)
    }
    unjudged = {item: beyond[item] for item in items if item in beyond}
    return Answer(values, touches, source=SIMULATION_PLATFORM.name, unjudged=unjudged)


def refuse_unless_open(campaign: Row[Any]) -> None:
    """Raise `Conflict` (`not_running`) when the campaign hands out no HITs."""
    if campaign.status != "running":
        state = "a draft: launch it first" if campaign.status == "draft" else f"{campaign.status}: it hands out no HITs"
        raise Conflict(f"“{campaign.name}” is {state}. Nobody answered.", code="not_running", status=campaign.status)


async def answered_by_people(connection: AsyncConnection, campaign: Row[Any]) -> bool:
    """Whether the campaign holds answers of people."""
    found = await connection.execute(PEOPLE, {"campaign": campaign.id, "made_up": simulated_platform_names()})
    return bool(found.scalar_one())


async def refuse_to_mix(connection: AsyncConnection, campaign: Row[Any]) -> None:
    """Raise `Conflict` (`people_have_answered`) when the campaign holds answers of people."""
    if await answered_by_people(connection, campaign):
        raise Conflict(
            f"People have answered “{campaign.name}”, and made-up answers would spoil theirs. Make another campaign "
            "for them, or try things out on fresh data: start Easel with EASEL_DATA_DIR=~/easel-demo.",
            code="people_have_answered",
        )


async def made_up_annotators(
    connection: AsyncConnection,
    campaign: Row[Any],
    people: Sequence[Habits],
    *,
    now: datetime,
) -> list[MadeUpAnnotator]:
    """An annotator for each of these habits, who has come."""
    driver = await driver_of(connection)
    arrivals = [Arrival(f"simulated {k}", SIMULATION_PLATFORM.name) for k in range(len(people))]
    return [
        MadeUpAnnotator(
            await find_or_create_assignment(
                driver, campaign.id, SIMULATION_PLATFORM.name, one, now=now, admitted=ADMITTED_TO_EVERY_VERSION
            ),
            habits,
        )
        for one, habits in zip(arrivals, people, strict=True)
    ]


def beyond_judging(campaign: Row[Any], items: int, share: float, rng: np.random.Generator) -> dict[int, str]:
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
    return {item: reasons[item % len(reasons)] for item in np.flatnonzero(rng.random(items) < share).tolist()}


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
    answered: Callable[[], Awaitable[object]] | None = None,
) -> int:
    """Answer up to `hits` HITs, by annotators in random order; the number answered before nothing was left for any of
    them.

    unjudgeable: the share of the items of which everybody says that they cannot be judged. `clock` gives the time of
    each step; `answered` is awaited after every HIT. Raises `Conflict` (`not_running`, `people_have_answered`) and
    `Invalid` for a truth that cannot be, or that nobody may judge (`unjudged_not_offered`).
    """
    refuse_unless_open(campaign)
    cache, names = PosteriorCache(), names_of(campaign)
    designs = [design_of(view) for view in criteria_of(campaign)]
    async with database.begin() as connection:
        await refuse_to_mix(connection, campaign)
        truth = await truth_of(connection, campaign.id, truth_column, rng)
        beyond = beyond_judging(campaign, len(truth), unjudgeable, rng)
        difficulty = population.noise * rng.standard_normal(campaign.segment_count)
        crowd = await made_up_annotators(connection, campaign, population.people(annotators, rng), now=clock())
    truths = [truth, *(correlated(truth, rng) for _ in designs[1:])]
    done = 0
    while done < hits and crowd:
        someone = crowd[rng.integers(len(crowd))]
        async with statements(database) as connection:
            work = await leases.find_next_hit(
                connection, cache, assignment_query_by_id(someone.assignment), now=clock()
            )
        if work.hit is None:
            if work.reason not in THEIRS_ALONE:
                break
            crowd.remove(someone)
            continue
        harder = 0.0 if work.hit.segment is None else difficulty.item(work.hit.segment)
        parts = [
            made_up_answer(someone, design, true - harder, work.hit.items, beyond=beyond, rng=rng)
            for design, true in zip(designs, truths, strict=True)
        ]
        answer = AnswerByCriterion(dict(zip(names, parts, strict=True))) if names else parts[0]
        async with statements(database) as connection:
            await submission.submit_answer(connection, someone.assignment, work.hit.id, answer, now=clock())
        someone.done += 1
        done += 1
        if answered is not None:
            await answered()
    return done
