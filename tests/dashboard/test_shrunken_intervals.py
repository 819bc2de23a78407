"""Campaigns that ask by scores show intervals that are right for items chosen by their scores, and say so."""

import re

import pytest

from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit

SELECTIVE = ({"rule": "best", "best_items": 2}, {"rule": "threshold"}, {"goal": "intervals", "when_reached": "release"})


async def answered(engine, **settings):
    campaign = await create_running_campaign(engine, items=10, **settings)
    for person in range(4):
        assignment = await create_annotator(engine, campaign, f"p{person}")
        hit = await try_to_lease_hit(engine, assignment)
        await submit_scores(engine, assignment, hit, scores=[9.0 * item + 4 * person for item in hit.items])
    return f"/admin/campaigns/{campaign.slug}"


def words(html):
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


@pytest.mark.parametrize("settings", SELECTIVE)
async def test_the_table_and_its_figure_name_the_shrunken_interval(engine, researcher, settings):
    address = await answered(engine, **settings)
    page = words((await researcher.get(f"{address}?columns=interval&columns=mean&columns=shrunken")).text)
    assert "report the thick ones (shrunken), not the thin ones (of the score alone)" in page
    assert "Shrunken interval Mean Shrunken score" in page
    assert "This campaign asks more about some items because of their scores" in page
    assert "thick: shrunken 95 % interval" in (await researcher.get(f"{address}/figures/scores.svg")).text


async def test_the_panel_of_an_item_has_both_and_says_which_is_which(engine, researcher):
    address = await answered(engine, rule="best", best_items=2)
    named = [
        page
        for number in range(10)
        if "mean so far" in (page := words((await researcher.get(f"{address}?item=v{number}")).text))
    ]
    assert named
    for page in named:
        assert re.search(r"Shrunken score: \S+ points, 95 % interval \S+ to \S+\.", page)
        assert "Plain mean so far" in page


@pytest.mark.parametrize("rule", ["easl", "scores"])
async def test_other_campaigns_show_the_calibrated_interval_of_the_plain_mean(engine, researcher, rule):
    address = await answered(engine, rule=rule)
    page = words((await researcher.get(f"{address}?columns=interval&columns=shrunken")).text)
    assert "report the thick ones (calibrated), not the thin ones (of the score alone)" in page
    assert "hrunken" not in page
    assert "thick: calibrated 95 % interval" in (await researcher.get(f"{address}/figures/scores.svg")).text
