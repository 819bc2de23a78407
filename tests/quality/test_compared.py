"""How annotators go with each other, and what is learned of them from that."""

import re
from typing import Any

import numpy as np
import pytest

from app.analysis.fit_cache import FitCache
from app.analysis.result_types import Options
from app.quality import peer_agreement
from app.quality.annotators import load_annotator_lines, load_bin_counts_of_first_criterion_by_annotator
from app.quality.peer_agreement import AnnotatorComparison, AnnotatorComparisons, sample_judgments_and_count_their_items
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit
from tests.annotation.hits.criteria import NAMES, create_campaign_with_criteria, submit_by_criterion
from tests.quality.deciding import decide


async def create_answered_campaign(engine, *, people=6, careless=(), **settings):
    """Create a campaign of 30 items on which all people but the careless ones agree."""
    campaign = await create_running_campaign(
        engine, **{"items": 30, "judgments_per_item": 50, "repeat_items": False} | settings
    )
    for k in range(people):
        visit = await create_annotator(engine, campaign, f"ann {k}")
        for _ in range(6):
            hit = await try_to_lease_hit(engine, visit)
            right = [3.0 * item + 3 * (k == 1) for item in hit.items]
            if settings.get("design") == "ranking":
                right = [1.0 + sum(other < item for other in hit.items) for item in hit.items]
            await submit_scores(engine, visit, hit, scores=[90 - score for score in right] if k in careless else right)
    return campaign


async def compare(engine, campaign) -> Any:
    async with engine.connect() as connection:
        return await peer_agreement.compare_annotators(connection, campaign)


@pytest.mark.parametrize("law", ["easl", "easl-aware"])
async def test_who_answers_otherwise_goes_against_the_others_and_is_less_reliable(engine, law):
    *careful, careless = (
        await compare(engine, await create_answered_campaign(engine, careless=[5], update_law=law))
    ).by_annotator.values()
    assert careless.peer_correlation.value < -0.8
    assert all(one.peer_correlation.low > 0.5 for one in careful)
    assert all(one.reliability > careless.reliability for one in careful)
    assert careful[1].bias > careful[2].bias


async def test_annotators_are_compared_by_the_first_criterion(engine):
    campaign = await create_campaign_with_criteria(engine, items=30, judgments_per_item=50, repeat_items=False)
    for person in range(3):
        visit = await create_annotator(engine, campaign, f"ann {person}")
        for _ in range(6):
            hit = await try_to_lease_hit(engine, visit)
            first = [3.0 * item for item in hit.items]
            second = [90 - score for score in first] if person == 2 else first
            await submit_by_criterion(engine, visit, hit, dict(zip(NAMES, (first, second), strict=False)))
    correlations = [one.peer_correlation.value for one in (await compare(engine, campaign)).by_annotator.values()]
    assert correlations == pytest.approx([1.0] * 3)


@pytest.mark.parametrize("people", [2, 6])
async def test_annotators_go_with_the_others_at_one_figure_on_their_page_and_in_the_analysis(
    engine, researcher, people
):
    campaign = await create_answered_campaign(engine, people=people, careless=[people - 1])
    found = await FitCache().load_cached_or_fit_table(engine, campaign.slug, "annotators", Options())
    place = [column.name for column in found.columns].index("correlation")
    in_analysis = {row[1]: row[place] for row in found.rows}
    on_page = {
        f"A{number}": one.peer_correlation.value
        for number, one in enumerate((await compare(engine, campaign)).by_annotator.values(), 1)
    }
    assert on_page == pytest.approx(in_analysis)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    figure = f"{on_page['A1']:.2f}".replace("-", "−")
    assert f'<td data-head="Agreement with others">{figure}' in html
    assert not re.search(r">\s*-\d|to -\d", html)


async def test_answers_that_do_not_count_are_compared_with_nobody(engine):
    campaign = await create_answered_campaign(engine, careless=[5])
    before = await compare(engine, campaign)
    out = max(before.by_annotator)
    await decide(engine, campaign, "exclude", out)
    after = await compare(engine, campaign)
    assert {*before.by_annotator} - {*after.by_annotator} == {out}


async def test_of_places_in_an_order_there_is_no_bias_and_no_histogram(engine):
    campaign = await create_answered_campaign(engine, design="ranking")
    found = (await compare(engine, campaign)).by_annotator.values()
    assert len(found) == 6
    assert all(one.reliability is None and one.bias is None for one in found)
    async with engine.connect() as connection:
        lines = await load_annotator_lines(connection, campaign, limit=1)
        number = lines[0].id
        assert await load_bin_counts_of_first_criterion_by_annotator(connection, campaign, [number]) == {}


async def test_of_many_answers_the_comparison_is_made_beside_the_server_and_kept(engine, monkeypatch):
    campaign = await create_answered_campaign(engine, careless=[5])
    monkeypatch.setattr(peer_agreement, "MAX_ANSWERS_COMPARED_INLINE", 1)
    comparisons = AnnotatorComparisons(engine)
    async with engine.connect() as connection:
        first = await comparisons.load_newest_comparison(connection, campaign)
        assert first.is_running
        assert first.comparison_of_annotator(1) == AnnotatorComparison()
        await comparisons.tasks.wait()
        second = await comparisons.load_newest_comparison(connection, campaign)
        assert not second.is_running
        assert second.is_any_reliability_known
        again = await comparisons.load_newest_comparison(connection, campaign)
        assert again.comparison is second.comparison
    visit = await create_annotator(engine, campaign, "one more")
    await submit_scores(engine, visit, await try_to_lease_hit(engine, visit))
    async with engine.connect() as connection:
        newer = await comparisons.load_newest_comparison(connection, campaign)
        assert newer.is_running
        assert newer.comparison is second.comparison  # what was compared is shown until then
    await comparisons.stop()


async def test_the_page_shows_the_figures_or_says_that_they_are_being_worked_out(engine, researcher, monkeypatch):
    campaign = await create_answered_campaign(engine)
    address = f"/admin/campaigns/{campaign.slug}/annotators"
    html = (await researcher.get(address)).text
    assert "Reliability" in html
    assert "being compared with each other" not in html
    monkeypatch.setattr(peer_agreement, "MAX_ANSWERS_COMPARED_INLINE", 1)
    visit = await create_annotator(engine, campaign, "one more")
    await submit_scores(engine, visit, await try_to_lease_hit(engine, visit))
    assert "the comparison is being updated" in (await researcher.get(address)).text


def test_of_very_many_judgments_those_of_whole_items_are_taken_and_the_same_each_time(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(peer_agreement, "MAX_COMPARED_JUDGMENTS", 100)
    found = {"item": rng.integers(0, 50, 1_000), "seq": np.arange(1_000)}
    some, items, of_items = sample_judgments_and_count_their_items(found, np.random.default_rng(1))
    assert len(some["item"]) <= 100
    assert (items, of_items) == (len(np.unique(some["item"])), 50)
    assert all((found["item"] == item).sum() == (some["item"] == item).sum() for item in np.unique(some["item"]))
    again, _, _ = sample_judgments_and_count_their_items(found, np.random.default_rng(1))
    np.testing.assert_array_equal(some["seq"], again["seq"])
    whole, items, of_items = sample_judgments_and_count_their_items({"item": np.arange(60)}, rng)
    assert (len(whole["item"]), items, of_items) == (60, 60, 60)
