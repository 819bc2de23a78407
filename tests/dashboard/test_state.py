from datetime import timedelta

import numpy as np

from app.annotation.hits.campaign_index import PosteriorCache
from app.campaigns import lifecycle
from app.dashboard.incremental import IncrementalReplays
from app.dashboard.snapshot import shorten_item_name
from app.dashboard.state import interval_coverage_text, load_dashboard_state, score_domain
from app.inference.online.laws import ONLINE_LAWS
from app.record.campaign import load_campaign_by_slug
from tests.annotation.hits.campaigns import NOW, create_annotator, create_running_campaign, lease_hit, submit_scores
from tests.campaigns.drafts import import_results


async def state_of(engine, campaign, *, now=NOW):
    async with engine.connect() as connection:
        row = await load_campaign_by_slug(connection, campaign.slug)
        return await load_dashboard_state(connection, PosteriorCache(), IncrementalReplays(), row.criteria[0], now=now)


async def test_before_the_first_answer_everything_stands_at_its_prior(engine):
    figures = (await state_of(engine, await create_running_campaign(engine))).figures
    assert figures["answered"] is False
    assert figures["words"]["judgments"] == "0 of 36"
    assert (figures["words"]["rate"], figures["words"]["left"], figures["done_at"]) == (
        "no pace yet",
        "no answer yet",
        None,
    )
    assert figures["histogram"]["counts"] == [0] * 10 + [12] + [0] * 9
    assert figures["words"]["precision"] == "not known yet"


async def test_imported_answers_have_no_pace_and_are_not_said_to_be_none(engine):
    campaign = await create_running_campaign(engine)
    await import_results(engine, campaign, "Input.id1,Answer.range1,Input.id2,Answer.range2\nv0,1,v1,2\n")
    words = (await state_of(engine, campaign)).figures["words"]
    assert (words["rate"], words["left"]) == ("no pace yet", "no answer on Easel yet")
    assert words["pace_note"] == "Imported answers have no pace. Bars appear with the first answer."


async def test_the_typical_interval_is_known_once_annotators_have_judged_the_same_items(engine):
    campaign = await create_running_campaign(engine, items=5)
    people = [await create_annotator(engine, campaign, name) for name in ("me", "you", "they")]
    words = []
    for scores, person in zip(([40.0] * 5, [60.0] * 5, [50.0] * 5), people, strict=True):
        await submit_scores(engine, person, await lease_hit(engine, person), scores=scores)
        words.append((await state_of(engine, campaign)).figures["words"]["precision"])
    # Each item's variance is .01 of the scale: errors .1 / sqrt(3), and t of 10 degrees of freedom is 2.228.
    assert (words[0], words[2]) == ("not known yet", "± 12.9 points")
    # Beta(2.5, 2.5) goes from 12.1 to 87.9, which is 2.9 times as much.
    after = await state_of(engine, campaign)
    told = "The posterior intervals are 2.9 times as wide, and about 100 % of them contain that mean."
    assert after.figures["words"]["held"] == told


async def test_how_far_off_its_intervals_are_is_said_of_a_law_that_reads_the_order_of_scores_too(engine):
    campaign = await create_running_campaign(engine, items=5, update_law="trueskill")
    for name, scores in (("me", [40.0] * 5), ("you", [60.0] * 5), ("they", [50.0] * 5)):
        person = await create_annotator(engine, campaign, name)
        await submit_scores(engine, person, await lease_hit(engine, person), scores=scores)
    assert (await state_of(engine, campaign)).figures["words"]["held"].startswith("The posterior intervals are")


async def test_answers_move_counts_scores_and_the_heatmap(engine):
    campaign = await create_running_campaign(engine)
    before = await state_of(engine, campaign)
    me, you = await create_annotator(engine, campaign, "me"), await create_annotator(engine, campaign, "you")
    for person in (me, you, me):
        await submit_scores(engine, person, await lease_hit(engine, person), scores=[0.0, 25.0, 50.0, 75.0, 100.0])
    await lease_hit(engine, you)
    after = await state_of(engine, campaign, now=NOW + timedelta(minutes=9))
    words = after.figures["words"]
    assert words["judgments"] == "15 of 36"
    assert words["hits"] == "3 HITs"
    assert words["annotators"] == "2 annotators"
    assert words["open"] == "1 HIT open now"
    assert words["rate"] == "13 HITs/h"  # two in the nine minutes after the first
    assert words["left"] == "about 19 min left"  # 21 judgments are 4.2 HITs
    assert after.figures["done_at"] == (NOW + timedelta(minutes=27)).timestamp()  # 9 min and 18.9 min, to the minute
    assert after.figures["done"] == 15
    assert after.figures["pace"] == {"start": NOW.timestamp(), "minutes": 1, "bars": [180] + [0] * 8}
    assert sum(after.figures["histogram"]["counts"]) == 12
    assert after.figures["heatmap"]["cells"] != before.figures["heatmap"]["cells"]
    assert after.version != before.version


async def test_while_nobody_answers_the_pace_is_said_to_be_of_before_and_not_of_now(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    for _ in range(3):
        await submit_scores(engine, me, await lease_hit(engine, me))
    words = (await state_of(engine, campaign, now=NOW + timedelta(minutes=26))).figures["words"]
    assert words["left"] == "no answer for 26 min"
    assert words["rate"] == "5 HITs/h before that"
    words = (await state_of(engine, campaign, now=NOW + timedelta(hours=3))).figures["words"]
    assert (words["left"], words["rate"]) == ("no answer for 3 h", "")


async def test_before_there_is_enough_to_tell_the_time_left_the_page_says_so(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await lease_hit(engine, me))
    assert (await state_of(engine, campaign)).figures["words"]["left"] == "no estimate yet"


async def test_a_finished_campaign_says_nothing_of_open_hits(engine):
    campaign = await create_running_campaign(engine)
    for name in ("me", "you"):
        await lease_hit(engine, await create_annotator(engine, campaign, name))
    assert (await state_of(engine, campaign)).figures["words"]["open"] == "2 HITs open now"
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status(connection, campaign.slug, "finish", now=NOW)
    assert (await state_of(engine, campaign)).figures["words"]["open"] == "took part"


async def test_simulated_answers_are_marked_beside_those_of_people(engine):
    campaign = await create_running_campaign(engine)
    for person in (
        await create_annotator(engine, campaign),
        await create_annotator(engine, campaign, platform="simulation"),
    ):
        assert (await state_of(engine, campaign)).figures["words"]["simulated"] == ""
        await submit_scores(engine, person, await lease_hit(engine, person))
    words = (await state_of(engine, campaign)).figures["words"]
    assert words["simulated"] == "easel simulate answered 1 of 2 HITs. These answers are not from people."


async def test_the_same_facts_make_the_same_version(engine):
    campaign = await create_running_campaign(engine)
    first, second = await state_of(engine, campaign), await state_of(engine, campaign)
    assert first.version == second.version


async def test_a_finished_campaign_shows_the_hours_before_its_end_and_no_rate(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await lease_hit(engine, me))
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status(connection, campaign.slug, "finish", now=NOW + timedelta(minutes=2))
    figures = (await state_of(engine, campaign, now=NOW + timedelta(days=90))).figures
    assert figures["pace"]["bars"] == [60, 0]
    assert figures["words"]["rate"] == ""


async def test_many_items_are_drawn_in_groups_without_their_names(engine):
    figures = (await state_of(engine, await create_running_campaign(engine, items=201))).figures
    assert figures["heatmap"]["grouped"] is True
    assert figures["heatmap"]["labels"][-1] == "items 200 to 201"


def test_how_far_off_the_posterior_intervals_are_is_said():
    assert (
        interval_coverage_text(0.62, 0.43)
        == "The posterior intervals are 0.4 times as wide, and about 62 % of them contain that mean."
    )
    assert (
        interval_coverage_text(0.95, 1.04)
        == "The posterior intervals are about as wide, and about 95 % of them contain that mean."
    )
    assert interval_coverage_text(np.nan, np.nan) == ""


def test_names_are_one_short_line():
    assert shorten_item_name("a\n b") == "a b"
    assert shorten_item_name("x" * 61) == "x" * 59 + "…"


def test_bounded_scales_are_whole_and_unbounded_ones_reach_to_the_intervals():
    score, variance = np.array([-0.2, 0.5]), np.array([0.01, 0.01])
    assert score_domain(ONLINE_LAWS["ra"].family, score, variance) == (0.0, 1.0)
    assert score_domain(ONLINE_LAWS["trueskill"].family, score, variance) == (-0.4, 1.0)
