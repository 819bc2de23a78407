"""Means of the judgments of each output of a system."""

import math
from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
import pytest

from app.designs.registry import make_design
from app.record import outputs
from tests.annotation.hits.campaigns import execute_sql, fetch_rows
from tests.annotation.hits.systems import answer_hits_of_systems, create_campaign_of_systems, outputs_table


class Answered(NamedTuple):
    segment: int
    items: list[int]
    values: list[float]


async def test_they_are_those_of_all_judgments_and_an_output_that_nobody_judged_has_none(engine):
    campaign = await create_campaign_of_systems(
        engine, outputs_table(segments=3), design="rating", items_per_hit=3, judgments_per_item=100
    )
    await answer_hits_of_systems(engine, campaign, by=4, each=3)
    await execute_sql(engine, "UPDATE responses SET values[2] = 'NaN' WHERE seq = (SELECT min(seq) FROM responses)")
    values = defaultdict(list)
    stored = "SELECT segment, item, value FROM responses, unnest(items, values) AS u (item, value)"
    for segment, item, value in await fetch_rows(engine, stored):
        if not math.isnan(value):
            values[segment, item].append(value)
    async with engine.connect() as connection:
        means = await outputs.load_output_mean_by_segment_and_system(connection, campaign.criteria[0], [0, 2])
    expected = {output: found for output, found in values.items() if output[0] in (0, 2)}
    points = campaign.design.values_to_points
    assert {output: mean.judgments for output, mean in means.items()} == {
        output: len(found) for output, found in expected.items()
    }
    for output, found in expected.items():
        each = points(np.array(found), np.arange(len(found)))
        assert means[output].mean == pytest.approx(float(np.mean(each)))


def test_labels_without_an_order_are_counted_and_have_no_mean():
    design = make_design("categories", {"labels": ["noun", "verb"]})
    answers: list[Any] = [Answered(4, [0, 1], [1.0, math.nan]), Answered(4, [0], [0.0])]
    (((segment, item), mean),) = outputs.output_mean_by_segment_and_item(design, answers).items()
    assert (segment, item, mean.judgments, mean.mean) == (4, 0, 2, None)


def test_judgments_of_an_output_are_averaged_in_points_by_segment_and_system():
    answers: list[Any] = [
        Answered(4, [0, 1], [20.0, 60.0]),
        Answered(4, [1, 0], [80.0, math.nan]),
        Answered(2, [0, 1], [10.0, 30.0]),
    ]
    means = outputs.output_mean_by_segment_and_item(make_design("slider", {}), answers)
    assert means == {(4, 0): (1, 20.0), (4, 1): (2, 70.0), (2, 0): (1, 10.0), (2, 1): (1, 30.0)}
