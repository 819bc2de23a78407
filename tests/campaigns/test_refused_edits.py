"""Settings that are refused after a launch: what was entered stays in the form, and the field says what is wrong."""

import re
from html import unescape

from tests.annotation.hits.campaigns import create_running_campaign, fetch_value
from tests.campaigns.drafts import create_draft, import_items


def value_of(html, name):
    (found,) = re.findall(rf'<input type="number" id="{name}"[^>]* value="([^"]*)"', html)
    return unescape(found)


async def test_after_a_launch_fewer_judgments_are_refused_at_the_field_and_all_other_edits_stay(engine, researcher):
    campaign = await create_running_campaign(engine, judgments_per_item=4)
    page = f"/admin/campaigns/{campaign.slug}"
    sent = {"judgments_per_item": "3", "lease_minutes": "45", "goal_percent": "90"}
    refused = await researcher.post(f"{page}/settings/how-much", data=sent)
    assert refused.status_code == 422
    html = refused.text
    assert (value_of(html, "judgments_per_item"), value_of(html, "lease_minutes")) == ("3", "45")
    assert value_of(html, "goal_percent") == "90"
    problem = html.partition('id="judgments_per_item-error">')[2].partition("</p>")[0]
    assert problem == "It is 4 and can only be raised: enter 4 or more."
    assert "Save settings" in html
    assert await fetch_value(engine, "SELECT judgments_per_item FROM campaigns") == 4
    assert await fetch_value(engine, "SELECT lease_minutes FROM campaigns") == 30
    assert (
        await researcher.post(f"{page}/settings/how-much", data=sent | {"judgments_per_item": "5"})
    ).status_code == 303
    assert await fetch_value(engine, "SELECT lease_minutes FROM campaigns") == 45


async def test_the_field_of_what_can_only_grow_takes_nothing_below_what_it_is(engine, researcher):
    campaign = await create_running_campaign(engine, judgments_per_item=4)
    html = (await researcher.get(f"/admin/campaigns/{campaign.slug}/settings/how-much")).text
    assert re.search(r'id="judgments_per_item"[^>]* min="4"', html)
    drafted = await create_draft(engine, judgments_per_item=4)
    html = (await researcher.get(f"/admin/campaigns/{drafted.slug}/settings/how-much")).text
    assert re.search(r'id="judgments_per_item"[^>]* min="1"', html)


async def test_a_goal_that_says_nothing_of_so_few_items_is_refused_in_the_form_too(engine, researcher):
    campaign = await create_running_campaign(engine, items=8, best_items=10)
    sent = {"goal": "best", "judgments_per_item": "9"}
    refused = await researcher.post(f"/admin/campaigns/{campaign.slug}/settings/how-much", data=sent)
    assert refused.status_code == 422
    assert "would be all of them" in refused.text.partition('id="goal-error">')[2].partition("</p>")[0]
    assert value_of(refused.text, "judgments_per_item") == "9"
    assert await fetch_value(engine, "SELECT goal_settings ->> 'goal' FROM campaigns") == "none"


async def test_a_law_that_would_misread_the_priors_of_items_is_refused_in_the_form_of_a_draft(engine, researcher):
    campaign = await create_draft(engine)
    await import_items(
        engine, campaign, "id,text,alpha,beta\n1,a,2,3\n2,b,2,3\n3,c,2,3\n4,d,2,3\n5,e,2,3\n", priors=True
    )
    page = f"/admin/campaigns/{campaign.slug}/settings/advanced"
    refused = await researcher.post(page, data={"update_law": "trueskill", "gamma": "0.25"})
    assert refused.status_code == 422
    assert value_of(refused.text, "gamma") == "0.25"
    assert "were imported with alpha and beta" in refused.text.partition('id="update_law-error">')[2]
