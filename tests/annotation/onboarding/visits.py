"""Steps that an annotator takes before the work, over HTTP."""

import re

from tests.annotation.hits.campaigns import fetch_value

CONSENT = "We keep **your answers** and no name."
SESSION = {"PROLIFIC_PID": "p1", "STUDY_ID": "study", "SESSION_ID": "s1"}


def hidden_fields(html):
    """Return the hidden fields of a step's form."""
    form = html.partition('class="step"')[2].partition("</form>")[0]
    return dict(re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form))


def step_of(html):
    """Return the step that a page shows; None if it shows none."""
    return hidden_fields(html).get("step")


async def open_campaign_link(client, campaign, **more):
    """Open the campaign as a visitor from Prolific, and return the page and its address."""
    address = f"/prolific/{campaign.link_key}?" + "&".join(f"{k}={v}" for k, v in (SESSION | more).items())
    return (await client.get(address)).text, address


async def send_form(client, address, html, **fields):
    """Send a step's form and return the next page."""
    reply = await client.post(address, data=hidden_fields(html) | fields)
    if reply.status_code == 303:
        reply = await client.get(reply.headers["location"])
    assert reply.status_code == 200, reply.text
    return reply.text


async def leases_of(engine):
    return await fetch_value(engine, "SELECT count(*) FROM hits")
