"""A reason for a final label that names an annotator is erased with them; the label stays."""

import pytest

from app.privacy.erasures import erase_person_and_return_erasure
from tests.adjudication.labelled import create_labelled_campaign, settle
from tests.annotation.hits.campaigns import NOW, fetch_rows, fetch_value

LATEST = "SELECT label, reason FROM adjudications ORDER BY id"


@pytest.mark.parametrize("rule", ["anonymise", "remove"])
async def test_reasons_that_name_an_erased_person_are_overwritten_and_others_stay(app, rule):
    engine = app.state.database
    campaign = await create_labelled_campaign(engine)
    pseudonym = await fetch_value(engine, "SELECT pseudonym FROM annotators ORDER BY id LIMIT 1")
    await settle(engine, campaign, "v0", "yes", reason="a1 read it twice")
    await settle(engine, campaign, "v1", "no", reason=f"as {pseudonym} says")
    await settle(engine, campaign, "v2", "no", reason="A11 and A2 agree")
    await settle(engine, campaign, "v3", "no")
    await erase_person_and_return_erasure(engine, campaign.slug, "A1", rule, now=NOW)
    assert [tuple(row) for row in await fetch_rows(engine, LATEST)] == [
        ("yes", "erased"),
        ("no", "erased"),
        ("no", "A11 and A2 agree"),
        ("no", ""),
    ]
