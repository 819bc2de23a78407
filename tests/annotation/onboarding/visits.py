"""Steps that an annotator takes before the work, over HTTP."""

import re

from tests.annotation.hits.campaigns import fetch_value

CONSENT = "We keep **your answers** and no name."
SESSION = {"PROLIFIC_PID": "p1", "STUDY_ID": "study", "SESSION_ID": "s1"}


def hidden_fields(html):
    """The hidden fields of the form of a step."""
    form = html.partition('class="step"')[2].partition("</form>")[0]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


def step_of(html):
    """Which step a page shows; None where it shows none."""
    return hidden_fields(html).get("step")


async def open_campaign_link(client, campaign, **more):
    """The page that somebody from Prolific sees, and its address."""
    address = f"/prolific/{campaign.link_key}?" + "&".join(f"{k}={v}" for k, v in (SESSION | more).items())
    return (await client.get(address)).text, address


async def send_form(client, address, html, **fields):
    """The page after a step's form was sent."""
    reply = await client.post(address, data=hidden_fields(html) | fields)
    if reply.status_code == 303:
        reply = await client.get(reply.headers["location"])
    assert reply.status_code == 200, reply.text
    return reply.text


async def leases_of(engine):
    return await fetch_value(engine, "SELECT count(*) FROM hits")
