"""A simulated crowd that answers a campaign through the real serving path, for rehearsals and live dashboards.

Each annotator reports an item's true value with habits of their own (`annotators`). Where items are systems, the
difficulty of the segment shifts the value of all systems alike. By another criterion another value is true. These
answers are marked by the platform `simulation`, in the database and in every export, so they never mix with people's
answers by accident.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
import numpy.typing as npt
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.hits import leases, submission
from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.campaign_index import PosteriorCache
from app.annotation.hits.next_hit import HitOnPage
from app.annotation.platforms.assignments import ADMITTED_TO_EVERY_VERSION, AssignmentId, find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.programs import SIMULATION_PLATFORM
from app.annotation.platforms.registry import simulated_platform_names
from app.database.session import borrow_autocommit_driver, driver_of
from app.designs.answer import Answer, AnswerByCriterion, Touch
from app.designs.campaign import Campaign
from app.designs.design import Design
from app.designs.remarks import WHOLE_HIT, Remark, are_comments_asked, does_remark_target_include_subject
from app.errors import Conflict, Invalid, join_names, shorten_echo
from app.simulation.annotators import Habits, Population
from app.simulation.simulated_checks import habits_for_checks, load_expected_shares_by_check_id

HAS_ANSWERS_OF_PEOPLE = text("""
    SELECT EXISTS (SELECT 1 FROM responses r
                   JOIN annotators a ON a.campaign_id = r.campaign_id AND a.id = r.annotator_id
                   WHERE r.campaign_id = :campaign AND a.platform <> ALL(:simulated))
""")

LOAD_TRUTH_COLUMN = text("SELECT fields ->> :column FROM items WHERE campaign_id = :campaign ORDER BY number")

SHARED_TRUTH_WEIGHT = 0.3  # weight of the first criterion's true values in those of another criterion
# Reasons why one annotator gets no HIT while others may.
PERSONAL_NO_HIT_REASONS = ("limit", "seen_all", "assignment_done", "held")

SIMULATED_COMMENT = "A simulated annotator has no reason to give."
LIST_ITEM_COLUMNS = text("SELECT json_object_keys(fields) FROM items WHERE campaign_id = :campaign AND number = 0")


@dataclass
class SimulatedAnnotator:
    """A simulated annotator with an assignment, habits and a number of HITs done."""

    assignment: AssignmentId
    habits: Habits
    hits_done: int = 0


@dataclass(frozen=True)
class DrawnCrowd:
    """True values and annotators of a simulation, drawn before its first HIT. The same seed draws the same again.

    Attributes:
        true_values: True values of the items by the first criterion, (N,) in 0..1.
        unjudgeable_items: Items that cannot be judged, with the reason.
        difficulty: Difficulty of each segment.
        habits: Habits of each annotator.

    """

    true_values: npt.NDArray[np.float64]
    unjudgeable_items: dict[int, str]
    difficulty: npt.NDArray[np.float64]
    habits: list[Habits]


async def draw_crowd(
    connection: AsyncConnection,
    campaign: Campaign,
    *,
    annotator_count: int,
    population: Population,
    truth_column: str | None,
    rng: np.random.Generator,
    unjudgeable_share: float = 0.0,
) -> DrawnCrowd:
    """Draw true values and annotators of a simulation.

    The arguments, and what it raises, are those of `answer_hits_by_simulated_annotators_and_count`.
    """
    true_values = await load_or_draw_true_values(connection, campaign.id, truth_column, rng)
    unjudgeable_items = draw_reason_by_unjudgeable_item_or_refuse(campaign, len(true_values), unjudgeable_share, rng)
    difficulty = population.noise * rng.standard_normal(campaign.segment_count)
    return DrawnCrowd(true_values, unjudgeable_items, difficulty, population.draw_habits(annotator_count, rng))


async def load_or_draw_true_values(
    connection: AsyncConnection, campaign_id: int, column: str | None, rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return the true values of the items, (N,) in 0..1: a column of the items scaled to its range, or uniform random
    values.

    Raises `Invalid`: `column_unknown`, and `truth_not_numeric` when the column is not a number for every item.
    """
    values = list(await connection.scalars(LOAD_TRUTH_COLUMN, {"campaign": campaign_id, "column": column or ""}))
    if column is None:
        return rng.random(len(values))
    if all(value is None for value in values):
        columns = list(await connection.scalars(LIST_ITEM_COLUMNS, {"campaign": campaign_id}))
        raise Invalid(
            f"The items have no column “{shorten_echo(column)}”. Choose one of {join_names(columns)}.",
            code="column_unknown",
        )
    try:
        numbers = np.array(values, dtype=np.float64)
    except ValueError:
        numbers = np.array([np.nan])
    if not np.isfinite(numbers).all():
        raise Invalid(
            f"The column “{shorten_echo(column)}” does not have a number for every item.",
            code="truth_not_numeric",
        )
    low, high = numbers.min(), numbers.max()
    return (numbers - low) / (high - low) if high > low else np.full(len(numbers), 0.5)


def draw_true_values_by_another_criterion(
    true_values: npt.NDArray[np.float64], rng: np.random.Generator
) -> npt.NDArray[np.float64]:
    """Return true values by another criterion, (N,) in 0..1, weakly correlated with the first."""
    return SHARED_TRUTH_WEIGHT * true_values + (1 - SHARED_TRUTH_WEIGHT) * rng.random(len(true_values))


def simulate_answer(
    annotator: SimulatedAnnotator,
    campaign: Campaign,
    hit: HitOnPage,
    drawn: DrawnCrowd,
    truths: Sequence[npt.NDArray[np.float64]],
    *,
    shares_by_check_id: Mapping[str, Sequence[float]],
    rng: np.random.Generator,
) -> Answer | AnswerByCriterion:
    """Return an annotator's answer to a HIT by all criteria, with the comments that the campaign asks for.

    Args:
        annotator: The annotator.
        campaign: The campaign.
        hit: The HIT.
        drawn: What was drawn for the simulation.
        truths: True values of all items, (N,), by each criterion.
        shares_by_check_id: Expected answers to checks, by each criterion, as places on the scale.
        rng: Source of randomness.

    """
    extra_difficulty = 0.0 if hit.segment is None else drawn.difficulty.item(hit.segment)
    parts = [
        simulate_answer_to_one_criterion(
            annotator,
            criterion.design,
            true - extra_difficulty,
            hit.items,
            unjudgeable_items=drawn.unjudgeable_items,
            share_by_check={
                shown: shares_by_check_id[check_id][criterion.number]
                for shown, check_id in zip(hit.items, hit.ids, strict=True)
                if check_id in shares_by_check_id
            },
            rng=rng,
        )
        for criterion, true in zip(campaign.criteria, truths, strict=True)
    ]
    parts[0] = replace(parts[0], remarks=simulated_remarks(campaign, parts[0]))
    names = campaign.criterion_names
    return AnswerByCriterion(dict(zip(names, parts, strict=True))) if names else parts[0]


def simulate_answer_to_one_criterion(
    annotator: SimulatedAnnotator,
    design: Design,
    true_values: npt.NDArray[np.float64],
    items: Sequence[int],
    *,
    unjudgeable_items: Mapping[int, str],
    share_by_check: Mapping[int, float],
    rng: np.random.Generator,
) -> Answer:
    """Answer a HIT by one criterion.

    Args:
        annotator: The simulated annotator.
        design: Design of the campaign, which turns values into answers.
        true_values: True values of all items, (N,).
        items: Numbers under which the HIT shows items and checks.
        unjudgeable_items: Items that cannot be judged, with the reason.
        share_by_check: Expected position on the scale of each check, by the number under which it is shown.
        rng: Source of randomness.

    """
    judged = [item for item in items if item in share_by_check or item not in unjudgeable_items]
    values_of_judged = np.array(
        [share_by_check[item] if item in share_by_check else true_values[item] for item in judged]
    )
    scores = simulate_scores(annotator.habits, design, values_of_judged, annotator.hits_done, rng) if judged else []
    is_check = [item in share_by_check for item in judged]
    if any(is_check) and annotator.habits.careless is None:
        calm = habits_for_checks(annotator.habits)
        scores_of_checks = simulate_scores(calm, design, values_of_judged, annotator.hits_done, rng)
        scores = np.where(is_check, scores_of_checks, scores).tolist()
    values = dict(zip(judged, design.simulate_answer_values(scores), strict=True)) if judged else {}
    touches = {
        item: Touch(int(1000 * (k + rng.gamma(4, 0.5))), 1 + int(rng.poisson(0.6)), "mouse")
        for k, item in enumerate(items)
    }
    unjudged = {item: unjudgeable_items[item] for item in items if item not in judged}
    return Answer(values, touches, source=SIMULATION_PLATFORM.name, unjudged=unjudged)


def simulated_remarks(campaign: Campaign, answer: Answer) -> dict[str, Remark]:
    """Return a comment for each subject that the campaign asks about with an open field."""
    if not are_comments_asked(campaign):
        return {}
    return {
        about: Remark(SIMULATED_COMMENT)
        for about in (WHOLE_HIT, *map(str, answer.values))
        if does_remark_target_include_subject(campaign.comment_on, about)
    }


def simulate_scores(
    habits: Habits, design: Design, true_values: npt.NDArray[np.float64], hits_done: int, rng: np.random.Generator
) -> list[float]:
    """Return an annotator's scores of items with these true values, (n,)."""
    respond = habits.draw_scores_for_items if design.value_kind == "points" else habits.values_as_perceived_by_annotator
    scores: list[float] = respond(true_values, hits_done, rng).tolist()
    return scores


def refuse_simulation_unless_running(campaign: Campaign) -> None:
    """Raise `Conflict` (`not_running`) when the campaign hands out no HITs."""
    if campaign.status != "running":
        state = "a draft: launch it first" if campaign.status == "draft" else f"{campaign.status}: it hands out no HITs"
        message = f"“{campaign.name}” is {state}. No HIT was answered."
        raise Conflict(message, code="not_running", status=campaign.status)


async def has_answers_of_people(connection: AsyncConnection, campaign: Campaign) -> bool:
    result = await connection.execute(
        HAS_ANSWERS_OF_PEOPLE, {"campaign": campaign.id, "simulated": simulated_platform_names()}
    )
    return bool(result.scalar_one())


async def refuse_if_people_answered(connection: AsyncConnection, campaign: Campaign) -> None:
    """Raise `Conflict` (`people_have_answered`) when the campaign holds answers of people."""
    if await has_answers_of_people(connection, campaign):
        raise Conflict(
            f"People have answered “{campaign.name}”, and simulated answers would distort the results. Create another "
            "campaign for the simulation, or start Easel on a fresh database: EASEL_DATA_DIR=~/easel-demo.",
            code="people_have_answered",
        )


def worker_id_of_simulated_annotator(number: int) -> str:
    """Return the worker id of a simulated annotator by their number from 0."""
    return f"simulated {number}"


async def create_simulated_annotators(
    connection: AsyncConnection, campaign: Campaign, all_habits: Sequence[Habits], *, now: datetime
) -> list[SimulatedAnnotator]:
    """Create an admitted annotator for each of these habits."""
    driver = await driver_of(connection)
    arrivals = [Arrival(worker_id_of_simulated_annotator(k), SIMULATION_PLATFORM.name) for k in range(len(all_habits))]
    return [
        SimulatedAnnotator(
            await find_or_create_assignment(
                driver,
                campaign.id,
                SIMULATION_PLATFORM.name,
                arrival,
                now=now,
                admitted_visit_version=ADMITTED_TO_EVERY_VERSION,
            ),
            habits,
        )
        for arrival, habits in zip(arrivals, all_habits, strict=True)
    ]


def draw_reason_by_unjudgeable_item_or_refuse(
    campaign: Campaign, item_count: int, share: float, rng: np.random.Generator
) -> dict[int, str]:
    """Draw about this share of the items, each with one of the campaign's reasons why it cannot be judged.

    Raises `Invalid` (`unjudged_not_offered`).
    """
    if not share:
        return {}
    if not campaign.cannot_be_judged:
        raise Invalid(
            f"“{campaign.name}” does not offer “cannot be judged”, so every item must be judged. No HIT was answered.",
            code="unjudged_not_offered",
        )
    reasons = campaign.unjudged_reasons or [""]
    return {item: reasons[item % len(reasons)] for item in np.flatnonzero(rng.random(item_count) < share).tolist()}


async def answer_hits_by_simulated_annotators_and_count(
    database: AsyncEngine,
    campaign: Campaign,
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
    """Answer up to `hits` HITs by annotators in random order; return how many were answered before no HIT was left.

    Raises `Conflict` (`not_running`, `people_have_answered`), and `Invalid` for a truth column that cannot be used or
    for unjudgeable items that the campaign does not allow (`unjudged_not_offered`).

    Args:
        database: Engine of the database.
        campaign: A running campaign.
        hits: Most HITs to answer.
        annotators: Number of annotators.
        population: Distribution of their habits.
        truth_column: Column of the items with true values; None for random values.
        rng: Source of randomness.
        clock: Time of each step.
        unjudgeable: Share of the items that every annotator reports as impossible to judge.
        on_answer: Awaited after every HIT.

    """
    refuse_simulation_unless_running(campaign)
    cache = PosteriorCache()
    async with database.begin() as connection:
        await refuse_if_people_answered(connection, campaign)
        drawn = await draw_crowd(
            connection,
            campaign,
            annotator_count=annotators,
            population=population,
            truth_column=truth_column,
            rng=rng,
            unjudgeable_share=unjudgeable,
        )
        shares_by_check_id = await load_expected_shares_by_check_id(connection, campaign)
        crowd = await create_simulated_annotators(connection, campaign, drawn.habits, now=clock())
    truth = drawn.true_values
    truths = [truth, *(draw_true_values_by_another_criterion(truth, rng) for _ in campaign.criteria[1:])]
    hits_done = 0
    while hits_done < hits and crowd:
        annotator = crowd[rng.integers(len(crowd))]
        async with borrow_autocommit_driver(database) as connection:
            next_hit = await leases.find_or_lease_next_hit(
                connection, cache, AssignmentQuery(annotator.assignment), now=clock()
            )
        if next_hit.hit is None:
            if next_hit.reason not in PERSONAL_NO_HIT_REASONS:
                break
            crowd.remove(annotator)
            continue
        answer = simulate_answer(
            annotator, campaign, next_hit.hit, drawn, truths, shares_by_check_id=shares_by_check_id, rng=rng
        )
        async with borrow_autocommit_driver(database) as connection:
            await submission.store_answer_of_hit_and_return_receipt(
                connection, annotator.assignment, next_hit.hit.id, answer, now=clock(), cache=cache
            )
        annotator.hits_done += 1
        hits_done += 1
        if on_answer is not None:
            await on_answer()
    return hits_done
