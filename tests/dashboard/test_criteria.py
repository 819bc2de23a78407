"""A campaign's page by each of its criteria."""

import asyncio
import json
import re
from contextlib import aclosing

import numpy as np
import pytest

from app.analysis.fit_cache import FitCache
from app.annotation.hits.campaign_index import PosteriorCache
from app.dashboard import campaign_list, incremental
from app.dashboard.incremental import HaloReplay, HistoryReplay, IncrementalReplays, PrecisionReplay
from app.dashboard.item import load_item_page_or_refuse
from app.dashboard.live import LiveDashboards
from app.dashboard.state import load_dashboard_state
from app.database.bulk import open_snapshot
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import NOW, create_annotator, fetch_rows, find_or_lease_next_hit
from tests.annotation.hits.criteria import answer_all_hits, create_campaign_with_criteria, submit_by_criterion
from tests.laws import SCORE_LAWS


async def views_of(engine, campaign):
    async with engine.connect() as connection:
        return (await load_campaign_by_slug_or_refuse(connection, campaign.slug)).criteria


async def state_of(engine, view, followers=None):
    async with engine.connect() as connection:
        return await load_dashboard_state(
            connection, PosteriorCache(), followers or IncrementalReplays(), view, now=NOW
        )


async def stored(engine, column, criterion):
    statement = f"SELECT {column} FROM current_posteriors WHERE criterion = :criterion ORDER BY number"
    return [value for (value,) in await fetch_rows(engine, statement, criterion=criterion)]


async def alike(engine, campaign, people=6):
    """Let all people answer two HITs, each with the same values for all criteria."""
    rng, cache = np.random.default_rng(3), PosteriorCache()
    them = [await create_annotator(engine, campaign, f"ann {k}") for k in range(people)]
    for me in them * 2:
        hit = (await find_or_lease_next_hit(engine, me, cache=cache)).hit
        assert hit is not None
        said = [float(score) for score in rng.integers(0, 101, len(hit.items))]
        await submit_by_criterion(engine, me, hit, {one.name: said for one in campaign.criteria})


async def test_figures_are_those_of_the_criterion(engine):
    campaign = await create_campaign_with_criteria(engine, 3)
    await answer_all_hits(engine, campaign)
    for number, view in enumerate(await views_of(engine, campaign)):
        state = await state_of(engine, view)
        scores = await stored(engine, "score", number)
        assert state.heatmap is not None
        assert state.heatmap.score.tolist() == sorted(scores)
        counts, _ = np.histogram(scores, bins=20, range=(0, 1))
        assert state.figures["histogram"]["counts"] == counts.tolist()
        assert state.history.state.T.tolist() == await stored(engine, "state", number)
        assert state.figures["cards"]["progress"]["value"] == "60 of 600"


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_a_course_leads_to_the_stored_posteriors_by_each_criterion(engine, law, monkeypatch):
    monkeypatch.setattr(incremental, "RESPONSES_PER_REPLAY_BATCH", 3)
    campaign = await create_campaign_with_criteria(engine, 2, update_law=law)
    courses = HistoryReplay()
    for _ in range(2):
        await answer_all_hits(engine, campaign)
        for number, view in enumerate(await views_of(engine, campaign)):
            async with engine.connect() as connection:
                course = (
                    await courses.replay_new_answers_and_return_position(connection, view, clock=lambda: 0.0)
                ).state
            assert course.state.T.tolist() == await stored(engine, "state", number)


async def test_intervals_are_those_of_the_criterion_and_the_list_has_the_widest(engine):
    campaign = await create_campaign_with_criteria(engine, 2)
    await answer_all_hits(engine, campaign, people=5)
    precisions, views = PrecisionReplay(), await views_of(engine, campaign)
    async with engine.connect() as connection:
        typical = [half_width or 0.0 for half_width in await precisions.load_typical_half_widths(connection, views)]
        going = await campaign_list.load_campaign_pace_by_id(
            connection, precisions, [await load_campaign_by_slug_or_refuse(connection, campaign.slug)], now=NOW
        )
    assert typical[0] != typical[1]
    assert going[campaign.id].interval == f"± {max(typical):.1f} points"


async def test_halo_is_followed_in_any_pieces_to_what_the_analysis_says(engine, monkeypatch):
    monkeypatch.setattr(incremental, "RESPONSES_PER_REPLAY_BATCH", 5)
    campaign = await create_campaign_with_criteria(engine, 3)
    halos, views = HaloReplay(), await views_of(engine, campaign)
    await answer_all_hits(engine, campaign)
    async with engine.connect() as connection:
        await halos.replay_new_answers_and_return_position(connection, views[0], clock=lambda: 0.0)
    await answer_all_hits(engine, campaign)
    async with engine.connect() as connection:
        past = (await halos.replay_new_answers_and_return_position(connection, views[0], clock=lambda: 0.0)).state
    table = await FitCache().load_cached_or_fit_table(engine, campaign.slug, "halo")
    within, of_means = past.sums.halo_matrix, past.sums.mean_correlation_matrix
    for row, (k, m) in zip(table.rows, ((0, 1), (0, 2), (1, 2)), strict=True):
        assert (within[k, m], past.sums.shared_judgment_count, of_means[k, m]) == pytest.approx(
            (row[2], row[5], row[6])
        )


async def test_criteria_judged_as_one_are_warned_of_by_whichever_the_page_is_read(engine):
    campaign = await create_campaign_with_criteria(engine, 2)
    view, _ = await views_of(engine, campaign)
    before = (await state_of(engine, view)).figures["words"]
    assert (before["halo"], before["halo_warning"]) == ("", "")
    await alike(engine, campaign)
    told = [(await state_of(engine, one)).figures["words"] for one in await views_of(engine, campaign)]
    assert told[0]["halo_warning"].startswith("Halo: “adequacy” and “fluency” are hardly judged separately.")
    assert told[0]["halo"] == "“adequacy” and “fluency”: item means correlate 1.00, judgments within items 1.00."
    assert [words["halo_warning"] for words in told] == [told[0]["halo_warning"]] * 2


async def test_of_more_than_two_criteria_the_page_tells_the_two_that_move_together_most(engine):
    campaign = await create_campaign_with_criteria(engine, 3)
    await answer_all_hits(engine, campaign)
    words = (await state_of(engine, (await views_of(engine, campaign))[2])).figures["words"]
    assert words["halo"].endswith("; no other pair correlates more.")
    assert words["halo_warning"] == ""


async def test_an_item_is_shown_by_all_criteria_with_who_said_what_by_each(engine):
    campaign = await create_campaign_with_criteria(engine, 2)
    await answer_all_hits(engine, campaign)
    _, view = await views_of(engine, campaign)
    state = await state_of(engine, view)
    async with open_snapshot(engine) as connection:
        page = await load_item_page_or_refuse(connection, view, "v3", state.history, state.intervals)
    scores = [100 * (await stored(engine, "score", number))[3] for number in (0, 1)]
    assert {name: curve.score for name, curve in page.criteria.items()} == pytest.approx(
        {"adequacy": scores[0], "fluency": scores[1]}
    )
    assert page.now.score == pytest.approx(scores[1])
    said = await fetch_rows(engine, "SELECT items, values FROM responses ORDER BY seq DESC")
    given = [(said[items.index(3)], said[len(items) + items.index(3)]) for items, said in said if 3 in items]
    assert [tuple(answer.by_criterion) for answer in page.answers] == [
        (f"{one:g}", f"{other:g}") for one, other in given
    ]
    assert [answer.value for answer in page.answers] == [other for _, other in given]


async def test_whoever_watches_a_criterion_gets_its_figures_and_one_computation_serves_all_who_do(engine):
    async def clock():
        return NOW

    campaign = await create_campaign_with_criteria(engine, 2)
    await answer_all_hits(engine, campaign)
    hub = LiveDashboards(engine, PosteriorCache(), clock)
    async with (
        aclosing(hub.stream_states(campaign.slug, 0)) as first,
        aclosing(hub.stream_states(campaign.slug, 1)) as second,
    ):
        told = [await newest(states) for states in (first, second)]
        assert {*hub.broadcasts} == {(campaign.slug, 0), (campaign.slug, 1)}
        shown = [await hub.load_shared_or_new_state(view, now=NOW) for view in await views_of(engine, campaign)]
        assert [one.version for one in shown] == [one.version for one in told]
        assert told[0].figures["histogram"] != told[1].figures["histogram"]
    await hub.stop()


async def newest(states):
    async with asyncio.timeout(60):
        while (state := await anext(states)) is None:
            pass
        return state


@pytest.mark.usefixtures("app")
async def test_the_page_follows_the_criterion_of_its_address(engine, researcher):
    campaign = await create_campaign_with_criteria(engine, 2)
    await answer_all_hits(engine, campaign)
    address = f"/admin/campaigns/{campaign.slug}"
    html = (await researcher.get(f"{address}?criterion=fluency&item=v3&sort=variance")).text
    assert f'data-events="{address}/events?criterion=fluency"' in html
    assert f'<a href="{address}?sort=variance&amp;item=v3">adequacy</a>' in html
    assert f'<a href="{address}/analysis?criterion=fluency" data-campaign-tab="analysis">Analysis</a>' in html
    assert f"{address}/match-quality?criterion=fluency" in html
    assert '<th scope="col" class="figure">adequacy</th><th scope="col" class="figure">fluency</th>' in html
    figures = json.loads(re.search(r'id="state">(.*?)</script>', html)[1])  # type: ignore[index]
    fluency = (await researcher.get(f"{address}/match-quality.csv?criterion=fluency")).text
    assert fluency.splitlines()[0].split(",")[1:] == figures["heatmap"]["labels"]
    assert fluency != (await researcher.get(f"{address}/match-quality.csv")).text
    for part in ("", "/events", "/match-quality", "/figures/scores.svg", "/figures/pace.svg"):
        refused = await researcher.get(f"{address}{part}?criterion=style")
        assert refused.status_code == 404
