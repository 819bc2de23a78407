"""Ordinary pages explain terms of the method, or do without them."""

import re
from html import unescape

import pytest

from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit

pytestmark = pytest.mark.usefixtures("app")

# The assumptions of methods name their terms. Elsewhere a term stands in brackets after its explanation, or before it.
UNEXPLAINED = re.compile(
    r"(?<!\()(?<!\(its )(?<!\(of the )\b(leases?|posteriors?|priors?|gamma|epsilon|streaming)\b(?!, (what|the score) )",
    re.IGNORECASE,
)


def visible_words(page):
    main = re.search(r"<main.*</main>", page, re.DOTALL)
    omitted = r'<(script|svg|details|dl class="assumes")[ >].*?</(script|svg|details|dl)>'
    without_scripts = re.sub(omitted, " ", main[0] if main else page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", without_scripts)))


@pytest.mark.parametrize(
    "part", ["", "?item=v0", "?item=v9", "/finish/confirm", "/export", "/items", "/analysis/scores"]
)
async def test_ordinary_pages_use_no_unexplained_terms(engine, researcher, part):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=6)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}{part}")).text
    words = visible_words(page)
    assert [words[max(0, found.start() - 60) : found.end()] for found in UNEXPLAINED.finditer(words)] == []
