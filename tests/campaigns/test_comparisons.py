"""Campaigns about systems ask for comparisons per segment and pair, and warn if there is less than one."""

from types import SimpleNamespace
from typing import Any

import pytest

from app.campaigns.comparisons import ComparisonUnit
from tests.annotation.hits.campaigns import fetch_value
from tests.campaigns.drafts import create_draft, import_file

SYSTEMS = "system,segment,output\n" + "".join(
    f"{system},s{prompt},{system} says {prompt}\n" for system in "ABC" for prompt in range(6)
)


async def create_draft_of_systems(engine, **settings):
    campaign = await create_draft(engine, design="pairwise", **settings)
    await import_file(engine, campaign, SYSTEMS)
    return campaign


def unit(design_items, *, prompts=6, always_shown=()):
    campaign: Any = SimpleNamespace(
        segment_count=prompts, items_per_hit=design_items, design=SimpleNamespace(always_shown=always_shown)
    )
    return ComparisonUnit.comparison_unit_or_none(campaign, 3)


@pytest.mark.parametrize(
    ("items_per_hit", "always_shown", "title", "one"),
    [
        (2, (), "Comparisons per segment and pair", 12),  # 18 pairs on prompts, of which each of 18 HITs has one
        (3, (), "Comparisons per segment and pair", 6),
        (1, (), "Judgments per output, on average", 6),
        (2, ("gold",), "Comparisons per segment and system", 6),
    ],
)
def test_a_unit_counts_comparisons(items_per_hit, always_shown, title, one):
    counted = unit(items_per_hit, always_shown=always_shown)
    assert (counted.title, counted.judgments_per_system_for_comparisons(1)) == (title, one)
    assert counted.count(one) == pytest.approx(1)
    assert counted.warning(one) == ""
    assert f"It takes {one} judgments per system." in counted.warning(one - 1)


def test_items_that_are_no_systems_have_no_comparisons():
    assert unit(2, prompts=0) is None


async def test_the_form_asks_for_comparisons_and_stores_judgments(researcher, engine):
    campaign = await create_draft_of_systems(engine, judgments_per_item=10)
    page = f"/admin/campaigns/{campaign.slug}/settings/how-much"
    form = (await researcher.get(page)).text
    assert 'name="judgments_per_item"' not in form
    assert 'name="comparisons"' in form
    assert "Comparisons per segment and pair: 0.83, which is less than one" in form
    assert "Now 10 judgments for each of 3 systems on 6 segments." in form
    stored = "SELECT judgments_per_item FROM campaigns"
    for entered, expected in (("0.83", 10), ("2", 24), ("2.5", 30)):
        assert (await researcher.post(page, data={"comparisons": entered})).status_code == 303
        assert await fetch_value(engine, stored) == expected
    for wrong, words in (("many", "Enter a number."), ("0", "above 0"), ("1e9", "833.33 at most")):
        refused = await researcher.post(page, data={"comparisons": wrong, "hits_per_annotator": "7"})
        assert refused.status_code == 422
        assert words in refused.text.partition('id="comparisons-error">')[2][:60]
        assert 'href="#comparisons">Comparisons per segment and pair</a>' in refused.text
        assert f'value="{wrong}"' in refused.text
        assert 'value="7"' in refused.text
    assert await fetch_value(engine, stored) == 30


async def test_the_launch_warns_of_pairs_that_are_never_compared_and_offers_one_comparison(researcher, engine):
    campaign = await create_draft_of_systems(engine, judgments_per_item=10)
    page = f"/admin/campaigns/{campaign.slug}"
    assert "Set to 12 judgments per system" in (await researcher.get(f"{page}/launch/confirm")).text
    await researcher.post(f"{page}/judgments-per-item", data={"judgments_per_item": "12"})
    assert "per system</button>" not in (await researcher.get(f"{page}/launch/confirm")).text
