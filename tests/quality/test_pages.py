"""Rules and checks for researchers: on a page and by the API."""

import numpy as np
import pytest_asyncio

from app.quality import peer_agreement
from app.quality.listings import load_check_lines_with_outcome_counts
from app.quality.run_rules import scan_annotators_and_record_findings
from tests.annotation.hits.campaigns import NOW, create_running_campaign, execute_sql
from tests.annotation.hits.systems import create_campaign_of_systems
from tests.api.conftest import API, api_client  # noqa: F401  (a fixture)
from tests.campaigns.drafts import create_launched_campaign
from tests.quality.test_look import PEOPLE, answered, careful
from tests.quality.test_reach import words

ITEMS = "id,text,check,expected,tolerance\n" + "".join(f"v{k},verb {k},,,\n" for k in range(12))
CHECKS = "g1,to walk,gold,80,10\na1,Set this to 100,attention,100,5\n"


@pytest_asyncio.fixture
async def campaign_with_findings(app):
    """Create a campaign with a finding of the rules."""
    engine = app.state.database
    campaign = await create_running_campaign(engine, items=40, judgments_per_item=15, quality_preset="strict")
    _, time = await answered(engine, campaign, PEOPLE, np.random.default_rng(4))
    await scan_annotators_and_record_findings(engine, campaign.id, now=time)
    return f"/campaigns/{campaign.slug}"


# Older than the other findings, so that the newest one is another.
GOLD_FINDING = """
    INSERT INTO findings (id, campaign_id, annotator_id, rule, action, seen, said, found_at)
    OVERRIDING SYSTEM VALUE
    SELECT -1, campaign_id, id, 'gold', 'warn', '{}', 'Failed 3 of 3 gold items.', :now
    FROM named_annotators WHERE name = 'A7'
"""


async def test_the_page_says_what_rules_saw_and_did(campaign_with_findings, researcher):
    page = (await researcher.get(f"/admin{campaign_with_findings}/checks")).text
    assert "69 of 69 answers are like the previous one (100 %)" in page
    assert f'<a href="/admin{campaign_with_findings}/annotators/A7">Look' in page
    assert "<b>held</b>" in page
    assert 'name="too_fast.share_percent" value="33"' in page
    assert "Slow answers are ignored, because people take breaks." in page


async def test_the_overview_leads_there(campaign_with_findings, researcher):
    page = (await researcher.get(f"/admin{campaign_with_findings}")).text
    assert "<b>1 needs your decision.</b> A7: " in page
    assert f'<a class="button" href="/admin{campaign_with_findings}/annotators/A7">Review A7</a>' in page


async def test_a_failed_gold_item_is_the_first_reason_that_the_overview_gives(app, campaign_with_findings, researcher):
    await execute_sql(app.state.database, GOLD_FINDING, now=NOW)
    page = words((await researcher.get(f"/admin{campaign_with_findings}")).text)
    assert "1 needs your decision. A7: Failed 3 of 3 gold items. Noted when the rule flagged A7." in page


async def test_with_several_people_to_decide_about_the_overview_leads_to_the_table(
    app, campaign_with_findings, researcher
):
    await execute_sql(app.state.database, GOLD_FINDING.replace("'A7'", "'A1'"), now=NOW)
    page = (await researcher.get(f"/admin{campaign_with_findings}")).text
    assert "<b>2 need your decision.</b> A1: Failed 3 of 3 gold items." in page
    assert f'<a class="button" href="/admin{campaign_with_findings}/checks">Review</a>' in page


ANSWER_CHECK = """
    WITH people AS (
        INSERT INTO annotators (campaign_id, platform, worker_id, pseudonym, created_at)
        SELECT :campaign, 'link', k, k, :now FROM generate_series(1, cardinality(CAST(:values AS int[]))) AS k
        RETURNING id, worker_id
    ), visits AS (
        INSERT INTO assignments (campaign_id, annotator_id, external_id, arrival, arrived_at)
        SELECT :campaign, id, 'visit', '{}', :now FROM people RETURNING id, annotator_id
    ), hits AS (
        INSERT INTO hits (campaign_id, annotator_id, assignment_id, items, issued_at, expires_at, closed_at)
        SELECT :campaign, annotator_id, id, '{}', :now, :now, :now FROM visits RETURNING id, annotator_id
    )
    INSERT INTO check_answers (campaign_id, hit_id, check_number, annotator_id, value, answered_at)
    SELECT :campaign, hits.id, 0, annotator_id, (CAST(:values AS int[]))[CAST(worker_id AS int)], :now
    FROM hits JOIN people ON people.id = annotator_id
"""


async def answered_gold_item(engine, values):
    """Create a campaign whose gold item got these values, each from another annotator."""
    campaign = await create_launched_campaign(engine, ITEMS + CHECKS, checks_percent=20)
    await execute_sql(engine, ANSWER_CHECK, campaign=campaign.id, now=NOW, values=values)
    return campaign


async def check_lines(engine, campaign):
    async with engine.connect() as connection:
        return await load_check_lines_with_outcome_counts(connection, campaign)


async def test_the_line_of_a_check_counts_its_answers_its_failures_and_the_values_by_tenths(app):
    engine = app.state.database
    campaign = await answered_gold_item(engine, [80, 85, 10])
    gold, attention = await check_lines(engine, campaign)
    assert (gold.answers, gold.failed, gold.probably_wrong) == (3, 1, False)
    assert [list(one.counts) for one in gold.histograms] == [[0, 1, 0, 0, 0, 0, 0, 0, 2, 0]]
    assert (attention.answers, attention.failed, list(attention.histograms)) == (0, 0, [])


async def test_the_line_of_a_check_whose_answer_is_a_place_has_no_histogram(app):
    engine, pair = app.state.database, "g1,to walk,gold,1,\ng2,to flummox,gold,2,\n"
    campaign = await create_launched_campaign(
        engine, ITEMS + pair, checks_percent=20, design="ranking", items_per_hit=2
    )
    await execute_sql(engine, ANSWER_CHECK, campaign=campaign.id, now=NOW, values=[1])
    lines = await check_lines(engine, campaign)
    assert [(line.external_id, line.expected, list(line.histograms)) for line in lines] == [
        ("g1", "place 1", []),
        ("g2", "place 2", []),
    ]


async def test_a_check_is_doubted_if_more_than_half_of_five_answers_or_more_failed_it(app):
    engine = app.state.database
    for values, is_wrong in (([10] * 4, False), ([10] * 3 + [80] * 2, True), ([10] * 3 + [80] * 3, False)):
        lines = await check_lines(engine, await answered_gold_item(engine, values))
        assert [line.probably_wrong for line in lines] == [is_wrong, False], values


async def test_a_gold_item_that_nearly_everybody_fails_is_said_to_be_probably_wrong(app, researcher):
    campaign = await answered_gold_item(app.state.database, [10] * 6)
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
    assert "<b>g1</b> is probably wrong: 6 of 6 answers failed it." in page
    assert "70 to 90" in page


async def test_the_page_names_the_people_whom_the_findings_doubt_and_leads_to_them(app, researcher):
    people = {f"careful {k}": (careful, 25) for k in range(6)} | {"guesser": (lambda _, rng: rng.random(), 25)}
    campaign = await create_running_campaign(app.state.database, items=40, judgments_per_item=15)
    await answered(app.state.database, campaign, people, np.random.default_rng(4))
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
    assert (
        "1 of 7 annotators seems not to agree with the others: A7. Without this annotator, the others agree more"
        in page
    )
    assert f'<a href="/admin/campaigns/{campaign.slug}/annotators/A7">A7</a>' in page
    findings = (await researcher.get(f"/admin/campaigns/{campaign.slug}/analysis/findings")).text
    assert "1 of 7 annotators seems not to agree with the others: A7." in findings


async def test_of_many_answers_the_page_shows_a_finding_only_if_the_analysis_has_made_it(app, researcher, monkeypatch):
    people = {f"careful {k}": (careful, 25) for k in range(6)} | {"guesser": (lambda _, rng: rng.random(), 25)}
    campaign = await create_running_campaign(app.state.database, items=40, judgments_per_item=15)
    await answered(app.state.database, campaign, people, np.random.default_rng(4))
    monkeypatch.setattr(peer_agreement, "MAX_ANSWERS_COMPARED_INLINE", 1)
    address, sentence = f"/admin/campaigns/{campaign.slug}", "seems not to agree with the others: A7."
    assert sentence not in (await researcher.get(f"{address}/checks")).text
    await researcher.get(f"{address}/analysis/findings")
    assert sentence in (await researcher.get(f"{address}/checks")).text


async def test_marks_of_agreement_show_their_interval_on_the_page_and_in_the_api_alike(
    app,
    researcher,
    api_client,  # noqa: F811  (the fixture)
):
    people = {f"careful {k}": (careful, 25) for k in range(6)} | {"guesser": (lambda _, rng: rng.random(), 25)}
    campaign = await create_running_campaign(app.state.database, items=40, judgments_per_item=15)
    await answered(app.state.database, campaign, people, np.random.default_rng(4), rounds=5)
    matrix = (await api_client.get(f"{API}/campaigns/{campaign.slug}/quality-matrix")).json()
    cells = {row["annotator"]: row["rules"]["agreement"] for row in matrix["annotators"]}
    assert cells["A7"]["state"] in {"unknown", "flagged"}
    assert {cells[f"A{k}"]["state"] for k in range(1, 7)} == {"fine"}
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text
    for cell in cells.values():
        assert cell["figure"]
        assert cell["figure"] in cell["evidence"]
        assert cell["figure"] in page
    assert "nothing found" in page
    assert "✓</span> fine" not in page


async def test_without_places_for_checks_the_page_does_not_ask_for_gold_items(app, researcher):
    campaign = await create_campaign_of_systems(
        app.state.database, design="baseline", design_settings={"baseline": "ape"}, items_per_hit=2
    )
    page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text)
    assert "This campaign cannot have gold or attention items: every task compares an item with the same" in page
    assert "To add some, upload" not in page


async def test_for_systems_the_page_asks_for_gold_items_of_segments(app, researcher):
    campaign = await create_campaign_of_systems(app.state.database, items_per_hit=2)
    page = words((await researcher.get(f"/admin/campaigns/{campaign.slug}/checks")).text)
    assert "To add some, upload outputs for your segments with gold or attention in a column check" in page
