"""The pages of a campaign's annotators."""

import re

from tests.quality.deciding import answered, verified
from tests.serving.campaigns import value, values

REASON = {"reason": "answers at random"}


async def test_the_page_lists_annotators_with_figures_and_leads_to_each(engine, researcher):
    campaign, _, _ = await answered(engine, people=3, hits=3, items=10)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert re.findall(r'/annotators/(A\d)">', html) == ["A1", "A2", "A3"]
    assert html.count('class="spark"') == 3
    assert "takes part" in html


async def test_who_is_excluded_on_their_page_is_left_out_and_restored_there(engine, researcher):
    campaign, _, _ = await answered(engine)
    address = f"/admin/campaigns/{campaign.slug}/annotators/A1"
    done = await researcher.post(f"{address}/exclude", data=REASON)
    assert (done.status_code, done.headers["location"]) == (303, address)
    assert (await verified(engine, campaign)).responses == 4
    html = (await researcher.get(address)).text
    assert "answers at random" in html
    assert "none of their answers counts" in html
    assert f'formaction="{address}/restore"' in html
    assert f'formaction="{address}/hold"' not in html
    await researcher.post(f"{address}/restore", data=REASON)
    assert (await verified(engine, campaign)).responses == 6
    assert (
        await values(engine, "SELECT who, about FROM audit_log WHERE action LIKE 'answers.%'") == [("admin", "A1")] * 2
    )


async def test_one_answer_is_excluded_in_its_line_and_marked(engine, researcher):
    campaign, _, _ = await answered(engine)
    seq = await value(engine, "SELECT min(seq) FROM responses")
    address = f"/admin/campaigns/{campaign.slug}/annotators/A1"
    await researcher.post(f"{address}/answers/{seq}/exclude", data=REASON)
    html = (await researcher.get(address)).text
    assert "excluded, answers at random (admin)" in html
    assert f"{address}/answers/{seq}/restore" in html
    assert (await verified(engine, campaign)).responses == 5


async def test_without_a_reason_nothing_is_decided(engine, researcher):
    campaign, _, _ = await answered(engine, people=1, hits=1)
    refused = await researcher.post(f"/admin/campaigns/{campaign.slug}/annotators/A1/hold", data={"reason": " "})
    assert refused.status_code == 422
    assert "Please say why" in refused.text
    assert await value(engine, "SELECT barred FROM annotators") is None


async def test_a_page_of_annotators_of_a_draft_or_of_nobody_says_so(engine, researcher):
    campaign, _, _ = await answered(engine, people=0)
    address = f"/admin/campaigns/{campaign.slug}/annotators"
    assert "Nobody has come yet" in (await researcher.get(address)).text
    assert (await researcher.get(f"{address}/A1")).status_code == 404


async def test_annotators_stand_in_the_order_that_is_asked_for(engine, researcher):
    campaign, _, _ = await answered(engine, people=3, hits=1)
    await researcher.post(f"/admin/campaigns/{campaign.slug}/annotators/A3/hold", data=REASON)
    for sort, rising, order in (
        ("name", "", "A1 A2 A3"),
        ("name", "&rising=true", "A3 A2 A1"),
        ("standing", "", "A3 A1 A2"),
    ):
        html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators?sort={sort}{rising}")).text
        assert re.findall(r'/annotators/(A\d)">', html) == order.split()
