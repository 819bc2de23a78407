"""Notices of the platform are subscribed to and ended from the page, the API and the command."""

import asyncio

import pytest
from click.testing import CliRunner
from fastapi.responses import PlainTextResponse

from app.annotation.platforms.prolific.service import ProlificService
from app.cli.commands import easel
from app.errors import BadGateway, Conflict
from app.payments.connections import ServiceConnector
from app.payments.notice_subscription import (
    end_notices_or_refuse,
    list_workspace_subscriptions_and_own_id,
    subscribe_to_notices_or_refuse,
)
from app.payments.token_encryption import TokenCipher
from tests.annotation.hits.campaigns import execute_sql, fetch_rows, fetch_value
from tests.payments.fake_prolific import TOKEN, signed_notice
from tests.payments.studies import audit_lines, create_study, words

HTTPS = "https://easel.example.org"


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def study(app, engine, prolific):
    study = await create_study(engine, prolific)
    app.state.payment_connector = study.connector
    return study


@pytest.fixture
def page(study):
    return f"/admin/campaigns/{study.campaign.slug}/submissions"


async def subscribe(study, base_url=HTTPS):
    await subscribe_to_notices_or_refuse(study.engine, study.connector, study.campaign, base_url)


async def test_a_subscription_is_confirmed_and_its_notices_count(engine, client, study, prolific):
    await subscribe(study)
    ((identifier, row),) = prolific.subscriptions.items()
    hook_key = await fetch_value(engine, "SELECT hook_key FROM payment_accounts")
    assert row["is_enabled"]
    assert (row["target_url"], row["workspace_id"]) == (f"{HTTPS}/prolific/hook/{hook_key}", "workspace1")
    assert await fetch_value(engine, "SELECT hook_subscription FROM payment_accounts") == identifier
    await execute_sql(engine, "UPDATE payment_accounts SET due_at = '2099-01-01'")
    notice = signed_notice("event-1", secret=prolific.hook_secrets["workspace1"])
    assert (await client.post(f"/prolific/hook/{hook_key}", **notice)).status_code == 204
    assert await fetch_value(engine, "SELECT due_at < '2099-01-01' FROM payment_accounts")
    assert (await audit_lines(engine))[-1] == "payments.notices_begun"


async def test_the_secret_is_encrypted_and_not_logged(engine, study, prolific):
    await subscribe(study)
    secret = prolific.hook_secrets["workspace1"]
    stored = await fetch_value(engine, "SELECT hook_secret FROM payment_accounts")
    assert secret.encode() not in bytes(stored)
    assert study.connector.cipher.decrypt_or_none(bytes(stored)) == secret
    assert secret not in str(await fetch_rows(engine, "SELECT before, after FROM audit_log"))


async def test_the_secret_that_a_workspace_has_stays(study, prolific):
    prolific.hook_secrets["workspace1"] = "of another program"
    await subscribe(study)
    assert prolific.hook_secrets["workspace1"] == "of another program"
    assert "POST /hooks/secrets/" not in prolific.calls


async def test_an_address_without_https_is_refused(study, prolific):
    with pytest.raises(Conflict) as refused:
        await subscribe(study, "http://127.0.0.1:8000")
    assert refused.value.code == "address_not_https"
    assert prolific.subscriptions == {}


async def test_a_second_subscription_is_refused(study, prolific):
    await subscribe(study)
    with pytest.raises(Conflict) as refused:
        await subscribe(study)
    assert refused.value.code == "subscribed_already"
    assert len(prolific.subscriptions) == 1


@pytest.mark.parametrize("part", ["POST /hooks/subscriptions/", "POST /hooks/subscriptions/subscription-"])
async def test_an_interrupted_subscription_leaves_no_second_one(engine, study, prolific, part):
    prolific.after = lambda call: PlainTextResponse("", 504) if call.startswith(part) else None
    with pytest.raises(BadGateway):
        await subscribe(study)
    assert await fetch_value(engine, "SELECT hook_subscription FROM payment_accounts") == ""
    prolific.after = lambda _call: None
    await subscribe(study)
    assert len(prolific.subscriptions) == 1


async def test_subscriptions_of_other_programs_stay(study, prolific):
    other = {"event_type": "submission.status.change", "target_url": "https://else", "workspace_id": "workspace1"}
    prolific.subscriptions["other"] = {"id": "other", "is_enabled": True, **other}
    await subscribe(study)
    await end_notices_or_refuse(study.engine, study.connector, study.campaign)
    assert [*prolific.subscriptions] == ["other"]


@pytest.mark.parametrize("is_gone", [False, True])
async def test_notices_are_ended_although_the_platform_lost_them(engine, study, prolific, is_gone):
    await subscribe(study)
    if is_gone:
        prolific.subscriptions.clear()
    await end_notices_or_refuse(study.engine, study.connector, study.campaign)
    assert prolific.subscriptions == {}
    assert await fetch_rows(engine, "SELECT hook_subscription, hook_secret FROM payment_accounts") == [("", None)]
    with pytest.raises(Conflict) as refused:
        await end_notices_or_refuse(study.engine, study.connector, study.campaign)
    assert refused.value.code == "not_subscribed"


@pytest.mark.parametrize("is_first_gone", [False, True])
async def test_of_two_subscriptions_at_once_one_is_left_and_stored(engine, study, prolific, is_first_gone):
    if not is_first_gone:
        other = {"event_type": "submission.status.change", "target_url": "https://else", "workspace_id": "workspace1"}
        prolific.subscriptions["first"] = {"id": "first", "is_enabled": True, **other}

    class ServiceOfSecondPerson(ProlificService):
        async def subscribe_to_submissions_and_return_id(self, workspace, address):
            await execute_sql(engine, "UPDATE payment_accounts SET hook_subscription = 'first'")
            return await super().subscribe_to_submissions_and_return_id(workspace, address)

    service = ServiceOfSecondPerson(prolific.address, TOKEN)
    study.connector = ServiceConnector(study.connector.settings, study.connector.cipher, lambda *_: service)
    with pytest.raises(Conflict) as refused:
        await subscribe(study)
    assert refused.value.code == "subscribed_already"
    (left,) = prolific.subscriptions
    assert await fetch_value(engine, "SELECT hook_subscription FROM payment_accounts") == left
    assert (left == "first") is not is_first_gone


async def test_subscriptions_of_all_pages_are_seen(study, prolific):
    other = {"event_type": "submission.status.change", "target_url": "https://else", "workspace_id": "workspace1"}
    for number in range(130):
        prolific.subscriptions[f"other-{number}"] = {"id": f"other-{number}", "is_enabled": True, **other}
    await subscribe(study)
    found, own = await list_workspace_subscriptions_and_own_id(study.engine, study.connector, study.campaign)
    assert len(found) == 131
    assert own in {row.id for row in found}


async def test_a_token_that_cannot_be_read_refuses_notices(engine, study):
    changed = ServiceConnector(study.connector.settings, TokenCipher("another key of the server, long enough"))
    for work in (
        subscribe_to_notices_or_refuse(engine, changed, study.campaign, HTTPS),
        list_workspace_subscriptions_and_own_id(engine, changed, study.campaign),
    ):
        with pytest.raises(Conflict) as refused:
            await work
        assert refused.value.code == "service_refused"


async def test_a_disabled_subscription_is_told_until_it_works_again(researcher, page, study, prolific):
    await subscribe(study)
    (row,) = prolific.subscriptions.values()
    for is_enabled in (True, False, True):
        row["is_enabled"] = is_enabled
        await study.work_again(minutes=10)
        assert ("has disabled the notices" in words(await researcher.get(page))) is not is_enabled
    prolific.subscriptions.clear()
    await study.work_again(minutes=10)
    assert "no longer has the subscription" in words(await researcher.get(page))


async def test_the_page_and_programs_say_why_they_cannot_subscribe(researcher, program, page, study):
    reply = await researcher.post(f"{page}/notices")
    assert "sends notices only to https:// addresses" in words(reply)
    refused = await program("POST", "/notices", part="submissions")
    assert refused.json()["error"]["code"] == "address_not_https"
    refused = await program("DELETE", "/notices", part="submissions")
    assert refused.json()["error"]["code"] == "not_subscribed"


async def test_the_page_and_programs_end_notices(researcher, program, page, study, prolific):
    await subscribe(study)
    assert "End the notices" in words(await researcher.get(page))
    (listed,) = (await program("GET", "/notices", part="submissions")).json()
    assert (listed["is_enabled"], listed["is_of_campaign"]) == (True, True)
    assert (await program("DELETE", "/notices", part="submissions")).status_code == 204
    await subscribe(study)
    await researcher.post(f"{page}/notices", data={"end": "yes"})
    assert prolific.subscriptions == {}
    assert (await audit_lines(study.engine))[-1] == "payments.notices_ended"


async def test_the_command_subscribes_and_ends(database_url, study, prolific, monkeypatch):
    monkeypatch.setenv("DATABASE_URL", database_url)
    monkeypatch.setenv("EASEL_PROLIFIC_API_URL", prolific.address)
    monkeypatch.setenv("EASEL_SECRET_KEY", "a key of the server for tests, long enough")
    run = CliRunner().invoke
    said = await asyncio.to_thread(run, easel, ["payments", "notices", "verbs", "--url", HTTPS])
    assert said.output == "The platform sends notices now.\n"
    (row,) = prolific.subscriptions.values()
    row["is_enabled"] = False
    listed = await asyncio.to_thread(run, easel, ["payments", "notices", "verbs", "--list"])
    assert listed.output == f"{row['target_url']} disabled\n"
    await asyncio.to_thread(run, easel, ["payments", "notices", "verbs", "--end"])
    assert prolific.subscriptions == {}
