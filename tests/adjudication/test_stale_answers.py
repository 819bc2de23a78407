"""Answers are kept for a while; what a researcher settles is always shown as it is now."""

import csv
import dataclasses
import io

import pytest

from app.analysis.adjudication_state import load_adjudication_state
from app.analysis.fit_cache import FitCache
from app.errors import NotFound
from app.imports.text_corrections import store_corrected_text_returning_version
from tests.adjudication.labelled import create_labelled_campaign, settle
from tests.annotation.hits.campaigns import NOW, create_annotator, execute_sql, submit_scores, try_to_lease_hit

PAGE = "/admin/campaigns/verbs/adjudicate"
API = "/api/v1/campaigns/verbs/adjudications"

# An item that was imported and settled after the answers were read, or that a replica does not have yet.
ADD_NEWER_ITEM = """
    INSERT INTO items (campaign_id, number, external_id, shown, fields)
    SELECT campaign_id, 4, 'v4', 'verb 4', fields FROM items WHERE number = 0
"""


@pytest.fixture
def engine(app):
    return app.state.database


class FitsOfLaggingReplica(FitCache):
    """Fits whose answers stay as they were first read."""

    def __init__(self):
        super().__init__()
        self.first_answers = None

    async def load_answers(self, engine, slug, **chosen):
        self.first_answers = self.first_answers or await super().load_answers(engine, slug, **chosen)
        return self.first_answers

    async def load_answers_and_fit(self, engine, slug, result_key, fit, **chosen):
        answers = await self.load_answers(engine, slug)
        return answers, fit(answers)


async def test_a_corrected_text_is_shown_at_once_in_the_queue_the_open_item_and_to_programs(
    researcher, api_client, engine
):
    campaign = await create_labelled_campaign(engine)
    assert "verb 1" in (await researcher.get(PAGE, params={"item": "v1"})).text
    assert "verb 1" in (await api_client.get(API)).text
    async with engine.begin() as connection:
        await store_corrected_text_returning_version(connection, campaign.slug, "v1", "mended text", now=NOW)
    page = await researcher.get(PAGE, params={"item": "v1"})
    assert page.text.count("mended text") >= 2
    assert "verb 1" not in page.text
    assert "mended text" in (await api_client.get(API)).text


async def test_a_final_label_of_an_item_that_is_newer_than_the_answers_is_left_out(engine):
    campaign, fits = await create_labelled_campaign(engine), FitsOfLaggingReplica()
    await fits.load_answers(engine, campaign.slug)
    await execute_sql(engine, ADD_NEWER_ITEM)
    await settle(engine, campaign, "v4", "no")
    await settle(engine, campaign, "v1", "no")
    state = await load_adjudication_state(fits, engine, engine, campaign.slug, "")
    assert state.settled_items == {1}
    assert [*state.item_numbers("settled")] == [1]
    assert [one.judged for one in state.agreement_with_final_labels()] == [1, 1, 1, 1]


@pytest.mark.parametrize("name", ["item_labels", "labels"])
async def test_files_leave_out_a_final_label_of_an_item_that_is_newer_than_the_answers(app, researcher, engine, name):
    campaign = await create_labelled_campaign(engine)
    app.state.fits = fits = FitsOfLaggingReplica()
    await fits.load_answers(engine, campaign.slug)
    await execute_sql(engine, ADD_NEWER_ITEM)
    await settle(engine, campaign, "v4", "no")
    reply = await researcher.get(f"/admin/campaigns/verbs/export/{name}.csv")
    assert reply.status_code == 200
    assert not {row["adjudicated"] for row in csv.DictReader(io.StringIO(reply.text))} - {""}


async def test_the_next_item_needs_no_new_fit_within_a_minute_and_later_has_the_newest_answers(
    researcher, engine, monkeypatch
):
    campaign = await create_labelled_campaign(engine)
    assert "0 of 2 items" in (await researcher.get(PAGE)).text
    visit = await create_annotator(engine, campaign, "eve")
    hit = await try_to_lease_hit(engine, visit)
    await submit_scores(engine, visit, hit, scores=[1.0 for _ in hit.items])
    await settle(engine, campaign, "v3", "no")
    going_on = (await researcher.get(PAGE, params={"after": "v3"})).text
    assert "1 of 2 items without a majority is settled." in going_on
    monkeypatch.setattr("app.analysis.adjudication_state.MAX_QUEUE_AGE_SECONDS", 0.0)
    later = (await researcher.get(PAGE, params={"after": "v3"})).text
    assert "1 of 2 items" not in later


async def test_a_campaign_that_was_deleted_meanwhile_is_refused_as_not_found(engine):
    campaign = await create_labelled_campaign(engine)
    with pytest.raises(NotFound) as refusal:
        await settle(engine, dataclasses.replace(campaign, id=campaign.id + 1000), "v1", "no")
    assert refusal.value.code == "campaign_not_found"
