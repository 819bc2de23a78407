"""The export of items says on which side of a goal's line each item is, and how sure that is."""

import json
from typing import Any

import numpy as np
import pytest

from app.analysis import calibrated_intervals
from app.database.bulk import open_snapshot
from app.exports import goal_columns
from app.exports.goal_columns import LAW_SCORE_COLUMNS
from app.exports.registry import open_export_or_refuse
from app.goals.progress import goal_progress_or_none
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    execute_sql,
    submit_scores,
    try_to_lease_hit,
)

GOAL: dict[str, Any] = {"goal_within": 5, "judgments_per_item": 20, "repeat_items": False, "items_per_hit": 5}


async def answered(engine, **settings: Any) -> Any:
    """By six people who nearly agree: items lie at 5, 14, 23 and so on."""
    campaign = await create_running_campaign(engine, items=10, **GOAL | settings)
    for person in range(6):
        assignment = await create_annotator(engine, campaign, f"p{person}")
        for _ in range(2):
            hit = await try_to_lease_hit(engine, assignment)
            await submit_scores(
                engine, assignment, hit, scores=[5.0 + 9 * item + 3 * (person % 3 - 1) for item in hit.items]
            )
    return campaign


async def exported(engine, campaign, format_="jsonl") -> Any:
    file = await open_export_or_refuse(engine, campaign.slug, "items", format_)
    content = "".join([piece async for piece in file.chunks])
    return [json.loads(line) for line in content.splitlines()] if format_ == "jsonl" else content


async def near(engine, campaign, score) -> Any:
    async with open_snapshot(engine) as connection:
        counted = await calibrated_intervals.load_calibrated_evidence_extending_previous(
            connection, campaign.criteria[0]
        )
    return goal_progress_or_none(
        campaign, counted.evidence.goal_estimates(campaign, counted.intervals).estimates, score
    )


@pytest.mark.parametrize(("goal", "side"), [("best", "among_best"), ("threshold", "above_threshold")])
async def test_of_a_goal_with_a_line_each_item_has_its_side_and_how_sure_that_is(engine, goal, side):
    campaign = await answered(engine, goal=goal, best_items=3, threshold=65, when_reached="release")
    rows = await exported(engine, campaign)
    assert list(rows[0])[-3:] == ["settled", side, "side_probability"]
    assert [row[side] for row in rows] == [False] * 7 + [True] * 3
    sure = {number for number, row in enumerate(rows) if row["side_probability"] >= 0.95}
    assert sure == {*(await near(engine, campaign, np.array([row["mode"] for row in rows]))).settled_items.tolist()}
    assert 0 in sure
    assert f",false,{rows[0]['side_probability']}\r\n" in (await exported(engine, campaign, "csv"))
    assert not any(row["settled"] for row in rows)
    await execute_sql(engine, "UPDATE posteriors SET settled = true WHERE subject = 4")
    assert [row["settled"] for row in await exported(engine, campaign)] == [number == 4 for number in range(10)]


async def test_what_does_not_count_for_the_goal_has_no_side_and_what_nobody_judged_is_above_no_line(engine):
    campaign = await create_running_campaign(
        engine, items=6, goal="threshold", cannot_be_judged=True, unjudged_people=2
    )
    assert [row["above_threshold"] for row in await exported(engine, campaign)] == [None] * 6
    campaign = await answered(engine, goal="best", best_items=2, cannot_be_judged=True, unjudged_people=2)
    await execute_sql(engine, "UPDATE posteriors SET unjudged = 2 WHERE subject = 9")
    rows = await exported(engine, campaign)
    assert (rows[9]["among_best"], rows[9]["side_probability"]) == (None, None)
    assert [row["among_best"] for row in rows[:9]] == [False] * 7 + [True] * 2


async def test_of_many_items_the_probability_is_left_out(engine, monkeypatch):
    campaign = await answered(engine, goal="best", best_items=2)
    monkeypatch.setattr(goal_columns, "MAX_ITEMS_WITH_CHANCE", 9)
    assert list((await exported(engine, campaign))[0])[-1] == "among_best"


@pytest.mark.parametrize("goal", ["best", "intervals"])
async def test_a_goal_that_the_law_measures_has_its_scores_beside_each_item(engine, goal):
    campaign = await answered(engine, goal=goal, best_items=3, update_law="easl-aware")
    rows = await exported(engine, campaign)
    assert tuple(rows[0])[-4:] == LAW_SCORE_COLUMNS
    async with open_snapshot(engine) as connection:
        fitted = (
            await calibrated_intervals.load_calibrated_evidence_extending_previous(connection, campaign.criteria[0])
        ).evidence.law_estimates_or_none
    assert fitted is not None
    low, high = fitted.interval()
    points = 100 * np.column_stack([fitted.mean, fitted.standard_error, low, high])
    np.testing.assert_allclose([[row[name] for name in LAW_SCORE_COLUMNS] for row in rows], points)


async def test_while_plain_means_measure_the_goal_the_laws_scores_are_empty(engine):
    campaign = await create_running_campaign(engine, items=5, goal="intervals", update_law="easl-aware")
    assert [[row[name] for name in LAW_SCORE_COLUMNS] for row in await exported(engine, campaign)] == [[None] * 4] * 5


@pytest.mark.parametrize("goal", ["none", "halves", "order"])
async def test_other_goals_add_no_column(engine, goal):
    campaign = await answered(engine, goal=goal, update_law="easl-aware")
    header = (await exported(engine, campaign, "csv")).splitlines()[0]
    means = "mean_score,standard_error,calibrated_low_95,calibrated_high_95"
    assert header.endswith(f",judgments,{means},shrunken_score,shrunken_low_95,shrunken_high_95")
