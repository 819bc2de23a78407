import re

import pytest
from sqlalchemy import text

from app.campaigns import form, lifecycle
from app.campaigns.settings import CampaignSettings

FORM = {"name": "Verbs & more", "question": "How often?", "low_label": "rare", "high_label": "frequent"}


async def create(researcher, **fields):
    page = await researcher.post("/admin/campaigns/new", data=form.blank() | FORM | fields)
    assert page.status_code == 303, page.text
    return page.headers["location"].split("/")[3]


async def test_the_first_page_is_the_list(researcher):
    assert (await researcher.get("/")).headers["location"] == "/admin"
    page = await researcher.get("/admin")
    assert page.status_code == 200
    assert "Create the first campaign" in page.text
