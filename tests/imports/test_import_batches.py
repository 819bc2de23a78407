"""Answers of a file are stored many at a time, with the posteriors of one after another."""

import csv
import io
import random
from typing import Any

import pytest

from app.designs.file_format import ValueFormat
from app.designs.registry import DESIGNS
from app.imports import response_storage
from tests.annotation.hits.campaigns import fetch_rows, fetch_value
from tests.campaigns.drafts import VERBS, create_launched_campaign, import_results, replay_is_clean

ITS_OWN: dict[str, dict[str, Any]] = {
    "categories": {"design_settings": {"labels": ["noun", "verb", "other"]}},
    "baseline": {"design_settings": {"baseline": "v0"}},
}
POSTERIORS = """
    SELECT number, state, score, variance, judgments FROM current_posteriors WHERE campaign_id = :id ORDER BY number
"""
HITS = 16
COUNT_TRANSACTIONS = "SELECT count(DISTINCT transaction_id) FROM responses WHERE campaign_id = :id"


def results_in_rows(campaign, hit_count):
    """A file of random answers to HITs of the campaign, with a row for each item."""
    design, rng, file = campaign.design, random.Random(3), io.StringIO()
    writer = csv.writer(file)
    writer.writerow(["hit", "annotator", "item", "value"])
    for number in range(hit_count):
        ids = list(dict.fromkeys([*design.always_shown, *rng.sample([f"v{k}" for k in range(6)], 6)]))
        ids = ids[: campaign.items_per_hit]
        values = design.simulate_answer_values([rng.random() for _ in ids])
        for item, value in zip(ids, values, strict=True):
            writer.writerow([f"h{number}", f"W{number % 4}", item, ValueFormat(design).format_value(value)])
    return file.getvalue()


@pytest.mark.parametrize(
    "settings",
    [{"design": name, **ITS_OWN.get(name, {})} for name in DESIGNS]
    + [{"update_law": law} for law in ("ra", "trueskill", "easl-aware")],
    ids=lambda settings: settings.get("design") or settings["update_law"],
)
async def test_answers_stored_at_once_give_the_posteriors_of_answers_one_by_one(engine, monkeypatch, settings):
    at_once, one_by_one = [
        await create_launched_campaign(engine, VERBS, name=title, judgments_per_item=1_000, **settings)
        for title in ("At once", "One by one")
    ]
    results = results_in_rows(at_once, HITS)
    monkeypatch.setattr(response_storage, "MIN_HITS_PER_TRANSACTION", HITS)
    await import_results(engine, at_once, results)
    monkeypatch.setattr(response_storage, "MIN_HITS_PER_TRANSACTION", 1)
    monkeypatch.setattr(response_storage, "MAX_HITS_PER_TRANSACTION", 1)
    await import_results(engine, one_by_one, results)
    assert await fetch_value(engine, COUNT_TRANSACTIONS, id=at_once.id) == 1
    assert await fetch_value(engine, COUNT_TRANSACTIONS, id=one_by_one.id) == HITS
    assert await fetch_rows(engine, POSTERIORS, id=at_once.id) == await fetch_rows(engine, POSTERIORS, id=one_by_one.id)
    assert await replay_is_clean(engine, at_once.slug)
    assert await replay_is_clean(engine, one_by_one.slug)
