"""The annotator's address over HTTP, without a browser."""

import asyncio
import json
import math
import re
from datetime import UTC, datetime

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.lifecycle import change_campaign_status_or_refuse
from app.database.session import ServingConnections
from app.main import create_app
from app.settings import Settings
from tests.annotation.hits.campaigns import (
    create_running_campaign,
    fetch_rows,
    fetch_value,
    form_fields,
    requests_are_waiting_sql,
    wait_until,
)
from tests.conftest import http_client

FETCH = {"x-easel": "fetch", "accept": "application/json"}


@pytest.fixture
def engine(app):
    return app.state.database


async def started(client, campaign):
    reply = await client.post(f"/link/{campaign.link_key}")
    assert reply.status_code == 303
    return reply.headers["location"]


async def test_a_visit_by_link_stores_nothing_before_start(client, engine):
    campaign = await create_running_campaign(engine)
    reply = await client.get(f"/link/{campaign.link_key}")
    assert reply.status_code == 200
    assert campaign.question in reply.text
    assert await fetch_rows(engine, "SELECT (SELECT count(*) FROM annotators), (SELECT count(*) FROM hits)") == [(0, 0)]


async def test_start_leads_to_an_address_that_survives_a_reload(client, engine):
    address = await started(client, await create_running_campaign(engine))
    first, second = (await client.get(address)).text, (await client.get(address)).text
    assert form_fields(first)["hit"] == form_fields(second)["hit"]


async def test_an_answer_brings_the_next_hit_in_the_same_reply(client, engine):
    campaign = await create_running_campaign(engine)
    page = (await client.get(await started(client, campaign))).text
    reply = await client.post(f"/link/{campaign.link_key}", data=form_fields(page), headers=FETCH)
    assert reply.status_code == 200
    assert form_fields(reply.text)["hit"] != form_fields(page)["hit"]
    assert "<html" not in reply.text
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


async def test_the_same_answer_twice_counts_once(client, engine):
    campaign = await create_running_campaign(engine)
    fields = form_fields((await client.get(await started(client, campaign))).text)
    for _ in range(2):
        assert (await client.post(f"/link/{campaign.link_key}", data=fields)).status_code == 200
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1


async def test_an_incomplete_form_without_javascript_keeps_what_was_entered(client, engine):
    campaign = await create_running_campaign(engine)
    fields = form_fields((await client.get(await started(client, campaign))).text)
    first, *others = [name for name in fields if name.startswith("score-")]
    reply = await client.post(f"/link/{campaign.link_key}", data=fields | {first: "", others[0]: "37"})
    assert "Not all items have a score yet: 1 of 5" in reply.text
    assert 'value="37"' in reply.text
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0


async def test_an_incomplete_answer_of_the_script_gets_a_stable_code(client, engine):
    campaign = await create_running_campaign(engine)
    fields = form_fields((await client.get(await started(client, campaign))).text)
    some = {name: text for name, text in fields.items() if not name.startswith("score-")}
    reply = await client.post(f"/link/{campaign.link_key}", data=some, headers=FETCH)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "scores_missing")


async def test_a_draft_comes_back_after_a_reload(client, engine):
    campaign = await create_running_campaign(engine)
    address = await started(client, campaign)
    fields = form_fields((await client.get(address)).text)
    item = next(name for name in fields if name.startswith("score-")).removeprefix("score-")
    draft = {"token": fields["token"], "hit": int(fields["hit"]), "entries": {item: {"score": 73}}}
    assert (await client.put(f"/link/{campaign.link_key}", json=draft)).status_code == 204
    assert 'value="73"' in (await client.get(address)).text


async def test_a_draft_without_end_is_refused(client, engine):
    campaign = await create_running_campaign(engine)
    fields = form_fields((await client.get(await started(client, campaign))).text)
    draft = {"token": fields["token"], "hit": 1, "entries": {str(k): {"score": k} for k in range(2000)}}
    reply = await client.put(f"/link/{campaign.link_key}", json=draft, headers={"accept": "application/json"})
    assert reply.json()["error"]["code"] == "draft_too_large"


async def test_a_draft_that_cannot_be_kept_is_refused_not_a_crash(client, engine, subtests):
    for broken in (
        {"hit": 2**63},
        {"entries": {"1": {"score": math.nan}}},
        {"entries": {"1": {"score": math.inf}}},
        {"entries": {"1": {"input_kind": "\ud800"}}},
        {"entries": {"1": {"\ud800": 1}}},
        {"entries": {"\ud800": {"score": 1}}},
    ):
        with subtests.test(broken=broken):
            campaign = await create_running_campaign(engine)
            fields = form_fields((await client.get(await started(client, campaign))).text)
            draft = {"token": fields["token"], "hit": int(fields["hit"]), "entries": {}} | broken
            reply = await client.put(
                f"/link/{campaign.link_key}",
                content=json.dumps(draft),
                headers={"content-type": "application/json"} | FETCH,
            )
            assert (reply.status_code, reply.json()["error"]["code"]) == (422, "invalid")


@pytest.mark.parametrize(
    ("hit", "code"),
    [("", "hit_missing"), *((hit, "hit_not_found") for hit in ("x", "-1", "+1", "01", "99999999999999999999"))],
)
async def test_an_answer_to_no_hit_is_refused(client, engine, hit, code):
    campaign = await create_running_campaign(engine)
    fields = form_fields((await client.get(await started(client, campaign))).text)
    reply = await client.post(f"/link/{campaign.link_key}", data=fields | {"hit": hit}, headers=FETCH)
    assert reply.json()["error"]["code"] == code


async def test_a_forged_token_is_refused(client, engine):
    campaign = await create_running_campaign(engine)
    fields = form_fields((await client.get(await started(client, campaign))).text)
    reply = await client.post(f"/link/{campaign.link_key}", data=fields | {"token": "x"}, headers=FETCH)
    assert (reply.status_code, reply.json()["error"]["code"]) == (422, "token_invalid")


async def test_a_late_answer_whose_items_are_gone_is_refused_with_a_new_hit(client, engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    address = await started(client, campaign)
    fields = form_fields((await client.get(address)).text)
    async with engine.begin() as connection:
        await expire_leases(connection)
    async with httpx.AsyncClient(transport=client._transport, base_url="http://easel.test") as other:
        theirs = await started(other, campaign)
        await other.post(f"/link/{campaign.link_key}", data=form_fields((await other.get(theirs)).text))
    reply = await client.post(f"/link/{campaign.link_key}", data=fields, headers=FETCH)
    assert reply.status_code == 200
    assert "Your time for these items had run out" in reply.text
    assert await fetch_value(engine, "SELECT max(judgments) FROM posteriors") == 1


async def expire_leases(connection: AsyncConnection):
    await connection.execute(text("UPDATE hits SET expires_at = :past"), {"past": datetime(2020, 1, 1, tzinfo=UTC)})


async def test_a_prolific_arrival_shows_the_hit_at_once_and_returns_with_the_code(client, engine):
    campaign = await create_running_campaign(engine, hits_per_annotator=1, prolific_completion_code="C0DE")
    address = f"/prolific/{campaign.link_key}"
    arrived = await client.get(address, params={"PROLIFIC_PID": "p", "STUDY_ID": "s", "SESSION_ID": "x"})
    reply = await client.post(address, data=form_fields(arrived.text))
    assert "https://app.prolific.com/submissions/complete?cc=C0DE" in reply.text
    assert await fetch_value(engine, "SELECT completed_at IS NOT NULL FROM assignments")


async def test_an_mturk_preview_leases_and_stores_nothing(client, engine):
    campaign = await create_running_campaign(engine)
    parameters = {"assignmentId": "ASSIGNMENT_ID_NOT_AVAILABLE", "hitId": "H"}
    reply = await client.get(f"/mturk/{campaign.link_key}", params=parameters)
    assert reply.status_code == 200
    assert 'name="token"' not in reply.text
    assert await fetch_rows(engine, "SELECT (SELECT count(*) FROM annotators), (SELECT count(*) FROM hits)") == [(0, 0)]


async def test_after_an_mturk_answer_the_page_posts_to_mturk(client, engine):
    campaign = await create_running_campaign(engine)
    parameters = {"assignmentId": "A", "hitId": "H", "workerId": "W", "turkSubmitTo": "https://www.mturk.com"}
    arrived = await client.get(f"/mturk/{campaign.link_key}", params=parameters)
    reply = await client.post(f"/mturk/{campaign.link_key}", data=form_fields(arrived.text))
    assert 'action="https://www.mturk.com/mturk/externalSubmit"' in reply.text
    assert 'name="assignmentId" value="A"' in reply.text
    again = await client.get(f"/mturk/{campaign.link_key}", params=parameters)
    assert 'action="https://www.mturk.com/mturk/externalSubmit"' in again.text


PLACEHOLDERS = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


async def test_a_visitor_whom_prolific_did_not_name_is_refused_and_not_made_an_annotator(client, engine, subtests):
    for query, code in (
        (PLACEHOLDERS, "arrival_placeholder"),
        ("PROLIFIC_PID=one&STUDY_ID=s&SESSION_ID=x&PROLIFIC_PID=two", "arrival_doubled"),
        ("PROLIFIC_PID=&STUDY_ID=s&SESSION_ID=x", "arrival_incomplete"),
        ("", "arrival_incomplete"),
    ):
        with subtests.test(query=query, code=code):
            campaign = await create_running_campaign(engine, prolific_completion_code="C0DE")
            reply = await client.get(f"/prolific/{campaign.link_key}?{query}")
            assert reply.status_code == 422
            for words in (code, "Please return the study on Prolific", "If this is your study:", "Share page"):
                assert words in reply.text
            assert "C0DE" not in reply.text
            assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 0


async def test_parameters_of_others_given_twice_harm_nobody(client, engine):
    campaign = await create_running_campaign(engine)
    query = "PROLIFIC_PID=one&STUDY_ID=s&SESSION_ID=x&unknown=1&unknown=2"
    await client.get(f"/prolific/{campaign.link_key}?{query}")
    assert await fetch_value(engine, "SELECT worker_id FROM annotators") == "one"


FINISH = "Finish and return to Prolific"


async def test_without_a_limit_a_person_from_prolific_finishes_when_they_want(client, engine):
    campaign = await create_running_campaign(engine, prolific_completion_code="C0DE")
    address = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=x"
    arrived = (await client.get(address)).text
    assert FINISH not in arrived  # nothing to hand in yet
    answered = (await client.post(address, data=form_fields(arrived))).text
    assert FINISH in answered
    finished = (await client.post(address, data={"token": form_fields(answered)["token"], "finish": "1"})).text
    assert "https://app.prolific.com/submissions/complete?cc=C0DE" in finished
    assert "You answered 1 task." in finished
    assert await fetch_value(engine, "SELECT completed_at IS NOT NULL FROM assignments")
    assert 'name="hit"' in (await client.get(address)).text  # they may change their mind


@pytest.mark.parametrize(("platform", "limit"), [("prolific", 5), ("link", None)])
async def test_nobody_is_offered_to_finish_where_the_visit_ends_by_itself(client, engine, platform, limit):
    campaign = await create_running_campaign(engine, hits_per_annotator=limit)
    query = "?PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=x"
    address = await started(client, campaign) if platform == "link" else f"/prolific/{campaign.link_key}{query}"
    answered = await client.post(address, data=form_fields((await client.get(address)).text))
    assert 'name="hit"' in answered.text
    assert "Finish and return" not in answered.text


async def test_who_finishes_without_an_answer_is_not_handed_in(client, engine):
    campaign = await create_running_campaign(engine, prolific_completion_code="C0DE")
    address = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p&STUDY_ID=s&SESSION_ID=x"
    token = form_fields((await client.get(address)).text)["token"]
    finished = (await client.post(address, data={"token": token, "finish": "1"})).text
    assert "there is nothing to hand in" in finished
    assert "C0DE" not in finished


async def test_only_the_mturk_address_may_be_framed(client, engine):
    campaign = await create_running_campaign(engine)
    framed = (await client.get(f"/mturk/{campaign.link_key}")).headers
    assert "frame-ancestors https://www.mturk.com" in framed["content-security-policy"]
    assert "x-frame-options" not in framed
    for path in (f"/link/{campaign.link_key}", "/login", "/health", "/nowhere"):
        headers = (await client.get(path)).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"


async def test_the_workers_path_sets_no_cookie(client, engine):
    campaign = await create_running_campaign(engine)
    page = await client.get(await started(client, campaign))
    reply = await client.post(f"/link/{campaign.link_key}", data=form_fields(page.text))
    assert not client.cookies
    assert "set-cookie" not in reply.headers


@pytest.mark.parametrize("address", ["/link/nosuchkey", "/mturk/nosuchkey", "/nosuchplatform/key"])
async def test_an_unknown_address_is_not_found(client, address):
    reply = await client.get(address, headers={"accept": "application/json"})
    assert reply.status_code == 404
    assert reply.json()["error"]["code"] in ("campaign_not_found", "not_found")


async def test_the_estimate_is_never_in_the_page(client, engine):
    campaign = await create_running_campaign(engine, prior=[3.14159, 7.77777])
    page = (await client.get(await started(client, campaign))).text
    assert not re.search(r"3\.14|7\.77|\bmode\b|variance|posterior", page)


async def test_texts_are_escaped(client, engine):
    campaign = await create_running_campaign(engine, launched=False)

    async with engine.begin() as connection:
        await connection.execute(text("UPDATE items SET shown = '<script>alert(1)</script>'"))
        await change_campaign_status_or_refuse(connection, campaign.slug, "launch", now=datetime.now(UTC))
    page = (await client.get(await started(client, campaign))).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page


@pytest.mark.own_database
async def test_a_failing_commit_is_not_a_200(client, engine):
    """The commit of the answer fails (a deferred constraint); the browser must not be told that it was stored."""
    campaign = await create_running_campaign(engine)
    fields = form_fields((await client.get(await started(client, campaign))).text)
    async with engine.begin() as connection:
        await connection.execute(
            text("CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'disk on fire'; END$$")
        )
        await connection.execute(
            text(
                "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON responses DEFERRABLE INITIALLY DEFERRED "
                "FOR EACH ROW EXECUTE FUNCTION refuse()"
            )
        )
    reply = await client.post(f"/link/{campaign.link_key}", data=fields, headers=FETCH)
    assert reply.status_code == 500
    assert await fetch_rows(engine, "SELECT count(*), (SELECT max(judgments) FROM posteriors) FROM responses") == [
        (0, 0)
    ]


async def test_a_database_that_is_away_is_a_503_that_says_try_again():
    nobody_listens = "postgresql://someone@127.0.0.1:1/easel"
    app = create_app(Settings(database_url=nobody_listens, secret_key=SecretStr("k" * 32)))
    async with app.router.lifespan_context(app), http_client(app) as client:
        reply = await client.get("/link/none", headers={"accept": "application/json"})
    assert reply.status_code == 503
    assert reply.json()["error"]["code"] == "database_unavailable"
    assert reply.headers["retry-after"] == "2"


ARRIVALS = {
    "link": "",
    "prolific": "?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=x",
    "mturk": "?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=H1",
}


async def test_a_link_that_takes_no_answers_says_so_at_once(client, engine, subtests):
    for actions, words in (
        (["pause"], "has paused this study"),
        (["finish"], "takes no more answers"),
        ([], "has not started"),
    ):
        for platform, arrival in ARRIVALS.items():
            with subtests.test(actions=actions, platform=platform):
                campaign = await create_running_campaign(engine, launched=bool(actions), pay="$0.35")
                async with engine.begin() as connection:
                    for action in actions:
                        await change_campaign_status_or_refuse(connection, campaign.slug, action, now=datetime.now(UTC))
                page = (await client.get(f"/{platform}/{campaign.link_key}{arrival}")).text
                assert words in page
                assert ">Start<" not in page
                assert "score-" not in page
                assert "$0.35" not in page  # nothing is to be earned now
                assert ("Please do not accept it" in page) == (platform == "mturk")


@pytest.mark.parametrize("platform", ARRIVALS)
async def test_minutes_and_pay_are_said_before_the_start_if_the_campaign_states_them(client, engine, platform):
    plain = await create_running_campaign(engine)
    stated = await create_running_campaign(engine, name="Paid", minutes_per_hit=1.5, pay="$0.35 <each>")
    pages = [(await client.get(f"/{platform}/{one.link_key}{ARRIVALS[platform]}")).text for one in (plain, stated)]
    assert "effort" not in pages[0]
    assert re.search(r"about 1.5 min a task · <span dir=\"auto\">\$0.35 &lt;each&gt;</span>", pages[1])


@pytest.mark.parametrize("limit", [None, 1])
async def test_annotators_read_of_sets_from_the_welcome_to_the_thanks(client, engine, limit):
    campaign = await create_running_campaign(
        engine, items=5, judgments_per_item=1, minutes_per_hit=2.0, hits_per_annotator=limit
    )
    welcome = (await client.get(f"/link/{campaign.link_key}")).text
    work = (await client.get(await started(client, campaign))).text
    thanks = (await client.post(f"/link/{campaign.link_key}", data=form_fields(work))).text
    done = f"0 of {limit} task done" if limit else "0 tasks done"
    for page, words in ((welcome, "such task"), (work, done), (thanks, "You answered 1 task.")):
        assert words in page
        assert "HIT" not in page


@pytest.mark.parametrize(
    ("change", "seconds"),
    [
        ("UPDATE campaigns SET status = 'paused'", 30),
        ("UPDATE campaigns SET judgments_per_item = 1; UPDATE posteriors SET judgments = 1 WHERE subject > 0", 10),
        ("UPDATE campaigns SET status = 'finished'", None),
    ],
)
async def test_a_page_that_may_have_a_hit_later_looks_again_when_it_says_also_without_javascript(
    client, engine, change, seconds
):
    campaign = await create_running_campaign(engine, items=2, items_per_hit=2, judgments_per_item=2)
    mine, theirs = [await started(client, campaign) for _ in range(2)]
    await client.get(theirs)
    async with engine.begin() as connection:
        for statement in change.split(";"):
            await connection.execute(text(statement))
    page = (await client.get(mine)).text
    assert re.findall(r'<noscript><meta http-equiv="refresh" content="(\d+)">', page) == [str(seconds)] * bool(seconds)
    assert re.findall(r"This page looks again every (\d+) seconds\.</p>", page) == [str(seconds)] * bool(seconds)
    assert re.findall(r'data-retry-seconds="(\d+)"', page) == [str(seconds)] * bool(seconds)


async def test_minutes_and_pay_stay_above_each_hit(client, engine):
    campaign = await create_running_campaign(engine, pay="4 credits")
    page = (await client.get(await started(client, campaign))).text
    assert '<p class="effort"><span dir="auto">4 credits</span></p>' in page
    following = await client.post(f"/link/{campaign.link_key}", data=form_fields(page), headers=FETCH)
    assert "4 credits" in following.text


async def test_when_many_come_at_once_they_are_served_in_the_order_in_which_they_came(app, client, engine):
    campaign = await create_running_campaign(engine)
    app.state.serving_connections = ServingConnections(engine, 1)
    served = []

    async def visit(number):
        await client.get(f"/link/{campaign.link_key}")
        served.append(number)

    async with app.state.serving_connections.borrow_autocommit_connection():
        visits = [asyncio.create_task(visit(number)) for number in range(6)]
        await asyncio.sleep(0.1)
        assert served == []
    await asyncio.gather(*visits)
    assert served == list(range(6))


async def test_answers_that_wait_for_a_lock_keep_nobody_of_another_campaign_waiting(app, client, engine):
    """More of them than there are connections for annotators, none of which another campaign could have otherwise."""
    locked, other = [await create_running_campaign(engine, name=name) for name in ("Locked", "Other")]
    page = (await client.get(await started(client, locked))).text
    answers = [form_fields(page) for _ in range(app.state.settings.pool_size)]
    async with engine.begin() as connection:
        await connection.execute(text("SELECT FROM posteriors WHERE campaign_id = :id FOR UPDATE"), {"id": locked.id})
        address = f"/link/{locked.link_key}"
        held = [asyncio.create_task(client.post(address, data=answer, headers=FETCH)) for answer in answers]
        async with asyncio.timeout(30):
            await wait_until(engine, requests_are_waiting_sql(1))
            assert (await client.get(await started(client, other))).status_code == 200
        assert not any(one.done() for one in held)
    for reply in await asyncio.gather(*held):
        assert reply.status_code == 200


async def test_a_form_that_comes_in_slowly_keeps_nobody_waiting(app, client, engine):
    campaign = await create_running_campaign(engine)
    app.state.serving_connections = ServingConnections(engine, 1)
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly():
        yield b"token="
        begun.set()
        await go_on.wait()

    kind = {"content-type": "application/x-www-form-urlencoded"}
    slow = asyncio.create_task(client.post(f"/link/{campaign.link_key}", content=slowly(), headers=kind))
    async with asyncio.timeout(10):
        await begun.wait()
        assert (await client.get(f"/link/{campaign.link_key}")).status_code == 200
    go_on.set()
    assert (await slow).status_code == 422  # an empty token
