"""Admission of people by lists, and by the campaigns that they took part in before."""

import asyncio

import pytest

from app.accounts import tokens, users
from app.annotation.onboarding import participant_lists, personal_links
from app.annotation.platforms.assignments import find_or_create_assignment
from app.annotation.platforms.platform import Arrival
from app.annotation.platforms.visit_limit import Visitor
from app.campaigns import lifecycle
from app.database.session import borrow_autocommit_driver
from app.errors import Conflict, Forbidden, TooLarge, TooManyVisits
from app.privacy.erasures import erase_person_and_return_erasure
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    form_fields,
    store_settings,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.onboarding.test_people import links_of
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)

COUNT_ANNOTATORS = "SELECT count(*) FROM annotators WHERE campaign_id = :campaign"


@pytest.fixture
def engine(app):
    return app.state.database


def arrival_url(campaign, person, session="s1"):
    return f"/prolific/{campaign.link_key}?PROLIFIC_PID={person}&STUDY_ID=st&SESSION_ID={session}"


async def change_list(engine, campaign, list_name, *people, action="add", may_open_to_everyone=False):
    async with engine.begin() as connection:
        return await participant_lists.change_participant_list_and_count_changes(
            connection, campaign, list_name, people, action, now=NOW, may_open_to_everyone=may_open_to_everyone
        )


async def answer_one_hit(engine, campaign, name, platform="prolific"):
    assignment = await create_annotator(engine, campaign, name, platform)
    await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))


async def statuses_of_arrivals(client, campaign, *people):
    return [(await client.get(arrival_url(campaign, person))).status_code for person in people]


async def test_everyone_may_take_part_without_lists(client, engine):
    campaign = await create_running_campaign(engine)
    assert await statuses_of_arrivals(client, campaign, "p1", "p2") == [200, 200]


async def test_a_person_on_the_block_list_is_screened_out_and_leaves_no_row(client, engine):
    campaign = await create_running_campaign(engine, return_screened_out="OTHERS1")
    await change_list(engine, campaign, "block", "p1")
    reply = await client.get(arrival_url(campaign, "p1"))
    assert reply.status_code == 403
    assert "Thank you for your interest" in reply.text
    assert "OTHERS1" in reply.text
    assert await fetch_value(engine, COUNT_ANNOTATORS, campaign=campaign.id) == 0
    assert await statuses_of_arrivals(client, campaign, "p2") == [200]


async def test_with_an_allow_list_only_its_people_may_take_part(client, engine):
    campaign = await create_running_campaign(engine)
    await change_list(engine, campaign, "allow", "p1", "p2")
    assert await statuses_of_arrivals(client, campaign, "p1", "p2", "p3") == [200, 200, 403]


async def test_a_block_is_stronger_than_an_allowance(client, engine):
    campaign = await create_running_campaign(engine)
    await change_list(engine, campaign, "allow", "p1")
    await change_list(engine, campaign, "block", "p1")
    assert await statuses_of_arrivals(client, campaign, "p1") == [403]


async def test_a_person_who_is_in_already_keeps_on_in_a_new_submission(client, engine):
    campaign = await create_running_campaign(engine)
    page = (await client.get(arrival_url(campaign, "p1"))).text
    await change_list(engine, campaign, "block", "p1")
    assert form_fields((await client.get(arrival_url(campaign, "p1"))).text) == form_fields(page)
    assert (await client.get(arrival_url(campaign, "p1", "s2"))).status_code == 200


async def test_ids_of_an_allow_list_cannot_be_tried_out_beyond_the_limit_on_visits(engine, app):
    campaign = await create_running_campaign(engine, people_per_address=3)
    await change_list(engine, campaign, "allow", "listed")
    visitor = Visitor(b"one address", app.state.settings)
    refusals = []
    async with borrow_autocommit_driver(engine) as connection:
        for number in range(5):
            with pytest.raises((Forbidden, TooManyVisits)) as refused:
                await find_or_create_assignment(
                    connection, campaign.id, "prolific", Arrival(f"p{number}", "s1", {}), now=NOW, visitor=visitor
                )
            refusals.append(type(refused.value))
    assert refusals == [Forbidden] * 3 + [TooManyVisits] * 2


async def test_with_an_allow_list_the_open_link_starts_no_visit(client, engine):
    campaign = await create_running_campaign(engine)
    await change_list(engine, campaign, "allow", "p1")
    reply = await client.post(f"/link/{campaign.link_key}", data={})
    assert reply.status_code == 403
    assert "not open to you" in reply.text


async def test_people_with_personal_links_are_listed_by_name(client, engine):
    campaign = await create_running_campaign(engine)
    async with engine.begin() as connection:
        await personal_links.create_missing_links_and_count_them(connection, campaign, ["Ann", "Bea"], now=NOW)
        rows = await personal_links.list_personal_links(connection, campaign.id)
    await change_list(engine, campaign, "block", "Bea")
    links = [personal_links.personal_link_url("", campaign.link_key, row.link) for row in rows]
    assert [(await client.get(link)).status_code for link in links] == [200, 403]


async def test_people_who_answered_in_an_excluded_campaign_cannot_take_part(client, engine):
    earlier = await create_running_campaign(engine, name="Pilot")
    await answer_one_hit(engine, earlier, "p1")
    await create_annotator(engine, earlier, "p2", "prolific")  # who came and answered nothing
    await answer_one_hit(engine, earlier, "p3", "mturk")  # another person: the platforms' ids are not the same
    campaign = await create_running_campaign(engine, exclude_campaigns=[earlier.slug])
    assert await statuses_of_arrivals(client, campaign, "p1", "p2", "p3") == [403, 200, 200]


async def test_only_people_who_answered_in_one_of_the_campaigns_are_invited_again(client, engine):
    first, second = [await create_running_campaign(engine, name=name) for name in ("One", "Two")]
    await answer_one_hit(engine, first, "p1")
    await answer_one_hit(engine, second, "p2")
    campaign = await create_running_campaign(engine, only_campaigns=[first.slug, second.slug])
    assert await statuses_of_arrivals(client, campaign, "p1", "p2", "p3") == [200, 200, 403]


async def test_a_person_with_a_personal_link_is_known_by_name_in_other_campaigns(client, engine):
    pilot, campaign = [await create_running_campaign(engine, name=name) for name in ("Pilot", "Main")]
    links = {}
    for one, names in ((pilot, ["Zoe", "Ann"]), (campaign, ["Ann", "Bea"])):
        async with engine.begin() as connection:
            await personal_links.create_missing_links_and_count_them(connection, one, names, now=NOW)
            for row in await personal_links.list_personal_links(connection, one.id):
                links[one.id, row.name] = personal_links.personal_link_url("", one.link_key, row.link)
    page = await client.get(links[pilot.id, "Ann"])
    await client.post(links[pilot.id, "Ann"], data=form_fields(page.text))
    await store_settings(engine, exclude_campaigns=[pilot.slug])
    assert [(await client.get(links[campaign.id, name])).status_code for name in ("Ann", "Bea")] == [403, 200]


async def test_a_person_whose_link_is_named_by_their_id_on_a_platform_took_part_there(client, engine):
    first = await create_running_campaign(engine, name="Wave 1")
    await answer_one_hit(engine, first, "5f01")
    await answer_one_hit(engine, first, "gpt", "api")
    await create_annotator(engine, first, "5f02", "prolific")  # who came and answered nothing
    second = await create_running_campaign(engine, name="Wave 2", only_campaigns=[first.slug])
    links = await links_of(engine, second, "5f01", "5f02", "gpt")
    assert [(await client.get(link)).status_code for link in links] == [200, 403, 403]


async def test_pages_count_people_with_links_who_took_part_in_none_of_the_campaigns(researcher, engine):
    first = await create_running_campaign(engine, name="Wave 1")
    await answer_one_hit(engine, first, "5f01")
    second = await create_running_campaign(engine, name="Wave 2", only_campaigns=[first.slug], open_link=False)
    await links_of(engine, second, "5f01", "Ann", "Bea")
    warning = "2 of 3 people with a personal link cannot take part: they answered no task in wave-1."
    for page in ("share", "people"):
        assert warning in (await researcher.get(f"/admin/campaigns/{second.slug}/{page}")).text, page
    draft = await create_running_campaign(engine, name="Wave 3", launched=False, only_campaigns=[first.slug])
    await links_of(engine, draft, "Ann")
    page = (await researcher.get(f"/admin/campaigns/{draft.slug}/launch/confirm")).text
    assert "1 of 1 person with a personal link cannot take part" in page
    await store_settings(engine, only_campaigns=[])
    assert "cannot take part" not in (await researcher.get(f"/admin/campaigns/{second.slug}/share")).text


async def test_after_the_campaign_was_deleted_nobody_took_part_in_it(client, engine):
    campaign = await create_running_campaign(engine)
    await store_settings(engine, only_campaigns=["gone"])
    assert await statuses_of_arrivals(client, campaign, "p1") == [403]


async def test_simulated_annotators_need_no_invitation(engine):
    campaign = await create_running_campaign(engine)
    await change_list(engine, campaign, "allow", "p1")
    await create_annotator(engine, campaign, "s1", "simulation")
    assert await fetch_value(engine, COUNT_ANNOTATORS, campaign=campaign.id) == 1
    with pytest.raises(Forbidden, match="not open") as refused:
        await create_annotator(engine, campaign, "s1", "api")
    assert refused.value.code == "may_not_take_part"


async def test_lists_count_each_person_once_and_say_what_changed(engine):
    campaign = await create_running_campaign(engine)
    assert await change_list(engine, campaign, "allow", "p1", " p2 ", "", "p1") == 2
    assert await change_list(engine, campaign, "allow", "p2", "p3") == 1
    assert await change_list(engine, campaign, "allow", "p1", "nobody", action="remove") == 1
    assert await change_list(engine, campaign, "allow", "p3", "p4", action="replace") == 2
    async with engine.begin() as connection:
        assert await participant_lists.list_participant_ids(connection, campaign.id, "allow") == ["p3", "p4"]


async def test_two_uploads_at_once_keep_everyone(engine):
    campaign = await create_running_campaign(engine)
    await asyncio.gather(*(change_list(engine, campaign, "block", f"p{k}", "shared") for k in range(8)))
    assert await fetch_value(engine, "SELECT count(*) FROM participant_lists") == 9


async def test_two_removals_at_once_leave_someone_on_the_allow_list(engine):
    campaign = await create_running_campaign(engine)
    await change_list(engine, campaign, "allow", "p1", "p2")
    async with engine.begin() as connection:
        await participant_lists.change_participant_list_and_count_changes(
            connection, campaign, "allow", ["p1"], "remove", now=NOW
        )
        other = asyncio.create_task(change_list(engine, campaign, "allow", "p2", action="remove"))
        assert (await asyncio.wait([other], timeout=0.3))[0] == set()
    with pytest.raises(Conflict) as refusal:
        await other
    assert refusal.value.code == "opens_to_everyone"


async def test_the_settings_name_the_campaigns(engine):
    earlier = await create_running_campaign(engine, name="Pilot")
    campaign = await create_running_campaign(engine, exclude_campaigns=f"{earlier.slug}\n\n")
    async with engine.begin() as connection:
        assert (await load_campaign_by_slug_or_refuse(connection, campaign.slug)).exclude_campaigns == [earlier.slug]


async def test_a_page_changes_the_lists_and_shows_them_to_researchers(researcher, engine):
    campaign = await create_running_campaign(engine)
    address = f"/admin/campaigns/{campaign.slug}/participants"
    reply = await researcher.post(address, data={"list": "block", "action": "add", "people": "p1\n p2 \n"})
    assert reply.status_code == 303
    page = (await researcher.get(f"{address}?list=block")).text
    assert "<code>p1</code>" in page
    assert "2 people" in page
    await researcher.post(address, data={"list": "block", "action": "remove", "people": "p1"})
    assert "1 person on the block list" in (await researcher.get(f"/admin/campaigns/{campaign.slug}/share")).text
    refused = await researcher.post(address, data={"list": "block", "action": "add", "people": "a\tb"})
    assert refused.status_code == 422
    assert "a\tb</textarea>" in refused.text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("ids.txt", "p1\np2\n"),
        ("export.csv", "Submission id,Participant id\ns1,p1\ns2,p2\n"),
        ("workers.tsv", "nr\tWORKER_ID\n1\tp1\n2\tp2\n"),
    ],
)
async def test_a_list_is_uploaded_as_lines_or_as_a_table(researcher, engine, name, content):
    campaign = await create_running_campaign(engine)
    address = f"/admin/campaigns/{campaign.slug}/participants"
    reply = await researcher.post(address, data={"list": "allow", "action": "add"}, files={"file": (name, content)})
    assert reply.status_code == 303
    async with engine.begin() as connection:
        assert await participant_lists.list_participant_ids(connection, campaign.id, "allow") == ["p1", "p2"]


async def test_programs_change_count_and_read_the_lists(api_client, engine):  # noqa: F811
    campaign = await create_running_campaign(engine)
    address = f"{API}/campaigns/{campaign.slug}/participants"
    added = await api_client.post(f"{address}/allow", json={"ids": ["ann", "bea"]})
    assert added.json() == {"people": 2, "erased": 0, "changed": 2}
    assert (await api_client.get(address)).json()["allow"] == {"people": 2, "erased": 0}
    assert (await api_client.get(f"{address}/allow")).json()["ids"] == ["ann", "bea"]
    assert (await api_client.post(f"{address}/allow", json={"ids": [], "action": "replace"})).status_code == 409
    emptied = {"ids": [], "action": "replace", "may_open_to_everyone": True}
    assert (await api_client.post(f"{address}/allow", json=emptied)).json()["people"] == 0
    refused = await api_client.post(f"{address}/allow", json={"ids": ["x\x07"]})
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "person_id_wrong")
    assert (await api_client.get(f"{address}/No%20List")).status_code == 422


async def test_a_program_gets_no_hit_for_a_person_who_may_not_take_part(api_client, engine):  # noqa: F811
    campaign = await create_running_campaign(engine)
    await change_list(engine, campaign, "block", "bea")
    hits = f"{API}/campaigns/{campaign.slug}/hits"
    assert (await api_client.post(hits, json={"annotator": "ann"})).status_code == 200
    reply = await api_client.post(hits, json={"annotator": "bea"})
    assert reply.status_code == 403
    assert reply.json()["error"]["code"] == "may_not_take_part"


async def test_a_list_has_a_limit_and_a_rehearsal_has_no_list(engine, monkeypatch):
    campaign = await create_running_campaign(engine)
    monkeypatch.setattr(participant_lists, "MAX_LISTED_PEOPLE", 2)
    with pytest.raises(TooLarge):
        await change_list(engine, campaign, "allow", "p1", "p2", "p3")
    assert await fetch_value(engine, "SELECT count(*) FROM participant_lists") == 0
    async with engine.begin() as connection:
        rehearsal = await lifecycle.create_copy_of_campaign(connection, campaign.slug, now=NOW, is_rehearsal=True)
    with pytest.raises(Conflict):
        await change_list(engine, rehearsal, "allow", "p1")


async def test_an_erased_person_leaves_the_allow_list_and_stays_blocked(client, engine):
    campaign = await create_running_campaign(engine)
    await create_annotator(engine, campaign, "p1", "prolific")
    for list_name in ("allow", "block"):
        await change_list(engine, campaign, list_name, "p1", "p2")
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", "anonymise", now=NOW)
    lists = "SELECT list, worker_id FROM participant_lists ORDER BY list, worker_id"
    assert await fetch_rows(engine, lists) == [("allow", "p2"), ("allow", None), ("block", "p2"), ("block", None)]
    assert await statuses_of_arrivals(client, campaign, "p1") == [403]
    async with engine.begin() as connection:
        assert (await participant_lists.count_listed_people_by_list(connection, campaign.id))["block"].erased == 1


async def test_an_erased_person_who_opens_the_link_again_reads_why_it_is_closed(client, engine):
    campaign = await create_running_campaign(engine, return_screened_out="OTHERS1")
    await answer_one_hit(engine, campaign, "p1")
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", "remove", now=NOW)
    reply = await client.get(arrival_url(campaign, "p1", session="s2"))
    assert reply.status_code == 403
    assert "Your data were erased from this study, so you cannot take part in it again." in reply.text
    assert "OTHERS1" in reply.text
    assert await fetch_value(engine, COUNT_ANNOTATORS, campaign=campaign.id) == 1
    german = await client.get(arrival_url(campaign, "p1", session="s2"), headers={"Accept-Language": "de"})
    assert "aus dieser Studie gelöscht" in german.text
    assert await statuses_of_arrivals(client, campaign, "p2") == [200]


async def test_erasing_the_last_person_of_the_allow_list_lets_no_one_else_in(client, engine):
    campaign = await create_running_campaign(engine)
    await create_annotator(engine, campaign, "p1", "prolific")
    await change_list(engine, campaign, "allow", "p1")
    hash_of_id = "SELECT person_hash FROM participant_lists"
    before = await fetch_value(engine, hash_of_id)
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", "anonymise", now=NOW)
    assert await statuses_of_arrivals(client, campaign, "p1", "p2") == [403, 403]
    assert await fetch_value(engine, hash_of_id) != before
    await change_list(engine, campaign, "allow", "p3", action="replace")
    assert await fetch_rows(engine, "SELECT worker_id FROM participant_lists") == [("p3",)]


@pytest.mark.parametrize("action", ["remove", "replace"])
async def test_the_allow_list_becomes_empty_only_if_that_is_meant(engine, action):
    campaign = await create_running_campaign(engine)
    await change_list(engine, campaign, "allow", "p1")
    people = ["p1"] if action == "remove" else []
    with pytest.raises(Conflict) as refusal:
        await change_list(engine, campaign, "allow", *people, action=action)
    assert refusal.value.code == "opens_to_everyone"
    assert await change_list(engine, campaign, "allow", *people, action=action, may_open_to_everyone=True) == 1


async def test_a_page_asks_before_everyone_may_take_part(researcher, engine):
    campaign = await create_running_campaign(engine)
    await change_list(engine, campaign, "allow", "p1")
    address = f"/admin/campaigns/{campaign.slug}/participants"
    fields = {"list": "allow", "action": "replace", "people": ""}
    asked = await researcher.post(address, data=fields)
    assert asked.status_code == 409
    assert 'name="sure"' in asked.text
    assert '<option value="replace" selected>' in asked.text
    assert (await researcher.post(address, data=fields | {"sure": "yes"})).status_code == 303
    assert await fetch_value(engine, "SELECT count(*) FROM participant_lists") == 0


async def test_the_log_has_each_read_of_ids(researcher, api_client, engine):  # noqa: F811
    campaign = await create_running_campaign(engine)
    await change_list(engine, campaign, "block", "p1", "p2")
    await researcher.get(f"/admin/campaigns/{campaign.slug}/participants?list=block")
    await api_client.get(f"{API}/campaigns/{campaign.slug}/participants/block?offset=1")
    reads = "SELECT action FROM audit_log WHERE about = 'participants: block' ORDER BY id"
    assert await fetch_rows(engine, reads) == [("people.seen",), ("people.downloaded",)]


async def test_a_replaced_block_list_keeps_the_blocks_of_erased_people(engine):
    campaign = await create_running_campaign(engine)
    await create_annotator(engine, campaign, "p1", "prolific")
    await change_list(engine, campaign, "block", "p1")
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", "anonymise", now=NOW)
    await change_list(engine, campaign, "block", "p2", action="replace")
    assert await fetch_value(engine, "SELECT count(*) FROM participant_lists") == 2


async def test_settings_name_only_campaigns_whose_people_the_researcher_may_see(app, researcher, client, engine):
    secret = await create_running_campaign(engine, name="Secret")
    async with engine.begin() as connection:
        user = await users.insert_and_return_user_or_refuse(connection, "bea", now=NOW, role="member")
        token = await tokens.issue_token_or_refuse(connection, user.id, "program", now=NOW)
    headers = {"authorization": f"Bearer {token}", "accept": "application/json"}
    mine = {"name": "Mine", "question": "How?"}
    created = await client.post(f"{API}/campaigns", json=mine | {"exclude_campaigns": [secret.slug]}, headers=headers)
    assert (created.status_code, created.json()["error"]["code"]) == (422, "other_campaign_unknown")
    assert (await client.post(f"{API}/campaigns", json=mine, headers=headers)).status_code == 201
    change = await client.patch(f"{API}/campaigns/mine", json={"only_campaigns": [secret.slug]}, headers=headers)
    assert change.json()["error"]["code"] == "other_campaign_unknown"
    file = f"name: File\nquestion: How?\nexclude_campaigns: [{secret.slug}]\n"
    sent = await client.post(f"{API}/campaigns/files", content=file, headers=headers)
    assert sent.json()["error"]["code"] == "other_campaign_unknown"
    form = {"exclude_campaigns": secret.slug, "only_campaigns": "nothing-like-this"}
    page = await researcher.post("/admin/campaigns/mine/settings/visit", data=form)
    assert page.status_code == 422
    assert "There is no campaign “nothing-like-this”" in page.text
    assert (
        await researcher.post("/admin/campaigns/mine/settings/visit", data=form | {"only_campaigns": ""})
    ).status_code == 303
    # Who may not see that campaign keeps what is there, and changes other settings.
    assert (await client.patch(f"{API}/campaigns/mine", json={"seed": 7}, headers=headers)).status_code == 200


MANY_IDS = [f"{number:024x}" for number in range(participant_lists.MAX_LISTED_PEOPLE)]


async def test_a_program_lists_as_many_people_as_a_list_may_have(api_client, engine):  # noqa: F811
    campaign = await create_running_campaign(engine)
    address = f"{API}/campaigns/{campaign.slug}/participants/block"
    reply = await api_client.post(address, json={"ids": MANY_IDS})
    assert reply.status_code == 200, reply.text
    assert reply.json()["people"] == len(MANY_IDS)


async def test_a_researcher_types_as_many_people_as_a_list_may_have(researcher, engine):
    campaign = await create_running_campaign(engine)
    fields = {"list": "allow", "action": "add", "people": "\r\n".join(MANY_IDS)}
    address = f"/admin/campaigns/{campaign.slug}/participants"
    reply = await researcher.post(address, data=fields, files={"file": ("", b"")})
    assert reply.status_code == 303, reply.text
    async with engine.begin() as connection:
        counts = await participant_lists.count_listed_people_by_list(connection, campaign.id)
    assert counts["allow"].people == len(MANY_IDS)


@pytest.mark.parametrize("fields", [{"list": "blok"}, {"action": "ad"}, {"list": ""}, {"action": ""}])
async def test_an_unknown_value_in_the_form_of_a_list_changes_nothing(researcher, engine, fields):
    campaign = await create_running_campaign(engine)
    address = f"/admin/campaigns/{campaign.slug}/participants"
    reply = await researcher.post(address, data={"list": "block", "action": "add", "people": "p1\np2"} | fields)
    assert reply.status_code == 422
    assert "Nothing was changed." in reply.text
    assert "p1\np2</textarea>" in reply.text
    assert await fetch_value(engine, "SELECT count(*) FROM participant_lists") == 0


async def test_two_fields_of_people_are_refused(researcher, engine):
    campaign = await create_running_campaign(engine)
    for path, fields in (
        ("participants", {"list": "allow", "action": "add", "people": ["p1", "p2"]}),
        ("people", {"names": ["Ada", "Grace"]}),
    ):
        reply = await researcher.post(f"/admin/campaigns/{campaign.slug}/{path}", data=fields)
        assert reply.status_code == 422
        assert "twice" in reply.text
    assert await fetch_value(engine, "SELECT count(*) FROM participant_lists") == 0


async def test_a_group_of_a_form_may_be_new_or_known(researcher, engine):
    campaign = await create_running_campaign(engine)
    address = f"/admin/campaigns/{campaign.slug}/participants"
    for fields in ({"list": "allow", "group": "experts", "people": "p1"}, {"list": "experts", "people": "p2"}):
        assert (await researcher.post(address, data={"action": "add", **fields})).status_code == 303
    rows = await fetch_rows(engine, "SELECT list, worker_id FROM participant_lists ORDER BY worker_id")
    assert rows == [("experts", "p1"), ("experts", "p2")]


@pytest.mark.parametrize("path", ["participants", "people"])
async def test_a_file_that_cannot_be_read_is_explained_without_words_of_other_doors(researcher, engine, path):
    campaign = await create_running_campaign(engine)
    reply = await researcher.post(
        f"/admin/campaigns/{campaign.slug}/{path}",
        data={"list": "allow", "action": "add"},
        files={"file": ("people.csv", "name\nJosé\n".encode("latin-1"))},
    )
    assert reply.status_code == 422
    assert "Nothing was changed." in reply.text
    assert "imported" not in reply.text
    assert "--encoding" not in reply.text


async def test_nobody_to_add_is_said_so(researcher, engine):
    campaign = await create_running_campaign(engine)
    reply = await researcher.post(f"/admin/campaigns/{campaign.slug}/people", data={"names": "  \n"})
    assert reply.status_code == 422
    assert "Enter a name" in reply.text
