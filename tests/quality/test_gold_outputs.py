"""Pages and exports about a campaign of systems whose HITs show gold outputs: researchers see them apart."""

import csv
import io
import zipfile

import pytest

from app.annotation.hits import submission
from app.annotation.hits.campaign_index import PosteriorCache
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer
from app.designs.remarks import Remark
from tests.annotation.hits.campaigns import NOW, create_annotator, execute_sql, fetch_value, try_to_lease_hit
from tests.annotation.hits.systems import SYSTEMS, create_campaign_of_systems
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import replay_is_clean
from tests.exports.test_export import written

HEADER = "system,segment,output,source,check,expected,tolerance\n"
OUTPUTS = HEADER + "".join(f"{name},s{k},{name} on {k},source {k},,,\n" for k in range(4) for name in SYSTEMS)
GOLD = "".join(f"bad,s{k},broken {k},,gold,0,15\n" for k in range(4))


@pytest.fixture
def engine(app):
    return app.state.database


async def answered(engine, *, hits=4, **settings):
    """A campaign in which a careful and a careless person have met a check in every HIT, and flagged it."""
    chosen = {"items_per_hit": 3, "checks_percent": 50, "judgments_per_item": 50, "repeat_items": False}
    chosen |= {"comment_on": "both", "flag_on": "both"} | settings
    campaign = await create_campaign_of_systems(engine, OUTPUTS + GOLD, **chosen)
    await execute_sql(engine, "UPDATE campaigns SET checks_percent = 100")
    for name, value in (("careful", 0.0), ("careless", 50.0)):
        me, cache = await create_annotator(engine, campaign, name), PosteriorCache()
        for _ in range(hits):
            hit = await try_to_lease_hit(engine, me, cache=cache)
            is_check = dict(zip(hit.items, (" / " in shown for shown in hit.ids), strict=True))
            values = {item: value if check else 60.0 for item, check in is_check.items()}
            remarks = {str(item): Remark("odd", campaign.flag_reasons[0]) for item, check in is_check.items() if check}
            async with borrow_autocommit_driver(engine) as connection:
                await submission.store_answer_of_hit_and_return_receipt(
                    connection, me, hit.id, Answer(values, remarks=remarks), now=NOW
                )
    await execute_sql(engine, "UPDATE campaigns SET checks_percent = 50")  # more than half is no setting
    return campaign


PAGES = ("", "/annotators", "/annotators/A1", "/checks", "/items?segment=s1", "/analysis", "/remarks", "/export",
         "/settings/quality", "/plan", "/log")  # fmt: skip


@pytest.mark.parametrize("settings", [{}, {"design": "rating", "items_per_hit": None}])
async def test_every_page_and_export_of_the_campaign_works(researcher, engine, settings):
    """With one output in each task, the whole task is a check, and its answer has no item."""
    campaign = await answered(engine, **settings)
    for page in PAGES:
        reply = await researcher.get(f"/admin/campaigns/{campaign.slug}{page}")
        assert reply.status_code == 200, page
    zipped = await researcher.get(f"/admin/campaigns/{campaign.slug}/export/everything.zip")
    with zipfile.ZipFile(io.BytesIO(zipped.content)) as files:
        assert "responses.csv" in {name.rpartition("/")[2] for name in files.namelist()}
    assert await replay_is_clean(engine, campaign.slug)


async def test_the_table_of_annotators_counts_the_checks_that_were_passed(researcher, engine):
    campaign = await answered(engine)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators")).text
    assert '<td class="figure" data-head="Checks passed">4 of 4</td>' in page
    assert '<td class="figure" data-head="Checks passed">0 of 4</td>' in page


async def test_exports_of_responses_and_segments_have_outputs_of_systems_alone(engine):
    campaign = await answered(engine)
    for name in ("responses", "segments", "items"):
        content = await written(engine, campaign.slug, name)
        assert "broken" not in content
        assert "bad / " not in content
    rows = [*csv.DictReader(io.StringIO(await written(engine, campaign.slug, "segments")))]
    assert (
        sum(int(row["judgments"]) for row in rows)
        == 16
        == await fetch_value(engine, "SELECT sum(cardinality(items)) FROM responses")
    )


async def test_programs_read_the_checks_with_their_segments_and_failures(api_client, engine):  # noqa: F811
    campaign = await answered(engine)
    checks = (await api_client.get(f"{API}/campaigns/{campaign.slug}/checks")).json()
    assert [(one["external_id"], one["segment"], one["answers"], one["failed"]) for one in checks] == [
        (f"bad / s{k}", f"s{k}", 2, 1) for k in range(4)
    ]


async def test_the_findings_of_a_careless_annotator_are_those_of_any_gold_item(researcher, engine):
    campaign = await answered(engine)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A2")).text
    assert "bad / s1" in page
    assert "0 to 15" in page
