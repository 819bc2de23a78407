"""The plain link lets in everybody, people with the passphrase, or nobody."""

from datetime import timedelta

import pytest

from app.annotation.onboarding import passphrase
from app.annotation.onboarding.passphrase import is_same_passphrase
from app.campaigns import settings_edits
from app.database.session import borrow_autocommit_driver
from app.errors import TooManyAttempts
from tests.annotation.hits.campaigns import NOW, create_running_campaign, fetch_rows, fetch_value, form_fields

PASSPHRASE = "Grüne Äpfel"


@pytest.fixture
def engine(app):
    return app.state.database


@pytest.fixture
async def campaign(engine):
    return await create_running_campaign(engine, passphrase=PASSPHRASE)


async def people(engine):
    return await fetch_value(engine, "SELECT count(*) FROM annotators")


def test_blanks_and_ways_of_writing_an_accent_do_not_count(subtests):
    for said, right in (
        ("Grüne Äpfel", True),
        ("  Gru\u0308ne A\u0308pfel ", True),
        ("grüne äpfel", False),
        ("", False),
        ("Grüne", False),
    ):
        with subtests.test(said=said, right=right):
            assert is_same_passphrase(PASSPHRASE, said) is right


async def test_the_first_page_says_nothing_of_the_task_but_its_name(client, engine, campaign):
    page = (await client.get(f"/link/{campaign.link_key}")).text
    assert "Enter the passphrase" in page
    assert campaign.question not in page
    assert "verb 0" not in page


async def test_the_passphrase_leads_to_the_welcome_and_start_to_the_first_set(client, engine, campaign):
    address = f"/link/{campaign.link_key}"
    page = (await client.post(address, data={"passphrase": PASSPHRASE, "enter": "1"})).text
    assert campaign.question in page
    assert f'name="passphrase" value="{PASSPHRASE}"' in page
    assert await people(engine) == 0
    reply = await client.post(address, data={"passphrase": PASSPHRASE})
    assert reply.status_code == 303
    assert form_fields((await client.get(reply.headers["location"])).text)["hit"]
    assert await people(engine) == 1


@pytest.mark.parametrize("more", [{"enter": "1"}, {}])
async def test_a_wrong_one_lets_nobody_in_and_stays_in_the_field(client, engine, campaign, more):
    reply = await client.post(f"/link/{campaign.link_key}", data={"passphrase": "<apples>"} | more)
    assert reply.status_code == 422
    assert "This is not the passphrase" in reply.text
    assert 'value="&lt;apples&gt;"' in reply.text
    assert await people(engine) == 0


async def test_nobody_starts_without_it(client, engine, campaign):
    assert "Enter the passphrase" in (await client.post(f"/link/{campaign.link_key}")).text
    assert await people(engine) == 0


async def test_it_can_be_tried_so_often_from_one_address(client, engine, campaign):
    address = f"/link/{campaign.link_key}"
    replies = [
        await client.post(address, data={"passphrase": "x"})
        for _ in range(passphrase.MAX_GUESSES_PER_ADDRESS_AND_HOUR + 1)
    ]
    assert [reply.status_code for reply in replies] == [422] * passphrase.MAX_GUESSES_PER_ADDRESS_AND_HOUR + [429]
    assert int(replies[-1].headers["retry-after"]) > 0
    assert (await client.post(address, data={"passphrase": PASSPHRASE})).status_code == 429
    assert await people(engine) == 0


async def test_right_ones_are_not_counted(client, engine, campaign):
    address = f"/link/{campaign.link_key}"
    for _ in range(passphrase.MAX_GUESSES_PER_ADDRESS_AND_HOUR + 5):
        assert (await client.post(address, data={"passphrase": PASSPHRASE, "enter": "1"})).status_code == 200


async def test_after_a_while_it_can_be_tried_again(app, engine, campaign):
    visitor = app.state.visit_limiter.visitor_of_ip_address("192.0.2.1")
    async with borrow_autocommit_driver(engine) as connection:
        for _ in range(passphrase.MAX_GUESSES_PER_ADDRESS_AND_HOUR):
            await passphrase.charge_guess_or_refuse(connection, campaign.id, visitor, now=NOW)
        with pytest.raises(TooManyAttempts):
            await passphrase.charge_guess_or_refuse(connection, campaign.id, visitor, now=NOW)
        await passphrase.charge_guess_or_refuse(connection, campaign.id, visitor, now=NOW + timedelta(minutes=4))


async def test_where_the_campaign_says_so_who_comes_from_a_platform_needs_none(client, engine, campaign):
    await settings_change(engine, campaign, open_platforms=True)
    address = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID=t"
    assert form_fields((await client.get(address)).text)["hit"]


async def test_with_the_links_of_platforms_closed_nobody_new_comes_by_one_and_who_has_begun_goes_on(client, engine):
    campaign = await create_running_campaign(engine)
    begun = f"/prolific/{campaign.link_key}?PROLIFIC_PID=p1&STUDY_ID=s&SESSION_ID="
    assert form_fields((await client.get(f"{begun}t")).text)["hit"]
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda it: it.model_copy(update={"open_platforms": False})
        )
    assert form_fields((await client.get(f"{begun}another")).text)["hit"]
    for other in (
        f"/prolific/{campaign.link_key}?PROLIFIC_PID=p2&STUDY_ID=s&SESSION_ID=t",
        f"/mturk/{campaign.link_key}?assignmentId=A&hitId=H&workerId=W&turkSubmitTo=https://workersandbox.mturk.com",
        f"/mturk/{campaign.link_key}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=H",
    ):
        reply = await client.get(other)
        assert reply.status_code == 403
        assert "By invitation only" in reply.text
    assert await people(engine) == 1
    assert (await client.get(f"/link/{campaign.link_key}")).status_code == 200


async def test_a_closed_link_lets_nobody_in_and_who_has_begun_go_on(client, engine):
    campaign = await create_running_campaign(engine)
    address = f"/link/{campaign.link_key}"
    begun = (await client.post(address)).headers["location"]
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda it: it.model_copy(update={"open_link": False})
        )
    for reply in (await client.get(address), await client.post(address)):
        assert reply.status_code == 403
        assert "By invitation only" in reply.text
    assert await people(engine) == 1
    assert form_fields((await client.get(begun)).text)["hit"]


async def test_the_log_says_that_it_was_changed_and_not_what_it_is(engine, campaign):
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda it: it.model_copy(update={"passphrase": "Pears"})
        )
    told = await fetch_rows(engine, "SELECT before, after FROM audit_log WHERE action = 'settings.changed'")
    assert told == [({"passphrase": "•••"}, {"passphrase": "•••"})]


async def settings_change(engine, campaign, **changes):
    async with engine.begin() as connection:
        await settings_edits.store_changed_settings_or_refuse(
            connection, campaign.slug, lambda it: it.model_copy(update=changes)
        )


PLATFORM_LINKS = [
    "/prolific/{key}?PROLIFIC_PID=new&STUDY_ID=s&SESSION_ID=t",
    "/mturk/{key}?assignmentId=A&hitId=H&workerId=W&turkSubmitTo=https://workersandbox.mturk.com",
    "/mturk/{key}?assignmentId=ASSIGNMENT_ID_NOT_AVAILABLE&hitId=H",
]


@pytest.mark.parametrize(
    ("settings", "is_open"),
    [
        ({}, True),
        ({"passphrase": "abc"}, False),
        ({"open_link": False}, False),
        ({"passphrase": "abc", "open_platforms": True}, True),
        ({"open_link": False, "open_platforms": True}, True),
        ({"open_platforms": False}, False),
    ],
    ids=str,
)
@pytest.mark.parametrize("when", ["from the start", "later"])
async def test_a_passphrase_or_a_closed_link_closes_the_links_of_platforms_unless_said_otherwise(
    *, client, researcher, engine, settings, is_open, when
):
    campaign = await create_running_campaign(engine, **(settings if when == "from the start" else {}))
    if when == "later":
        await settings_change(engine, campaign, **settings)
    for link in PLATFORM_LINKS:
        reply = await client.get(link.format(key=campaign.link_key))
        expected = (200, False) if is_open else (403, True)
        assert (reply.status_code, "By invitation only" in reply.text) == expected, link
    share = (await researcher.get(f"/admin/campaigns/{campaign.slug}/share")).text
    assert ("The platform links are closed" in share) is not is_open
    warned = is_open and bool(settings)
    assert ("The platform links are open: anyone who knows" in share) is warned


@pytest.mark.parametrize(("chosen", "stored"), [("", None), ("yes", True), ("no", False)])
async def test_the_form_says_how_the_links_of_platforms_are(researcher, engine, chosen, stored):
    campaign = await create_running_campaign(engine)
    address = f"/admin/campaigns/{campaign.slug}"
    await settings_change(engine, campaign, open_platforms=not stored)
    reply = await researcher.post(f"{address}/settings/visit", data={"open_link": "on", "open_platforms": chosen})
    assert reply.status_code == 303
    assert await fetch_value(engine, "SELECT open_platforms FROM campaigns") is stored
    page = (await researcher.get(f"{address}/settings/visit")).text
    assert f'<option value="{chosen}" selected>' in page.partition('name="open_platforms"')[2].partition("</select>")[0]
