"""An annotator's items, each answer beside the others' answers."""

from app.quality.judged_items import load_judged_items_and_total
from app.text.durations import format_duration
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit
from tests.quality.deciding import decide


async def campaign_of_three(engine):
    """Three annotators who judge the same five items; the third is off by 10 points an item."""
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=3)
    for person in range(3):
        me = await create_annotator(engine, campaign, f"person {person}")
        hit = await try_to_lease_hit(engine, me)
        scores = [50.0 + (10.0 * item if person == 2 else 0.0) for item in hit.items]
        await submit_scores(engine, me, hit, scores=scores)
    return campaign


async def test_the_largest_disagreement_comes_first_and_others_who_are_excluded_do_not_count(engine, researcher):
    campaign = await campaign_of_three(engine)
    async with engine.connect() as connection:
        third = 3 - 1 + (await connection.exec_driver_sql("SELECT min(id) FROM annotators")).scalar_one()
        rows, total = await load_judged_items_and_total(connection, campaign, third, limit=3)
    assert total == 5
    assert [(row.number, row.answer_text, round(row.disagreement or 0)) for row in rows] == [
        (4, "90", 40),
        (3, "80", 30),
        (2, "70", 20),
    ]
    assert rows[0].position == 0.9
    assert list(rows[0].others) == [0, 0, 0, 0, 0, 2, 0, 0, 0, 0]
    await decide(engine, campaign, "exclude", third - 1)
    async with engine.connect() as connection:
        rows, _ = await load_judged_items_and_total(connection, campaign, third, limit=1, order="time")
    assert sum(rows[0].others) == 1
    page = (await researcher.get(f"/admin/campaigns/{campaign.slug}/annotators/A3?order=time")).text
    assert "Others: 0 to 10: 0," in page
    assert "Largest disagreements first" in page


async def test_an_annotator_who_judged_alone_has_no_disagreement(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=3)
    me = await create_annotator(engine, campaign, "alone")
    await submit_scores(engine, me, await try_to_lease_hit(engine, me))
    async with engine.connect() as connection:
        alone = (await connection.exec_driver_sql("SELECT min(id) FROM annotators")).scalar_one()
        rows, _ = await load_judged_items_and_total(connection, campaign, alone, limit=5)
    assert [row.disagreement for row in rows] == [None] * 5


def test_durations_are_read_at_a_glance():
    assert [format_duration(seconds) for seconds in (None, 0.4, 2, 65, 599, 720, 7199, 11100)] == [
        *("–", "0:00", "0:02", "1:05", "9:59", "12 min", "2 h 00 min", "3 h 05 min"),
    ]
