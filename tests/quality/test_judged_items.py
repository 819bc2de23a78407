"""An annotator's items, each answer beside the others' answers."""

from app.designs.categories import Categories
from app.designs.ordinal import Ordinal
from app.designs.ranking import Ranking
from app.designs.slider import Slider
from app.quality.judged_items import disagreement_of_place_with_others_or_none, load_judged_items_and_total
from app.quality.value_histograms import value_counts_of_bins
from app.text.durations import format_duration
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit
from tests.quality.deciding import decide


async def campaign_of_three(engine):
    """Create a campaign with three annotators who judge the same five items; the third is off by 10 points an item."""
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


async def test_a_label_stands_in_the_middle_of_its_part_and_the_end_of_a_scale_in_the_last_tenth(engine):
    places = []
    for design, score in (("ordinal", 4.0), ("slider", 100.0)):
        campaign = await create_running_campaign(engine, items=5, judgments_per_item=3, design=design)
        for person in ("one", "another"):
            me = await create_annotator(engine, campaign, person)
            hit = await try_to_lease_hit(engine, me)
            await submit_scores(engine, me, hit, scores=[score] * len(hit.items))
        async with engine.connect() as connection:
            newest = (await connection.exec_driver_sql("SELECT max(id) FROM annotators")).scalar_one()
            rows, _ = await load_judged_items_and_total(connection, campaign, newest, limit=1)
        places.append((rows[0].position, list(rows[0].others)))
    assert places == [(0.9, [0, 0, 0, 0, 1]), (1.0, [0] * 9 + [1])]


def test_disagreement_is_a_distance_of_scores_and_a_share_of_labels():
    assert disagreement_of_place_with_others_or_none(Slider(), 0.25, [0.5, 1.0]) == 50.0
    assert disagreement_of_place_with_others_or_none(Categories(), 1.0, [1.0, 0.0, 2.0, 1.0]) == 50.0
    assert disagreement_of_place_with_others_or_none(Categories(), 1.0, []) is None


def test_values_are_counted_by_tenths_or_labels_and_not_where_they_are_places_of_an_order():
    nan, five_hits = float("nan"), range(5)
    assert value_counts_of_bins(Slider(), [0.0, 9.9, 10.0, nan, 100.0], five_hits) == [2, 1, 0, 0, 0, 0, 0, 0, 0, 1]
    assert value_counts_of_bins(Ordinal(), [0.0, 4.0, 4.0, nan, 1.0], five_hits) == [1, 1, 0, 0, 2]
    assert value_counts_of_bins(Slider(), [nan] * 5, five_hits) == [0] * 10
    assert value_counts_of_bins(Ranking(), [1.0, 2.0, 3.0, 4.0, 5.0], five_hits) == []


def test_durations_are_read_at_a_glance():
    assert [format_duration(seconds) for seconds in (None, 0.4, 2, 65, 599, 720, 7199, 11100)] == [
        *("–", "0:00", "0:02", "1:05", "9:59", "12 min", "2 h 00 min", "3 h 05 min"),
    ]
