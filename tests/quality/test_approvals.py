"""The list of submissions to approve on Prolific."""

from tests.annotation.hits.campaigns import execute_sql
from tests.quality.deciding import answer_hits

FROM_PROLIFIC = "UPDATE annotators SET platform = 'prolific' WHERE campaign_id = :id"
COMPLETED = """
    UPDATE assignments SET external_id = 'submission ' || annotator_id - (SELECT min(id) FROM annotators),
    completed_at = CASE WHEN annotator_id < (SELECT max(id) FROM annotators) THEN now() END WHERE campaign_id = :id
"""


async def test_completed_submissions_of_annotators_in_good_standing_can_be_approved(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=4, hits=1)
    address = f"/admin/campaigns/{campaign.slug}"
    assert (await researcher.get(f"{address}/approvals/prolific.csv")).text == ""
    assert "approval list" not in (await researcher.get(f"{address}/annotators")).text
    await execute_sql(engine, FROM_PROLIFIC, id=campaign.id)
    await execute_sql(engine, COMPLETED, id=campaign.id)
    await researcher.post(f"{address}/annotators/A2/hold", data={"reason": "too fast"})
    reply = await researcher.get(f"{address}/approvals/prolific.csv")
    assert reply.text == "submission 0\nsubmission 2\n"  # not the held one, nor the one who has not finished
    assert "attachment" in reply.headers["content-disposition"]
    refused = await researcher.get(f"{address}/approvals/link.csv")
    assert (refused.status_code, "no_approval_list" in refused.text) == (404, True)
    assert "Prolific approval list" in (await researcher.get(f"{address}/annotators")).text


async def test_the_list_is_named_after_the_platform_that_the_campaign_describes(engine, researcher):
    campaign, _, _ = await answer_hits(engine, people=1, hits=1, panel_title="SONA", panel_query="id=%SURVEY_CODE%")
    await execute_sql(engine, "UPDATE annotators SET platform = 'panel'")
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert "SONA approval list (CSV)" in page
    assert "Paste the ids into SONA’s bulk approval" in page
