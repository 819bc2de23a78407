"""Share of a limited visit that shows checks: what is served is what the pages calculate with."""

import numpy as np
import pytest

from app.quality.workload import (
    AnnotatorWorkload,
    count_of_hits_with_checks_of_annotator,
    distribution_of_hits_with_checks,
    largest_workload_of_one_annotator,
    mean_count_of_hits_with_checks,
)
from tests.annotation.hits.campaigns import fetch_rows
from tests.annotation.hits.test_checks import places_of_checks, with_checks

CHECKS = 3


async def test_five_percent_of_ten_tasks_show_a_check_to_half_of_the_people_and_never_two(engine):
    settings = {"checks_percent": 5, "hits_per_annotator": 10, "judgments_per_item": 500}
    campaign = await with_checks(engine, **settings)
    served = [len(places) for places in await places_of_checks(engine, campaign, 24, hits=10)]
    annotator_ids = [row[0] for row in await fetch_rows(engine, "SELECT id FROM annotators ORDER BY id")]
    assert served == [count_of_hits_with_checks_of_annotator(0.5, campaign.seed, number) for number in annotator_ids]
    workload = largest_workload_of_one_annotator(campaign, 30, {"gold": 2, "attention": 1})
    assert distribution_of_hits_with_checks(workload).tolist() == [0.5, 0.5, 0, 0]
    assert {*served} == {0, 1}


@pytest.mark.parametrize(("percent", "hits"), [(5, 10), (10, 5), (25, 10), (10, 15), (50, 12), (20, 10)])
def test_the_people_of_a_campaign_have_the_distribution_of_the_pages(percent, hits):
    workload = AnnotatorWorkload(hits, 5, {"gold": CHECKS}, percent, is_visit_fixed=True)
    mean = mean_count_of_hits_with_checks(hits, percent, CHECKS)
    counts = [count_of_hits_with_checks_of_annotator(mean, 7, annotator) for annotator in range(4000)]
    shares = np.bincount(counts, minlength=CHECKS + 1) / len(counts)
    assert shares == pytest.approx(distribution_of_hits_with_checks(workload), abs=0.03)
