from datetime import timedelta

import numpy as np
import pytest

from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns import lifecycle
from app.dashboard.incremental import IncrementalReplays
from app.dashboard.snapshot import shorten_to_one_line_name
from app.dashboard.state import (
    interval_coverage_sentence_or_empty,
    load_dashboard_state,
    lowest_and_highest_drawn_score,
)
from app.inference.online.laws import ONLINE_LAWS
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import import_results


async def state_of(engine, campaign, *, now=NOW):
    async with engine.connect() as connection:
        row = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        return await load_dashboard_state(connection, PosteriorCache(), IncrementalReplays(), row.criteria[0], now=now)


async def test_before_the_first_answer_everything_stands_at_its_prior(engine):
    figures = (await state_of(engine, await create_running_campaign(engine))).figures
    assert figures["answered"] is False
    assert figures["cards"]["progress"]["value"] == "0 of 36"
    assert (figures["cards"]["progress"]["notes"], figures["cards"]["progress"]["done_at"]) == ((), None)
    assert figures["histogram"]["counts"] == [0] * 10 + [12] + [0] * 9
    goal = figures["cards"]["goal"]
    assert (goal["title"], goal["value"], goal["notes"], goal["is_goal"]) == ("Items judged", "0 of 12", (), False)
    assert figures["cards"]["money"] is None


@pytest.mark.parametrize(("seconds", "words"), [(2, "2 s a task"), (59.7, "1:00 min a task"), (65, "1:05 min a task")])
async def test_the_time_of_a_task_names_its_unit(engine, *, seconds, words):
    campaign = await create_running_campaign(engine)
    person = await create_annotator(engine, campaign, "me")
    await submit_scores(engine, person, await try_to_lease_hit(engine, person))
    issued = "UPDATE hits SET issued_at = r.received_at - make_interval(secs => :seconds) FROM responses r"
    await execute_sql(engine, issued, seconds=seconds)
    assert words in (await state_of(engine, campaign)).figures["cards"]["progress"]["notes"]


async def test_after_one_answer_the_intervals_of_the_table_are_told_from_the_typical_one(engine):
    campaign = await create_running_campaign(engine)
    person = await create_annotator(engine, campaign, "me")
    await submit_scores(engine, person, await try_to_lease_hit(engine, person))
    assert (await state_of(engine, campaign)).figures["cards"]["goal"]["notes"] == (
        (
            "The table shows the intervals of the scores. A typical interval is known once several annotators have "
            "judged the same items."
        ),
    )


async def test_imported_answers_have_no_pace_and_are_not_said_to_be_none(engine):
    campaign = await create_running_campaign(engine)
    await import_results(engine, campaign, "Input.id1,Answer.range1,Input.id2,Answer.range2\nv0,1,v1,2\n")
    figures = (await state_of(engine, campaign)).figures
    assert figures["cards"]["progress"]["notes"] == ("1 task",)
    assert figures["words"]["pace_note"] == "Imported answers have no pace. Bars appear with the first answer."


async def test_the_typical_interval_is_known_once_annotators_have_judged_the_same_items(engine):
    campaign = await create_running_campaign(engine, items=5)
    people = [await create_annotator(engine, campaign, name) for name in ("me", "you", "they")]
    words = []
    for scores, person in zip(([40.0] * 5, [60.0] * 5, [50.0] * 5), people, strict=True):
        await submit_scores(engine, person, await try_to_lease_hit(engine, person), scores=scores)
        words.append((await state_of(engine, campaign)).figures["cards"]["goal"]["value"])
    # Each item's variance is .01 of the scale: errors .1 / sqrt(3), and t of 10 degrees of freedom is 2.228.
    assert (words[0], words[2]) == ("5 of 5", "± 12.9 points")
    # Beta(2.5, 2.5) goes from 12.1 to 87.9, which is 2.9 times as much.
    after = await state_of(engine, campaign)
    told = "The thin lines (posterior intervals) are 2.9 times as wide, and about 100 % of them contain that mean."
    assert after.figures["words"]["held"] == told


async def test_how_far_off_its_intervals_are_is_said_of_a_law_that_reads_the_order_of_scores_too(engine):
    campaign = await create_running_campaign(engine, items=5, update_law="trueskill")
    for name, scores in (("me", [40.0] * 5), ("you", [60.0] * 5), ("they", [50.0] * 5)):
        person = await create_annotator(engine, campaign, name)
        await submit_scores(engine, person, await try_to_lease_hit(engine, person), scores=scores)
    assert (
        (await state_of(engine, campaign))
        .figures["words"]["held"]
        .startswith("The thin lines (posterior intervals) are")
    )


async def test_answers_move_counts_scores_and_the_heatmap(engine):
    campaign = await create_running_campaign(engine)
    before = await state_of(engine, campaign)
    me, you = await create_annotator(engine, campaign, "me"), await create_annotator(engine, campaign, "you")
    for person in (me, you, me):
        await submit_scores(
            engine, person, await try_to_lease_hit(engine, person), scores=[0.0, 25.0, 50.0, 75.0, 100.0]
        )
    await try_to_lease_hit(engine, you)
    after = await state_of(engine, campaign, now=NOW + timedelta(minutes=9))
    progress, people = after.figures["cards"]["progress"], after.figures["cards"]["people"]
    assert (progress["value"], progress["share"]) == ("15 of 36", 15 / 36)
    assert (people["value"], people["notes"]) == ("2", ("1 task open now",))
    # Two in the nine minutes after the first.
    assert progress["notes"] == ("3 tasks", "13 tasks an hour")
    # 21 judgments are 4.2 HITs: 9 min and 18.9 min, to the minute.
    assert progress["done_at"] == (NOW + timedelta(minutes=27)).timestamp()
    assert after.figures["pace"] == {"start": NOW.timestamp(), "minutes": 1, "bars": [180] + [0] * 8}
    assert sum(after.figures["histogram"]["counts"]) == 12
    assert after.figures["heatmap"]["cells"] != before.figures["heatmap"]["cells"]
    assert after.version != before.version


async def test_while_nobody_answers_there_is_no_pace_beside_the_silence(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    for _ in range(3):
        await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    progress = (await state_of(engine, campaign, now=NOW + timedelta(minutes=26))).figures["cards"]["progress"]
    assert (progress["notes"], progress["done_at"]) == (("3 tasks", "no answer for 26 min"), None)


async def test_what_cannot_be_told_yet_is_left_out(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    progress = (await state_of(engine, campaign)).figures["cards"]["progress"]
    assert (progress["notes"], progress["done_at"]) == (("1 task",), None)


async def test_a_finished_campaign_says_nothing_of_open_hits(engine):
    campaign = await create_running_campaign(engine)
    for name in ("me", "you"):
        await try_to_lease_hit(engine, await create_annotator(engine, campaign, name))
    assert (await state_of(engine, campaign)).figures["cards"]["people"]["notes"] == ("2 tasks open now",)
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "finish", now=NOW)
    assert (await state_of(engine, campaign)).figures["cards"]["people"]["notes"] == ()


async def test_simulated_answers_are_marked_beside_those_of_people(engine):
    campaign = await create_running_campaign(engine)
    for person in (
        await create_annotator(engine, campaign),
        await create_annotator(engine, campaign, platform="simulation"),
    ):
        assert (await state_of(engine, campaign)).figures["words"]["simulated"] == ""
        await submit_scores(engine, person, await try_to_lease_hit(engine, person))
    words = (await state_of(engine, campaign)).figures["words"]
    assert words["simulated"] == "easel simulate answered 1 of 2 tasks. These answers are not from people."


async def test_the_same_facts_make_the_same_version(engine):
    campaign = await create_running_campaign(engine)
    first, second = await state_of(engine, campaign), await state_of(engine, campaign)
    assert first.version == second.version


async def test_a_finished_campaign_shows_the_hours_before_its_end_and_no_rate(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(
            connection, campaign.slug, "finish", now=NOW + timedelta(minutes=2)
        )
    figures = (await state_of(engine, campaign, now=NOW + timedelta(days=90))).figures
    assert figures["pace"]["bars"] == [60, 0]
    assert figures["cards"]["progress"]["notes"] == ("1 task",)


async def test_many_items_are_drawn_in_groups_without_their_names(engine):
    figures = (await state_of(engine, await create_running_campaign(engine, items=201))).figures
    assert figures["heatmap"]["grouped"] is True
    assert figures["heatmap"]["labels"][-1] == "items 200 to 201"


def test_how_far_off_the_posterior_intervals_are_is_said():
    assert (
        interval_coverage_sentence_or_empty(0.62, 0.43)
        == "The thin lines (posterior intervals) are 0.4 times as wide, and about 62 % of them contain that mean."
    )
    assert (
        interval_coverage_sentence_or_empty(0.95, 1.04)
        == "The thin lines (posterior intervals) are about as wide, and about 95 % of them contain that mean."
    )
    assert interval_coverage_sentence_or_empty(np.nan, np.nan) == ""


def test_names_are_one_short_line():
    assert shorten_to_one_line_name("a\n b") == "a b"
    assert shorten_to_one_line_name("x" * 61) == "x" * 59 + "…"


def test_bounded_scales_are_whole_and_unbounded_ones_reach_to_the_intervals():
    score, variance = np.array([-0.2, 0.5]), np.array([0.01, 0.01])
    assert lowest_and_highest_drawn_score(ONLINE_LAWS["ra"].family, score, variance) == (0.0, 1.0)
    assert lowest_and_highest_drawn_score(ONLINE_LAWS["trueskill"].family, score, variance) == (-0.4, 1.0)
