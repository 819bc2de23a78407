import numpy as np
import pytest
from sqlalchemy import text

from app.dashboard.table import DASHBOARD_ITEMS_PER_PAGE, ItemsView, load_items_page
from app.inference.observations.tally import Tally
from app.inference.ratings.moderated_means import moderated_means_of_tally
from app.inference.ratings.shrunken_means import fit_item_shrinkage, shrink_means_to_prior
from tests.annotation.hits.campaigns import create_annotator, create_running_campaign, submit_scores, try_to_lease_hit

UNKNOWN = moderated_means_of_tally(Tally.empty(45))


@pytest.fixture
async def campaign(engine):
    """Create 45 items whose scores decrease with their number, except that `verb 7` and `verb 8` are equal."""
    campaign = await create_running_campaign(engine, items=45)
    async with engine.begin() as connection:
        values = "score = 1 - subject / 100.0, variance = subject + 1, judgments = 1"
        await connection.execute(text(f"UPDATE posteriors SET {values}"))
        await connection.execute(text("UPDATE posteriors SET score = 0.5, judgments = 2 WHERE subject IN (7, 8)"))
        await connection.execute(text("UPDATE items SET shown = '50% off_' WHERE number = 3"))
    return campaign


async def numbers(engine, campaign, **view):
    async with engine.connect() as connection:
        return [
            line.item.number
            for line in (await load_items_page(connection, campaign.criteria[0], ItemsView(**view), UNKNOWN)).rows
        ]


async def test_the_first_page_holds_the_highest_scores(engine, campaign):
    assert await numbers(engine, campaign) == [0, 1, 2, 3, 4, 5, 6, *range(9, 22)]


async def test_ascending_begins_with_the_lowest_and_equal_scores_stand_by_number(engine, campaign):
    assert (await numbers(engine, campaign, order="up"))[:3] == [7, 8, 44]


async def test_other_columns_sort_too(engine, campaign):
    assert (await numbers(engine, campaign, sort="variance"))[0] == 44
    assert (await numbers(engine, campaign, sort="judgments"))[:3] == [7, 8, 0]
    assert (await numbers(engine, campaign, sort="name", order="up"))[:3] == [3, 0, 1]


async def test_items_without_judgments_come_last_by_score_and_variance(engine, campaign):
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE posteriors SET judgments = 0 WHERE subject IN (0, 44)"))
    for order in ("up", "down"):
        for sort in ("score", "variance"):
            assert set((await numbers(engine, campaign, sort=sort, order=order, page=3))[-2:]) == {0, 44}
    assert (await numbers(engine, campaign, sort="name", order="up"))[1] == 0


async def test_pages_together_show_every_item_once_with_its_place(engine, campaign):
    async with engine.connect() as connection:
        pages = [
            await load_items_page(connection, campaign.criteria[0], ItemsView(page=page), UNKNOWN) for page in (1, 2, 3)
        ]
    lines = [line for page in pages for line in page.rows]
    assert sorted(line.item.number for line in lines) == list(range(45))
    assert [line.place for line in lines] == list(range(1, 46))
    assert {page.count for page in pages} == {3}


async def test_a_page_beyond_the_last_is_the_first(engine, campaign):
    async with engine.connect() as connection:
        page = await load_items_page(connection, campaign.criteria[0], ItemsView(page=99, search="verb"), UNKNOWN)
    assert (page.number, len(page.rows), page.total) == (1, DASHBOARD_ITEMS_PER_PAGE, 44)


async def test_a_search_finds_parts_of_texts_and_ids_whatever_their_case(engine, campaign):
    assert await numbers(engine, campaign, search="VERB 12") == [12]
    assert await numbers(engine, campaign, search="v3", order="up") == [*range(39, 29, -1), 3]


async def test_wildcards_in_a_search_are_letters(engine, campaign):
    assert await numbers(engine, campaign, search="0% off_") == [3]
    assert await numbers(engine, campaign, search="%") == [3]


async def test_a_search_without_a_hit_is_an_empty_page(engine, campaign):
    async with engine.connect() as connection:
        page = await load_items_page(connection, campaign.criteria[0], ItemsView(search="nowhere"), UNKNOWN)
    assert (page.rows, page.total, page.count) == ([], 0, 1)


async def test_each_line_has_the_95_percent_interval_of_its_posterior(engine):
    campaign = await create_running_campaign(engine)
    me = await create_annotator(engine, campaign)
    await submit_scores(engine, me, await try_to_lease_hit(engine, me), scores=[100.0] * 5)
    async with engine.connect() as connection:
        page = await load_items_page(connection, campaign.criteria[0], ItemsView(), UNKNOWN)
    best, worst = page.rows[0], page.rows[-1]
    # Beta(2, 1) has the distribution function x^2, Beta(1, 1) has x.
    np.testing.assert_allclose([best.low, best.high], 100 * np.sqrt([0.025, 0.975]))
    np.testing.assert_allclose([worst.low, worst.high], [2.5, 97.5])


async def test_each_line_has_the_mean_and_the_calibrated_interval_of_its_item(engine):
    campaign = await create_running_campaign(engine, items=5)
    known = moderated_means_of_tally(
        Tally.empty(5).with_judgments_added([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [0.2, 0.6, 0.5, 0.7, 0.3])
    )
    async with engine.connect() as connection:
        lines = (await load_items_page(connection, campaign.criteria[0], ItemsView(), known)).rows
    low, high = known.interval()
    for line in lines[:3]:
        number = line.item.number
        values = [line.mean, line.calibrated_low, line.calibrated_high]
        assert values == pytest.approx([100 * known.mean[number], 100 * low[number], 100 * high[number]])
    assert [line.calibrated for line in sorted(lines, key=lambda line: line.item.number)] == [True] * 3 + [False] * 2


async def test_lines_show_the_shrunken_interval_beside_the_plain_mean_where_means_are_shrunk(engine):
    campaign = await create_running_campaign(engine, items=5)
    tally = Tally.empty(5).with_judgments_added([0, 0, 1, 1, 2], [0, 1, 0, 1, 0], [0.2, 0.6, 0.5, 0.7, 0.3])
    known, shrinkage, shrunken = (
        moderated_means_of_tally(tally),
        fit_item_shrinkage(tally),
        shrink_means_to_prior(tally),
    )
    async with engine.connect() as connection:
        plain = (await load_items_page(connection, campaign.criteria[0], ItemsView(), known)).rows
        lines = (await load_items_page(connection, campaign.criteria[0], ItemsView(), known, shrinkage)).rows
    for one, line in zip(plain, lines, strict=True):
        number = line.item.number
        assert one.displayed_interval_or_none == ((one.calibrated_low, one.calibrated_high) if number < 3 else None)
        if number < 3:
            assert line.displayed_interval_or_none == pytest.approx(
                (100 * shrunken.low[number], 100 * shrunken.high[number])
            )
            assert line.shrunken_score == pytest.approx(100 * shrunken.score[number])
            assert (line.mean, line.calibrated_low) == (one.mean, one.calibrated_low)
        else:
            assert line.displayed_interval_or_none is None


def test_the_address_of_a_view_leaves_out_what_is_as_usual():
    assert ItemsView().query() == "?"
    assert ItemsView(search="a b", page=3, item="v 1").query(page=4) == "?search=a+b&page=4&item=v+1"


def test_a_column_sorts_down_first_and_turns_around_when_pressed_again_names_up():
    assert ItemsView(page=3).query_after_click_on_column("variance") == "?sort=variance"
    assert ItemsView().query_after_click_on_column("score") == "?order=up"
    assert ItemsView(order="up").query_after_click_on_column("score") == "?"
    assert ItemsView().query_after_click_on_column("name") == "?sort=name&order=up"
