"""Findings of the analysis in the API."""

from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit


async def test_the_page_and_the_api_state_the_same_findings(app, engine, researcher, api_client):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=4)
    api = f"/api/v1/campaigns/{campaign.slug}/analysis/findings"
    for person in range(4):
        me = await create_annotator(engine, campaign, name=f"person {person}")
        for _ in range(2):
            hit = await try_to_lease_hit(engine, me)
            await submit_scores(engine, me, hit, scores=[float(8 * item + person) for item in hit.items])
    stated = (await api_client.get(api)).json()
    assert [finding["name"] for finding in stated] == ["scores", "methods", "agreement", "annotators"]
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/analysis/findings")).text
    for finding in stated:
        assert finding["sentence"].replace("&", "&amp;") in page


async def test_before_the_first_answer_there_is_no_finding(app, engine, api_client):
    campaign = await create_running_campaign(engine)
    assert (await api_client.get(f"/api/v1/campaigns/{campaign.slug}/analysis/findings")).json() == []
