"""A platform that is declared in `tests.annotation.platforms.toy` alone, and registered: nothing else knows of it."""

import os

import httpx
import pytest

from app.annotation.platforms.registry import PLATFORMS
from tests.annotation.hits.campaigns import create_running_campaign, fetch_rows, form_fields
from tests.annotation.platforms.toy import TOY
from tests.servers import serving

pytestmark = pytest.mark.slow


async def test_its_visitors_arrive_answer_and_return(engine, database_url, tmp_path):
    campaign = await create_running_campaign(engine)
    address = TOY.entry_path(campaign.link_key)
    environment = os.environ | {"DATABASE_URL": database_url}
    with serving(environment, tmp_path / "said", "tests.annotation.platforms.toy:create_app") as (_, base):
        async with httpx.AsyncClient(base_url=base, headers={"accept": "text/html"}) as visitor:
            lost = await visitor.get(address)
            assert (lost.status_code, "Please go back to the toy shop." in lost.text) == (422, True)
            arrived = await visitor.get(address, params={"player": "ann", "round": "1"})
            answered = await visitor.post(address, data=form_fields(arrived.text))
            assert '<a class="button primary" href="https://toys.example/bear-of-ann">' in answered.text
            assert "Back to the toys" in answered.text
            again = await visitor.get(address, params={"player": "ann", "round": "1"})
            assert 'data-reason="assignment_done"' in again.text  # one HIT for an assignment, as it says
            assert (await visitor.head(address)).status_code == 405  # a look alone leases nothing, as everywhere
    stored = "SELECT platform, worker_id, external_id FROM annotators a JOIN assignments s ON s.annotator_id = a.id"
    assert await fetch_rows(engine, stored) == [("toy", "ann", "1")]
    assert await fetch_rows(engine, "SELECT count(*) FROM responses") == [(1,)]


async def test_researchers_find_its_link_on_the_share_page(app, researcher, monkeypatch):
    campaign = await create_running_campaign(app.state.database)
    monkeypatch.setitem(PLATFORMS, TOY.name, TOY)
    link = f"http://easel.test/toy/{campaign.link_key}?player={{{{player}}}}&amp;round={{{{round}}}}"
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/share")).text
    assert '<h2 id="by-toy">Toy shop</h2>' in page
    assert f'value="{link}"' in page
    assert (await researcher.get(f"/admin/campaigns/{campaign.slug}/launch/confirm")).status_code == 200
