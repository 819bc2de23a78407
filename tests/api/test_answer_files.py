"""Programs import answers from files of other tools, by the columns and the way of writing that they name."""

import pytest

from tests.annotation.hits.campaigns import fetch_rows
from tests.campaigns.drafts import create_launched_campaign

ITEMS = "id,text\ns1,Der Hund schläft.\ns2,Es regnet.\n"
BATCH = (
    "HITId,AssignmentId,WorkerId,AssignmentStatus,Input.text,Answer.rating\n"
    "H1,AS1,W1,Submitted,Es regnet.,35\nH1,AS2,W2,Rejected,Es regnet.,0\n"
)
GERMAN = "hit;annotator;item;value;submitted_at\nh1;Ann;s1;35,5;05.02.2026 15:04\n"


@pytest.fixture
def send(api_client, engine):
    async def sent(content, **options):
        campaign = await create_launched_campaign(engine, ITEMS)
        address = f"/api/v1/campaigns/{campaign.slug}/responses"
        return await api_client.post(address, content=content.encode(), params=options)

    return sent


async def test_a_refusal_has_a_proposal_that_can_be_sent_back(send, api_client):
    reply = await send(BATCH)
    assert reply.status_code == 422
    error = reply.json()["error"]
    assert error["code"] == "result_columns"
    again = await api_client.post(reply.request.url, content=BATCH.encode(), params=error["details"]["proposal"])
    assert again.status_code == 201
    assert (again.json()["responses"], again.json()["rejected"], again.json()["by_text"]) == (1, 1, 1)


async def test_rejected_results_count_if_the_program_says_so(send):
    reply = await send(BATCH, item_column="Input.text", value_column="Answer.rating", rejected="count")
    assert (reply.json()["responses"], reply.json()["rejected"]) == (2, 0)


async def test_the_order_of_dates_is_asked_for_by_its_parameter(send, api_client, engine):
    reply = await send(GERMAN)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "date_order_unclear")
    options = {"date_order": "day_first", "time_zone": "Europe/Berlin"}
    again = await api_client.post(reply.request.url, content=GERMAN.encode(), params=options)
    assert again.status_code == 201
    assert (again.json()["decimal_comma"], again.json()["time_zone"]) == (True, "Europe/Berlin")
    assert [row[0].isoformat() for row in await fetch_rows(engine, "SELECT received_at FROM responses")] == [
        "2026-02-05T14:04:00+00:00"
    ]


async def test_an_unknown_choice_is_refused(send, subtests):
    for options, code in (
        ({"decimal": "semicolon"}, "invalid"),
        ({"date_order": "dmy"}, "invalid"),
        ({"rejected": "maybe"}, "invalid"),
        ({"time_zone": "Mars/Olympus"}, "time_zone_unknown"),
    ):
        with subtests.test(options=options, code=code):
            reply = await send(GERMAN, **options)
            assert (reply.status_code, reply.json()["error"]["code"]) == (422, code)
