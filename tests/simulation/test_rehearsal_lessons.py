"""A finished rehearsal says what it taught: worked by hand for the figures, and on the page for their sentences."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from app.goals.progress import text_that_identifies_goal
from app.simulation import crowd as crowds_of_campaigns
from app.simulation.annotators import population_with_random_bias_only
from app.simulation.rehearsal_lessons import (
    RehearsalFigures,
    compute_rehearsal_figures,
    most_urgent_advice_on_campaign_or_empty,
    sentences_on_lessons_of_rehearsal,
)
from app.simulation.rehearsal_record import AnnotatorOutcome, RehearsalRecord, load_rehearsal_record_or_none
from app.simulation.rehearsals import RehearsalCrowd
from tests.annotation.hits.campaigns import create_running_campaign, execute_sql, fetch_value, wait_until
from tests.simulation.test_rehearsals import FINISHED, PAGE, answered, led, lifecycle_row

CAREFUL, HELD = AnnotatorOutcome(False, False, False), AnnotatorOutcome(False, True, True)
MISSED, NOTICED = AnnotatorOutcome(True, False, False), AnnotatorOutcome(True, False, True)
RECORD = RehearsalRecord(
    annotators=[CAREFUL, CAREFUL, HELD, MISSED, NOTICED],
    hit_count=40,
    true_values=np.array([0.1, 0.2, 0.3, 0.4, 0.5]),
    scores=np.array([0.2, 0.1, 0.3, 0.5, 0.4]),
    is_complete=True,
)
GOOD = RehearsalFigures(
    annotators=12,
    hits=72,
    is_complete=True,
    correlation=0.9,
    best_count=2,
    best_found=1,
    careless=1,
    careless_noticed=1,
    careful=11,
    careful_held=0,
)


def sentences(campaign, figures):
    return [lesson.sentence for lesson in sentences_on_lessons_of_rehearsal(campaign, figures)]


async def test_the_figures_of_five_items_and_five_annotators(engine):
    campaign = await create_running_campaign(engine, goal="best", best_items=2)
    figures = compute_rehearsal_figures(campaign, RECORD)
    assert figures.correlation == pytest.approx(1 - 6 * 4 / (5 * 24))  # four ranks differ by one
    assert (figures.best_count, figures.best_found) == (2, 2)
    assert (figures.careless, figures.careless_noticed) == (2, 1)
    assert (figures.careful, figures.careful_held) == (3, 1)
    assert (figures.annotators, figures.hits) == (5, 40)


async def test_without_a_goal_a_tenth_of_the_items_are_the_best(engine):
    campaign = await create_running_campaign(engine)
    assert compute_rehearsal_figures(campaign, RECORD).best_count == 1
    assert compute_rehearsal_figures(campaign, RECORD).best_found == 0  # the highest score is the second of the truth
    many = replace(RECORD, true_values=np.arange(30) / 30, scores=np.arange(30)[::-1] / 30)
    assert (
        compute_rehearsal_figures(campaign, many).best_count,
        compute_rehearsal_figures(campaign, many).best_found,
    ) == (3, 0)


async def test_items_that_tie_with_the_last_of_the_best_count_as_found(engine):
    campaign = await create_running_campaign(engine, goal="best", best_items=2)
    tied = replace(RECORD, true_values=np.array([0.0, 0.5, 0.5, 0.5, 1.0]), scores=np.array([0.9, 0.1, 0.2, 0.8, 0.3]))
    assert compute_rehearsal_figures(campaign, tied).best_found == 1


async def test_scores_that_are_all_equal_have_no_correlation(engine):
    campaign = await create_running_campaign(engine)
    figures = compute_rehearsal_figures(campaign, replace(RECORD, scores=np.full(5, 0.5)))
    assert figures.correlation is None
    assert not any("correlation" in sentence for sentence in sentences(campaign, figures))


async def test_each_lesson_is_one_sentence(engine):
    campaign = await create_running_campaign(engine, pay_per_hit=0.5, currency="EUR", minutes_per_hit=2)
    assert sentences(campaign, GOOD) == [
        "12 annotators answered 72 tasks: 2.4 hours of work for people, at 2 min each.",
        "With people, these tasks would cost €36.00, at €0.50 each.",
        "The order of the scores and that of the true values correlate 0.90 (1 is the same order, 0 is chance).",
        "1 of the 2 truly best items are among the 2 with the highest scores.",
        "Rules noticed 1 of 1 careless annotator.",
        "Rules held no careful annotator by mistake.",
    ]
    some = replace(GOOD, hits=30, best_count=1, careless=0, careful_held=2)
    assert sentences(campaign, some) == [
        "12 annotators answered 30 tasks: 60 minutes of work for people, at 2 min each.",
        "With people, these tasks would cost €15.00, at €0.50 each.",
        "The order of the scores and that of the true values correlate 0.90 (1 is the same order, 0 is chance).",
        "The truly best item has the highest score.",
        "Rules held 2 of 11 careful annotators by mistake.",
    ]


async def test_a_study_that_pays_each_person_one_reward_costs_the_rewards_of_all_people(engine):
    pay: dict[str, Any] = {"pay_per_hit": 0.125, "hits_per_annotator": 12, "people_from": "prolific"}
    campaign = await create_running_campaign(engine, **pay)
    lessons = [lesson.sentence for lesson in sentences_on_lessons_of_rehearsal(campaign, GOOD, [16.5, 31.5])]
    assert lessons[1] == "With people, the study would cost $16.50 to $31.50, at $1.50 each."


async def test_categories_are_compared_with_no_true_value(engine):
    campaign = await create_running_campaign(engine, design="categories", design_settings={"labels": ["a", "b"]})
    assert sentences(campaign, compute_rehearsal_figures(campaign, RECORD)) == [
        "5 annotators answered 40 tasks.",
        "Rules noticed 1 of 2 careless annotators.",
        "Rules held 1 of 3 careful annotators by mistake.",
    ]


@pytest.mark.parametrize(
    ("changes", "advice"),
    [
        ({"is_complete": False}, "Some items lack judgments: plan for more annotators"),
        ({"is_complete": False, "hits": 2_000}, "a rehearsal ends after 2,000 tasks"),
        ({"careful_held": 1}, "make the rule that held them less strict"),
        ({"careless_noticed": 0}, "add gold items"),
        ({"correlation": 0.79}, "ask for more judgments per item"),
    ],
)
async def test_it_says_what_to_change_first(engine, changes, advice):
    assert advice in most_urgent_advice_on_campaign_or_empty(
        await create_running_campaign(engine), replace(GOOD, **changes)
    )


async def test_with_gold_items_it_advises_more_of_them_or_another_rule(engine):
    campaign = await create_running_campaign(engine, checks_percent=20)
    advice = most_urgent_advice_on_campaign_or_empty(campaign, replace(GOOD, careless_noticed=0))
    assert advice == "Not all careless annotators were noticed: add gold items, another rule, or more tasks per person."


async def test_it_advises_nothing_if_nothing_is_wrong(engine):
    assert not most_urgent_advice_on_campaign_or_empty(await create_running_campaign(engine), GOOD)


async def test_a_goal_that_was_reached_needs_no_more_judgments(engine):
    campaign = await create_running_campaign(engine, goal="best", best_items=2)
    assert most_urgent_advice_on_campaign_or_empty(campaign, GOOD).startswith(
        "The goal was not reached: ask for more judgments per item"
    )
    stopped = replace(GOOD, is_complete=False, correlation=0.5)
    assert most_urgent_advice_on_campaign_or_empty(campaign, stopped).startswith(
        "The goal was not reached, and some items lack judgments"
    )
    assert not most_urgent_advice_on_campaign_or_empty(
        replace(campaign, goal_reached=text_that_identifies_goal(campaign)), stopped
    )


async def test_the_truth_of_the_record_is_the_one_that_the_crowd_knew(engine, monkeypatch):
    drawn = []
    draw_crowd = crowds_of_campaigns.draw_crowd

    async def draw_and_keep(*arguments, **options):
        drawn.append(await draw_crowd(*arguments, **options))
        return drawn[-1]

    monkeypatch.setattr(crowds_of_campaigns, "draw_crowd", draw_and_keep)
    copy, crowd = await led(engine, await create_running_campaign(engine))
    await answered(engine, copy, crowd)
    async with engine.connect() as connection:
        record = await load_rehearsal_record_or_none(connection, await lifecycle_row(engine, copy.slug))
    assert record is not None
    assert record.true_values.tolist() == drawn[0].true_values.tolist()
    assert sum(annotator.is_careless for annotator in record.annotators) == 1
    assert record.hit_count == await fetch_value(engine, "SELECT count(*) FROM responses")
    assert record.is_complete


async def test_scores_of_careful_annotators_are_near_the_truth_of_the_record(engine):
    exact = RehearsalCrowd(annotators=4, population=population_with_random_bias_only(0.02), truth_column=None)
    copy, crowd = await led(engine, await create_running_campaign(engine, judgments_per_item=8), exact)
    await answered(engine, copy, crowd)
    async with engine.connect() as connection:
        campaign = await lifecycle_row(engine, copy.slug)
        record = await load_rehearsal_record_or_none(connection, campaign)
    assert record is not None
    assert (compute_rehearsal_figures(campaign, record).correlation or 0) > 0.9


async def test_a_rehearsal_that_has_ended_says_what_it_taught(engine, app, researcher):
    app.state.rehearsals.pause = 0
    campaign = await create_running_campaign(engine, pay_per_hit=0.5, currency="EUR")
    await led(engine, campaign)
    rehearsal = PAGE.format("verbs-rehearsal")
    assert "What you can learn from this rehearsal" not in (await researcher.get(rehearsal)).text
    await execute_sql(engine, "UPDATE crowds SET led_until = clock_timestamp() - interval '1 second'")
    await researcher.post(f"{rehearsal}/rehearse")
    await wait_until(engine, FINISHED)
    page = (await researcher.get(rehearsal)).text
    assert "What you can learn from this rehearsal" in page
    assert "4 annotators answered" in page
    assert f'<a href="{rehearsal}/checks">Quality</a>' in page
    assert '<a href="#scores">Scores</a>' in page
    assert "To change:</b> Not all careless annotators were noticed" in page
    assert "What you can learn from this rehearsal" not in (await researcher.get(PAGE.format(campaign.slug))).text
