"""Wins, ties and losses of systems and pairs, worked out by hand."""

import pytest

from app.analysis import win_loss_table
from app.analysis.available_methods import load_available_methods
from app.analysis.result_types import Options
from app.database.bulk import open_snapshot
from app.inference.ground.inestimable import Inestimable
from app.record.campaign import load_campaign_by_slug_or_refuse
from tests.analysis.answers import answers
from tests.annotation.hits.campaigns import create_running_campaign
from tests.annotation.hits.systems import create_campaign_of_systems, outputs_table

# a beats b twice and loses once; b and c tie; a and c were never compared.
HITS = [(0, {0: 80.0, 1: 20.0}), (1, {0: 70.0, 1: 30.0}), (2, {0: 10.0, 1: 90.0}), (0, {1: 50.0, 2: 50.0})]
THREE = answers(HITS, systems=["a", "b", "c"], ids=["a", "b", "c"])


def test_each_cell_has_wins_ties_and_losses_of_its_row_and_the_best_is_first():
    table = win_loss_table.build_win_loss_table(THREE, Options())
    assert [column.title for column in table.columns] == ["", "a", "c", "b"]
    assert table.rows == [("a", None, None, "2–0–1"), ("c", None, None, "0–1–0"), ("b", "1–0–2", "0–1–0", None)]


def test_the_file_has_a_row_for_each_compared_pair():
    pairs = win_loss_table.lazy_table_of_compared_pairs(THREE, Options())
    assert list(pairs.make_rows(0, pairs.row_count)) == [("a", "b", 2, 0, 1, 2 / 3), ("b", "c", 0, 1, 0, 0.5)]


@pytest.mark.parametrize(
    ("cell", "shade"), [("3–0–0", 10), ("0–0–3", 0), ("1–2–1", 5), ("1,000–0–0", 10), ("a–b–c", None), (None, None)]
)
def test_a_cell_is_darker_the_more_its_row_won(cell, shade):
    assert win_loss_table.win_share_shade_or_none(cell) == shade


def test_more_items_than_can_be_read_are_refused_and_the_file_has_them_all():
    hits = [(0, {k: 1.0, k + 1: 2.0}) for k in range(40)]
    with pytest.raises(Inestimable) as refused:
        win_loss_table.build_win_loss_table(answers(hits), Options())
    assert refused.value.code == "too_many_for_matrix"
    assert win_loss_table.lazy_table_of_compared_pairs(answers(hits), Options()).row_count == 40


async def test_it_is_offered_for_systems_and_pairs_alone(engine):
    plain = await create_running_campaign(engine, name="Plain")
    pairs = await create_running_campaign(engine, name="Pairs", design="pairwise", items_per_hit=2)
    systems = await create_campaign_of_systems(engine, outputs_table(("a", "b"), 3))
    offered = []
    async with open_snapshot(engine) as connection:
        for campaign in (plain, pairs, systems):
            loaded = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
            available = await load_available_methods(connection, loaded.criteria[0])
            offered.append("win_loss" in available.tables)
    assert offered == [False, True, True]
