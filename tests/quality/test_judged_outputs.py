"""An annotator's page names what was judged: the output of a segment, and the answers by every criterion."""

import pytest

from app.annotation.hits import submission
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, AnswerByCriterion
from app.quality.annotator_answers import load_answer_lines_of_annotator
from app.quality.judged_items import load_judged_items_and_total
from tests.annotation.hits.campaigns import NOW, create_annotator, try_to_lease_hit
from tests.annotation.hits.systems import create_campaign_of_systems

CRITERIA = [
    {"name": "adequacy", "question": "How much of the meaning?"},
    {"name": "fluency", "question": "How well does it read?"},
]
ONE_SEGMENT = "system,segment,output\nape,s0,a text of ape\nbee,s0,a text of bee\n"
TWO_SEGMENTS = ONE_SEGMENT + "ape,s1,another text of ape\nbee,s1,another text of bee\n"


async def judge(engine, campaign, name, *, adequacy, fluency):
    """Let a person judge one task, all of its outputs alike, and return the task's segment."""
    me = await create_annotator(engine, campaign, name)
    hit = await try_to_lease_hit(engine, me)
    scores = {"adequacy": adequacy, "fluency": fluency}
    answer = AnswerByCriterion({name: Answer(dict.fromkeys(hit.items, score)) for name, score in scores.items()})
    async with borrow_autocommit_driver(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, answer, now=NOW)
    return hit.segment


@pytest.fixture
async def judged_systems(engine):
    campaign = await create_campaign_of_systems(engine, ONE_SEGMENT, criteria=CRITERIA)
    await judge(engine, campaign, "one", adequacy=80.0, fluency=30.0)
    await judge(engine, campaign, "two", adequacy=90.0, fluency=70.0)
    return campaign


async def test_the_page_shows_segment_output_and_every_criterion(researcher, judged_systems):
    page = (await researcher.get(f"/admin/campaigns/{judged_systems.slug}/annotators/A1")).text
    items = page.partition('<table class="judged-items">')[2].partition("</table>")[0]
    for words in ("a text of ape", "a text of bee", "s0", "adequacy", "fluency", ">80<", ">30<"):
        assert words in items
    answers = page.partition('<table class="answers">')[2].partition("</table>")[0]
    for words in ("s0", "adequacy", "fluency", ">80<", ">30<"):
        assert words in answers


async def test_answers_are_compared_with_answers_about_the_same_output_by_each_criterion(engine, judged_systems):
    async with engine.connect() as connection:
        first = (await connection.exec_driver_sql("SELECT min(id) FROM annotators")).scalar_one()
        rows, total = await load_judged_items_and_total(connection, judged_systems, first, limit=1)
    assert total == 2
    assert [(row.criterion, row.answer_text, round(row.disagreement or 0)) for row in rows] == [
        ("adequacy", "80", 10),
        ("fluency", "30", 40),
    ]


async def test_outputs_of_a_system_for_other_segments_are_no_comparison(engine):
    campaign = await create_campaign_of_systems(engine, TWO_SEGMENTS, criteria=CRITERIA)
    segments = [await judge(engine, campaign, name, adequacy=50.0, fluency=50.0) for name in ("one", "two")]
    assert len({*segments}) == 2
    async with engine.connect() as connection:
        first = (await connection.exec_driver_sql("SELECT min(id) FROM annotators")).scalar_one()
        rows, _ = await load_judged_items_and_total(connection, campaign, first, limit=9)
    assert {row.disagreement for row in rows} == {None}


async def test_a_line_of_an_answer_has_the_segment_and_the_answers_by_every_criterion(engine, judged_systems):
    async with engine.connect() as connection:
        first = (await connection.exec_driver_sql("SELECT min(id) FROM annotators")).scalar_one()
        (line,) = await load_answer_lines_of_annotator(connection, judged_systems, first, limit=9)
    assert line.segment == "s0"
    assert line.by_criterion == {"adequacy": ["80", "80"], "fluency": ["30", "30"]}
    assert [answer for _, answer in line.judged] == ["80", "80"]
