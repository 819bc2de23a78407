"""Pages about campaigns of systems call them systems."""

import re

import pytest

from tests.annotation.hits.systems import answer_hits_of_systems, create_campaign_of_systems, outputs_table
from tests.campaigns.drafts import create_draft, import_items

ITEM = re.compile(r"\bitems?\b", re.IGNORECASE)


def sentences(html):
    """Return the sentences of a page, without tabs, menus and other short labels."""
    part = html.partition('<section class="part"')[2].partition("</main>")[0]
    return [line for line in re.sub(r"<[^>]+>", "\n", part).splitlines() if len(line.split()) > 2]


@pytest.mark.parametrize("part", ["findings", "scores", "systems"])
async def test_parts_of_the_analysis_speak_of_systems(engine, researcher, part):
    campaign = await create_campaign_of_systems(engine)
    await answer_hits_of_systems(engine, campaign, by=4, each=4)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/analysis/{part}")).text
    assert sentences(page)
    assert [line for line in sentences(page) if ITEM.search(line)] == []


async def test_the_launch_page_speaks_of_outputs_and_segments(engine, researcher):
    campaign = await create_draft(engine, items_per_hit=2, judgments_per_item=4)
    await import_items(engine, campaign, outputs_table())
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/launch/confirm")).text
    fixed = page.partition('<dl class="fixed">')[2].partition("<details>")[0]
    assert "The uploaded outputs" in fixed
    assert "whether segments are shown again" in fixed
    assert not ITEM.search(fixed)
