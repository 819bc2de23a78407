"""The methods paragraph has the numbers of the other pages, and says what is not available instead of guessing."""

import json
from datetime import timedelta
from importlib.metadata import version

import pytest

from app.analysis.fit_cache import FitCache
from app.database.audit_log import Actor
from app.exports.methods_paragraph import load_methods_text
from app.quality import decisions
from app.record import revisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    store_settings,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.systems import answer_hits_of_systems, create_campaign_of_systems
from tests.campaigns.drafts import create_launched_campaign
from tests.exports.test_everything import CAMPAIGNS, create_answered_campaign, opened_zip

PEOPLE = 4


async def methods_text(engine, campaign, fits=None):
    return await load_methods_text(engine, campaign.slug, fits or FitCache(), now=NOW)


async def let_people_answer(engine, campaign, tasks=3):
    """Let people answer tasks, each in 30 seconds; the scores of an item are nearly the same."""
    for person in range(PEOPLE):
        me = await create_annotator(engine, campaign, f"person {person}")
        for task in range(tasks):
            when = NOW + timedelta(minutes=task)
            hit = await try_to_lease_hit(engine, me, now=when)
            scores = [float((37 * item) % 80 + 5 * ((person + task * item) % 4)) for item in hit.items]
            await submit_scores(engine, me, hit, scores=scores, now=when + timedelta(seconds=30))


async def exclude(engine, campaign, place, actor):
    ids = [number for (number,) in await fetch_rows(engine, "SELECT id FROM annotators ORDER BY id")]
    async with engine.begin() as connection:
        await decisions.exclude_annotator(connection, campaign, ids[place], reason="fast", actor=actor, now=NOW)
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)


async def table_row(engine, campaign, table_name, measure):
    table = await FitCache().load_cached_or_fit_table(engine, campaign.slug, table_name)
    names = [column.name for column in table.columns]
    return next(cells for row in table.rows if (cells := dict(zip(names, row, strict=True)))["measure"] == measure)


async def test_people_exclusions_judgments_and_pay_are_those_of_the_pages(engine):
    campaign = await create_running_campaign(
        engine, items=10, judgments_per_item=30, repeat_items=True, pay_per_hit=0.5, currency="GBP"
    )
    await let_people_answer(engine, campaign, tasks=6)
    await exclude(engine, campaign, 0, Actor("rule too_fast", "server"))
    await exclude(engine, campaign, 1, Actor("ada", "page"))
    text = await methods_text(engine, campaign)
    assert f"We collected judgments of 10 items with Easel {version('easel')} (ranking with scores; " in text
    assert "; update law `easl`; rule `easl`)." in text
    assert "2 annotators answered 12 tasks that count." in text
    assert "Of 4 annotators who answered, 2 are excluded (1: decision of a researcher; 1: rule “" in text
    assert "rule “too_fast”" not in text
    assert f"Answers were collected on {NOW:%Y-%m-%d} (UTC). The campaign was running on" in text
    assert "Annotators were paid £0.50 a task, which is £60.00 an hour at the median time of a task." in text
    assert "Judgments that count: 60, 6.0 per item on average, " in text


async def test_participants_are_described_by_their_answers_and_those_not_admitted_are_counted(engine):
    sex, age = "sex: What is your sex? | female | male | other", "age: How old are you? | number from 18 to 99"
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=30, repeat_items=True)
    await let_people_answer(engine, campaign, tasks=2)
    await exclude(engine, campaign, 3, Actor("ada", "page"))
    await store_settings(engine, questions=[sex, age, "why: Why?"])
    first = await fetch_value(engine, "SELECT min(id) FROM annotators")
    for place, (sex, age) in enumerate([("male", "20"), ("female", "30"), ("male", "40"), ("other", "90")]):
        await store_visit(engine, campaign, first + place, "questions", "passed", sex=sex, age=age, why="secret")
    await store_visit(engine, campaign, first, "training", "taken")
    for name, outcome in (("q1", "full"), ("q2", "failed"), ("q3", "full")):
        await create_annotator(engine, campaign, name)
        newcomer = await fetch_value(engine, "SELECT max(id) FROM annotators")
        await store_visit(engine, campaign, newcomer, "questions", outcome)
    text = await methods_text(engine, campaign)
    assert "What is your sex? – female 1, male 2. How old are you? – mean 30.0 (SD 10.0, 20 to 40). " in text
    assert "Not admitted to the tasks: 1: screened out by an answer; 2: quota full." in text
    assert "secret" not in text


async def store_visit(engine, campaign, annotator, step, outcome, **said):
    await execute_sql(
        engine,
        """INSERT INTO visits (campaign_id, annotator_id, step, version, outcome, said, taken_at)
        VALUES (:campaign, :annotator, :step, 1, :outcome, CAST(:said AS jsonb), :now)""",
        campaign=campaign.id,
        annotator=annotator,
        step=step,
        outcome=outcome,
        said=json.dumps(said),
        now=NOW,
    )


async def test_agreement_and_reliability_are_those_of_the_analysis(engine):
    campaign = await create_running_campaign(engine, items=10, judgments_per_item=30, repeat_items=True)
    await let_people_answer(engine, campaign, tasks=6)
    text = await methods_text(engine, campaign)
    alpha = await table_row(engine, campaign, "agreement", "alpha_interval")
    halves = await table_row(engine, campaign, "agreement", "split_half_stepped_up")
    assert (
        f"Krippendorff’s alpha, interval: {alpha['value']:.2f} "
        f"(95 % interval {alpha['low']:.2f} to {alpha['high']:.2f})." in text
    )
    assert f"Reliability of the scores – {halves['title']}: {halves['value']:.2f} (" in text
    assert "Klaus Krippendorff. 2004." in text
    assert "Keisuke Sakaguchi" in text


async def test_comparisons_have_the_reliability_of_the_analysis(engine):
    campaign = await create_answered_campaign(engine, CAMPAIGNS["best-worst"][0], **CAMPAIGNS["best-worst"][1])
    text = await methods_text(engine, campaign)
    row = await table_row(engine, campaign, "reliability", "split_half_full")
    assert "Krippendorff’s alpha of preferences: " in text
    assert f"Reliability of the scores – {row['title']}: {row['value']:.2f} (interval not available)." in text
    assert "Keisuke Sakaguchi" not in text  # TrueSkill is another law


async def test_each_criterion_has_its_own_sentences(engine):
    campaign = await create_answered_campaign(engine, *CAMPAIGNS["criteria"][:1], **CAMPAIGNS["criteria"][1])
    text = await methods_text(engine, campaign)
    for name in ("adequacy", "fluency"):
        assert f"\n\n{name}: " in text
    assert text.count("Agreement between annotators – ") == 2


async def test_judgments_that_are_the_same_for_all_criteria_are_counted_once(engine):
    campaign = await create_answered_campaign(engine, *CAMPAIGNS["criteria"][:1], **CAMPAIGNS["criteria"][1])
    text = await methods_text(engine, campaign)
    assert text.count("Judgments that count") == 1
    first_paragraph = text.split("\n\n")[1]
    assert "Judgments that count, of each criterion: " in first_paragraph


async def test_categories_have_agreement_and_no_reliability_of_scores(engine):
    campaign = await create_answered_campaign(engine, *CAMPAIGNS["categories"][:1], **CAMPAIGNS["categories"][1])
    text = await methods_text(engine, campaign)
    assert "Agreement between annotators – Krippendorff’s alpha of labels: " in text
    assert "Reliability" not in text
    assert "The labels were “noun” and “verb”." in text


async def test_gold_and_attention_items_are_named(engine):
    checks = "".join(f"g{k},gold {k},gold,80\n" for k in range(3)) + "a1,Far right!,attention,100\n"
    content = "id,text,check,expected\n" + "".join(f"s{k},sentence {k},,\n" for k in range(8)) + checks
    campaign = await create_launched_campaign(engine, content, checks_percent=20)
    text = await methods_text(engine, campaign)
    assert "Annotators were checked with 3 gold items and 1 attention item in 20 % of their tasks." in text


async def test_the_questions_of_all_criteria_are_quoted(engine):
    campaign = await create_answered_campaign(engine, *CAMPAIGNS["criteria"][:1], **CAMPAIGNS["criteria"][1])
    text = await methods_text(engine, campaign)
    for criterion in campaign.criteria:
        assert f"{criterion.name} (“{criterion.question}”)" in text


async def test_systems_are_described_with_their_segments_and_outputs(engine):
    campaign = await create_campaign_of_systems(engine, design="rating", items_per_hit=1)
    await answer_hits_of_systems(engine, campaign, by=8, each=5)
    text = await methods_text(engine, campaign)
    assert "We collected judgments of 4 systems on 6 segments with Easel " in text
    assert "Each task showed 1 output of a system and asked: “" in text
    assert "Judgments that count: 40, 10.0 per system on average, " in text
    assert " item" not in text


async def test_several_outputs_of_a_task_are_those_for_one_segment(engine):
    campaign = await create_campaign_of_systems(engine)
    text = await methods_text(engine, campaign)
    assert "Each task showed 2 outputs of systems for the same segment and asked: “" in text


async def test_simulated_and_imported_answers_are_named(engine):
    campaign = await create_answered_campaign(engine, CAMPAIGNS["slider"][0], pay_per_hit=0.5)
    text = await methods_text(engine, campaign)
    assert "Simulated annotators answered 15 of the 15 tasks: these are not human data." in text
    assert "pay per hour: not available." in text
    await execute_sql(engine, "ALTER TABLE responses DISABLE TRIGGER USER")
    await execute_sql(engine, "UPDATE responses SET source = 'import'")
    assert "Imported, not answered in Easel: 15 tasks." in await methods_text(engine, campaign)
    await execute_sql(engine, "ALTER TABLE responses ENABLE TRIGGER USER")


@pytest.mark.parametrize("settings", [{}, {"design": "categories", "design_settings": {"labels": ["a", "b"]}}])
async def test_what_is_not_known_is_not_available(engine, settings):
    campaign = await create_launched_campaign(engine, "id,text\na,x\nb,y\nc,z\n", items_per_hit=2, **settings)
    text = await methods_text(engine, campaign)
    assert "0 annotators answered 0 tasks that count. No annotator was excluded." in text
    assert "Dates of collection: not available. Pay: not available." in text
    assert "Agreement and reliability: not available (no answers)." in text
    assert "Krippendorff" not in text
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await submit_scores(engine, me, hit, scores=[0.0] * len(hit.items))
    text = await methods_text(engine, campaign)
    assert "Agreement between annotators – not available (" in text
    assert ("Reliability of the scores – not available" in text) == campaign.design.is_ordered


@pytest.mark.usefixtures("app")
async def test_the_page_can_be_copied_and_the_zip_has_it(engine, researcher):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=30)
    await let_people_answer(engine, campaign, tasks=1)
    address = f"/admin/campaigns/{campaign.slug}/export"
    assert f'href="{address}/methods"' in (await researcher.get(address)).text
    page = (await researcher.get(f"{address}/methods")).text
    assert '<button data-copy="methods-text"' in page
    assert "Agreement between annotators – Krippendorff’s alpha, interval: " in page
    archive = await opened_zip(engine, campaign)
    assert "## References" in archive.read("METHODS.md").decode()
    assert "`METHODS.md` has numbers for the methods section" in archive.read("README.md").decode()
