"""The campaign page, its figures and its events, over HTTP."""

import asyncio
import json
import re
from contextlib import asynccontextmanager
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from sqlalchemy import insert

from app.campaigns import lifecycle
from app.database import tables
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    submit_scores,
    try_to_lease_hit,
)

pytestmark = pytest.mark.usefixtures("app")


@pytest.fixture
async def campaign(engine):
    return await create_running_campaign(engine)


def address(campaign, part=""):
    return f"/admin/campaigns/{campaign.slug}{part}"


async def answered(engine, campaign):
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit, scores=[0.0, 25.0, 50.0, 75.0, 100.0])
    return hit


PAGES = ["", "/events", "/match-quality", "/match-quality.csv", "/figures/scores.svg", "/figures/item.svg?item=v1"]


async def test_strangers_are_sent_to_log_in(client, campaign, subtests):
    for part in PAGES:
        with subtests.test(part=part):
            reply = await client.get(address(campaign, part))
            assert (reply.status_code, reply.headers["location"][:12]) == (303, "/login?next=")


async def test_the_page_shows_counts_and_table_without_javascript(engine, researcher, campaign):
    hit = await answered(engine, campaign)
    page = (await researcher.get(address(campaign))).text
    assert '<b data-word="judgments">5 of 36</b> judgments' in page
    assert page.count('<th scope="row">') == 12
    assert page.index(f"verb {hit.items[4]}</span>") < page.index(f"verb {hit.items[0]}</span>")


async def test_the_page_warns_of_simulated_answers(engine, researcher, campaign):
    assert '<p class="notice warning" data-word="simulated"></p>' in (await researcher.get(address(campaign))).text
    simulated = await create_annotator(engine, campaign, platform="simulation")
    await submit_scores(engine, simulated, await try_to_lease_hit(engine, simulated))
    page = (await researcher.get(address(campaign))).text
    assert "easel simulate answered 1 of 1 task. These answers are not from people." in page


async def test_before_the_first_answer_the_page_offers_the_link_to_share(researcher, campaign):
    page = (await researcher.get(address(campaign))).text
    link = f"http://easel.test/link/{campaign.link_key}"
    assert 'id="begin" aria-labelledby="begin-title">' in page
    assert f'value="{link}" readonly' in page
    assert '<svg viewBox="0 0 ' in page
    assert 'id="figures" hidden>' in page


async def test_after_the_first_answer_the_figures_are_there(engine, researcher, campaign):
    await answered(engine, campaign)
    page = (await researcher.get(address(campaign))).text
    assert 'id="begin" aria-labelledby="begin-title" hidden>' in page
    assert 'id="figures">' in page


async def test_a_campaign_finished_without_an_answer_is_not_said_to_wait_for_one(engine, researcher, campaign):
    async with engine.begin() as connection:
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "finish", now=NOW)
    page = (await researcher.get(address(campaign))).text
    assert "finished without answers" in page
    assert "Share this link" not in page


async def test_a_draft_shows_what_is_left_to_do(engine, researcher):
    draft = await create_running_campaign(engine, launched=False, name="Draft")
    page = (await researcher.get(address(draft))).text
    assert "12 items, 3 judgments each: 36 judgments, about 8 tasks of 5 items" in page
    assert f'href="{address(draft)}/launch/confirm"' in page


async def test_a_draft_without_items_asks_for_them(engine, researcher):
    draft = await create_running_campaign(engine, launched=False, items=1, name="Draft")
    async with engine.begin() as connection:
        await connection.execute(tables.items.delete())
    page = (await researcher.get(address(draft))).text
    assert "Upload items</a>" in page
    assert "Ready to launch" not in page


@pytest.mark.parametrize("part", ["/events", "/match-quality", "/figures/pace.svg"])
async def test_figures_of_a_draft_are_refused(engine, researcher, part):
    draft = await create_running_campaign(engine, launched=False, name="Draft")
    reply = await researcher.get(address(draft, part), headers={"accept": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (409, "not_launched")


async def test_a_campaign_that_does_not_exist_is_not_found(researcher):
    assert (await researcher.get("/admin/campaigns/nowhere")).status_code == 404


async def test_the_address_holds_sort_search_page_and_item(engine, researcher, campaign):
    await answered(engine, campaign)
    page = (await researcher.get(address(campaign, "?sort=name&order=up&search=verb+1&item=v11"))).text
    assert page.count('<th scope="row">') == 3  # verb 1, 10 and 11
    assert 'aria-sort="ascending"' in page
    assert "verb 11</h2>" in page


async def test_an_address_that_makes_no_sense_is_refused(researcher, campaign, subtests):
    for query in ("sort=password", "order=sideways", "page=0", "page=x", f"search={'x' * 201}"):
        with subtests.test(query=query):
            assert (await researcher.get(address(campaign, f"?{query}"))).status_code == 422


async def test_a_chosen_item_shows_its_posterior_and_who_said_what(engine, researcher, campaign):
    hit = await answered(engine, campaign)
    page = (await researcher.get(address(campaign, f"?item=v{hit.items[1]}"))).text
    assert "Beta(1.25, 1.75)" in page
    assert f'<td><a href="{address(campaign)}/annotators/A1">A1</a></td><td class="figure">25</td>' in page
    assert 'aria-label="A1: 25"' in page
    assert "In 1 task" in page
    curve = json.loads(page.partition('id="density">')[2].partition("</script>")[0])
    now = curve["now"]
    assert sum(now["density"]) / len(now["density"]) == pytest.approx(0.01, abs=1e-5)  # per point, over 100 points
    assert 0 < now["low"] < now["score"] < now["high"] < 100
    assert curve["earlier"] == []


async def test_a_chosen_item_shows_what_was_known_after_its_first_judgments(engine, researcher):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=12, repeat_items=True)
    me = await create_annotator(engine, campaign)
    for turn in range(11):
        hit = await try_to_lease_hit(engine, me)
        await submit_scores(engine, me, hit, scores=[float(20 + 5 * turn)] * 5)
    page = (await researcher.get(address(campaign, "?item=v2"))).text
    curves = json.loads(page.partition('id="density">')[2].partition("</script>")[0])
    assert [(curve["judgments"], round(curve["score"], 6)) for curve in curves["earlier"]] == [
        (1, 20),
        (5, 30),
        (10, 42.5),
    ]
    assert curves["now"]["judgments"] == 11
    assert len({len(curve["density"]) for curve in [curves["now"], *curves["earlier"]]}) == 1
    assert "5 judgments</td>" in page
    drawn = ET.fromstring((await researcher.get(address(campaign, "/figures/item.svg?item=v2"))).text)
    words = [element.text for element in drawn.iter() if element.text]
    assert {"after 1", "after 5", "after 10", "verb 2: likely scores after 11 judgments"} <= set(words)


async def test_where_annotators_are_weighted_each_judgment_shows_what_it_counts_for(engine, researcher):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=30, update_law="easl-aware")
    people = [await create_annotator(engine, campaign, f"ann {k}") for k in range(8)]
    for turn in range(24):
        who = turn % 8
        hit = await try_to_lease_hit(engine, people[who])
        at_random = [float(37 * (turn + 1) * (item + 1) % 101) for item in hit.items]
        seen = [18.0 * item + 3 * who for item in hit.items]
        await submit_scores(engine, people[who], hit, scores=seen if who else at_random)
    page = (await researcher.get(address(campaign, "?item=v2"))).text
    table = page.partition('aria-label="Answers"')[2].partition("</table>")[0]
    rows = [re.findall(r"<td[^>]*>(?:<[^>]*>)?([^<]*)", row) for row in table.split("<tr>")[2:]]
    weights, corrected = (np.array([float(row[column]) for row in rows]) for column in (2, 3))
    assert [len(rows), rows[0][0].strip(), rows[7][0].strip()] == [24, "A8", "A1"]
    assert weights[7] < 0.7 < weights[0] <= 1
    score = float(page.partition("Line: mode ")[2].partition(". ")[0])
    assert weights @ corrected / weights.sum() == pytest.approx(score, abs=0.3)  # they are shown to two digits
    assert f"The weighted mean of the corrected scores is {score:.1f}." in page


async def test_where_all_count_alike_no_weights_are_shown(engine, researcher, campaign):
    hit = await answered(engine, campaign)
    page = (await researcher.get(address(campaign, f"?item=v{hit.items[1]}"))).text
    assert "Weight" not in page


async def test_what_nobody_judged_says_so_quietly(engine, researcher, campaign):
    await answered(engine, campaign)
    page = (await researcher.get(address(campaign))).text
    assert page.count("not judged yet</td>") == 7


async def test_a_dot_beside_its_line_is_explained_where_there_is_one(engine, researcher, campaign):
    words = "A dot can lie outside its thin line"
    assert words not in (await researcher.get(address(campaign))).text
    hit = await answered(engine, campaign)  # 0 and 100 are among the scores
    assert words in (await researcher.get(address(campaign))).text
    assert "can lie outside the shade" in (await researcher.get(address(campaign, f"?item=v{hit.items[4]}"))).text
    assert "can lie outside the shade" not in (await researcher.get(address(campaign, f"?item=v{hit.items[2]}"))).text


async def test_an_item_nobody_scored_says_so(researcher, campaign):
    assert "Not judged yet. The curve is the prior" in (await researcher.get(address(campaign, "?item=v3"))).text


async def test_an_unbounded_law_draws_a_normal_curve_beyond_the_scale(engine, researcher):
    campaign = await create_running_campaign(engine, update_law="trueskill", name="Order")
    lowest = (await answered(engine, campaign)).items[0]
    page = (await researcher.get(address(campaign, f"?item=v{lowest}"))).text
    assert "Normal(" in page
    assert min(json.loads(page.partition('id="density">')[2].partition("</script>")[0])["x"]) < 0


async def test_an_unknown_item_is_not_found(researcher, campaign):
    reply = await researcher.get(address(campaign, "?item=nothing"), headers={"accept": "application/json"})
    assert (reply.status_code, reply.json()["error"]["code"]) == (404, "item_not_found")


async def test_texts_of_items_are_text_everywhere(engine, researcher):
    campaign = await create_running_campaign(engine, launched=False, items=5)
    hostile = "</script><b>bold</b>"
    async with engine.begin() as connection:
        values = {"campaign_id": campaign.id, "number": 5, "external_id": hostile, "shown": hostile, "fields": {}}
        await connection.execute(insert(tables.items).values(values))
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=NOW)
    for part in ("", "/match-quality"):
        page = (await researcher.get(address(campaign, part), params={"item": hostile})).text
        assert "<b>bold" not in page
        assert "&lt;b&gt;bold" in page
    ET.fromstring((await researcher.get(address(campaign, "/figures/scores.svg"))).text)


async def test_our_script_gets_only_the_parts_that_belong_to_the_address(researcher, campaign):
    parts = (await researcher.get(address(campaign), headers={"X-Easel": "fetch"})).text
    assert 'id="scores"' in parts
    assert "<html" not in parts
    assert "heatmap" not in parts


async def test_the_heatmap_lies_behind_as_table_and_csv(engine, researcher, campaign):
    await answered(engine, campaign)
    assert "Best compared with" in (await researcher.get(address(campaign, "/match-quality"))).text
    lines = (await researcher.get(address(campaign, "/match-quality.csv"))).text.splitlines()
    cells = [line.split(",") for line in lines]
    assert len(cells) == 13
    assert cells[0][1:] == [line[0] for line in cells[1:]]
    assert cells[1][2] == cells[2][1]


async def test_every_chart_is_offered_as_a_drawing(engine, researcher, campaign, subtests):
    for name in ("scores", "distribution", "pace", "uncertainty", "item"):
        with subtests.test(name=name):
            hit = await answered(engine, campaign)
            reply = await researcher.get(address(campaign, f"/figures/{name}.svg?item=v{hit.items[0]}"))
            assert reply.headers["content-type"] == "image/svg+xml"
            assert ET.fromstring(reply.text).tag == "{http://www.w3.org/2000/svg}svg"
            assert "style=" not in reply.text


async def test_there_is_no_other_drawing(researcher, campaign):
    assert (await researcher.get(address(campaign, "/figures/secrets.svg"))).status_code == 422


@asynccontextmanager
async def listening(app, researcher, url, **headers):
    """Yield the lines of a stream as they arrive; `httpx` would wait for the end of the body."""
    lines: asyncio.Queue[str] = asyncio.Queue()
    gone = asyncio.Event()
    names = {"cookie": f"{app.state.cookie_name}={researcher.cookies[app.state.cookie_name]}"} | headers
    scope = {
        "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": "GET",
        "scheme": "http", "path": url, "raw_path": url.encode(), "query_string": b"", "root_path": "",
        "headers": [(name.encode(), value.encode()) for name, value in names.items()],
        "client": ("127.0.0.1", 1), "server": ("easel.test", 80),
    }  # fmt: skip
    asked = False

    async def receive():
        nonlocal asked
        if not asked:
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await gone.wait()
        return {"type": "http.disconnect"}

    async def send(message):
        if message["type"] == "http.response.body":
            if not message.get("more_body"):
                lines.put_nowait("END")
            for line in message.get("body", b"").decode().splitlines():
                lines.put_nowait(line)

    async def next_line(beginning):
        async with asyncio.timeout(60):
            while not (line := await lines.get()).startswith(beginning):
                pass
        return line.removeprefix(beginning)

    request = asyncio.create_task(app(scope, receive, send))
    yield next_line
    gone.set()
    await request


async def test_events_carry_the_whole_state_with_its_version(app, engine, researcher, campaign):
    async with listening(app, researcher, address(campaign, "/events")) as line:
        version = await line("id: ")
        assert json.loads(await line("data: "))["cards"]["progress"]["value"] == "0 of 36"
        await answered(engine, campaign)
        while (state := json.loads(await line("data: ")))["cards"]["progress"]["value"] != "5 of 36":
            pass
        assert state["answered"] is True
    assert app.state.live.broadcasts == {}
    async with listening(app, researcher, address(campaign, "/events"), **{"last-event-id": version}) as line:
        assert json.loads(await line("data: "))["words"]["hits"] == "1 task"  # what was missed comes at once


async def test_the_page_and_its_stream_agree_on_the_version(app, researcher, campaign):
    page = (await researcher.get(address(campaign))).text
    async with listening(app, researcher, address(campaign, "/events")) as line:
        assert f'data-version="{await line("id: ")}"' in page


async def test_logging_out_ends_the_stream(app, researcher, campaign, monkeypatch):
    monkeypatch.setattr("app.dashboard.live.LIVE_HEARTBEAT_SECONDS", 0.2)
    async with listening(app, researcher, address(campaign, "/events")) as line:
        await line("data: ")
        await line(": still here")
        await researcher.post("/logout")
        await line("event: logged-out")
        await line("END")
