"""Items that are images are shown as thumbnails wherever researchers read a list of items."""

import re

import pytest

from tests.annotation.hits.campaigns import create_annotator, submit_scores, try_to_lease_hit
from tests.media.files import png, wav, with_files

pytestmark = pytest.mark.usefixtures("app")

FETCH = {"X-Easel": "fetch"}
THUMBNAIL = re.compile(r'<span class="thumbnail">.*?<img[^>]* src="([^"]+)"', re.DOTALL)


async def create_answered_campaign(engine, files, **settings):
    """Create a campaign whose items are these files, with answers of four annotators."""
    campaign = await with_files(engine, files, items_per_hit=len(files), judgments_per_item=4, **settings)
    for k in range(4):
        me = await create_annotator(engine, campaign, name=f"person {k}")
        hit = await try_to_lease_hit(engine, me)
        await submit_scores(engine, me, hit, scores=[20.0 * item + 7 * k for item in hit.items])
    return campaign


IMAGES = {f"photo{k}.png": png(grey=40 * k) for k in range(1, 5)}


@pytest.mark.parametrize("part", ["", "/analysis/scores", "/analysis/labels"])
async def test_the_overview_and_the_analysis_show_images_where_they_list_items(engine, researcher, part):
    campaign = await create_answered_campaign(engine, IMAGES, content="image")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}{part}", headers=FETCH if part else {})).text
    links = set(THUMBNAIL.findall(page))
    assert len(links) == 4
    for link in links:
        assert (await researcher.get(link)).headers["content-type"] == "image/png"


async def test_recordings_are_listed_by_name_with_a_link_to_the_item(engine, researcher):
    campaign = await create_answered_campaign(
        engine, {f"take{k}.wav": wav(0.1 * k) for k in range(1, 5)}, content="audio"
    )
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/analysis/scores", headers=FETCH)).text
    assert "thumbnail" not in page
    assert re.search(r'<a href="/admin/campaigns/[^"]*item=[^"]*#item">take1.wav</a>', page)


async def test_the_analysis_loads_images_of_other_sites_only_if_the_campaign_does(engine, researcher):
    for allowed in (False, True):
        campaign = await create_answered_campaign(engine, IMAGES, content="image", https_media=allowed)
        page = await researcher.get(f"/admin/campaigns/{campaign.slug}/analysis")
        policy = page.headers["content-security-policy"]
        assert ("img-src 'self' data: https:;" in policy) is allowed
