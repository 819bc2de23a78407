"""Campaigns of several labels: twelve labels from the form to the exports, gold items, and changes by programs."""

import csv
import io
from typing import Any

import pytest

from app.analysis.fit_cache import FitCache
from app.annotation.hits import submission
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Form
from app.errors import Invalid
from app.exports.methods_paragraph import load_methods_text
from app.exports.registry import open_export_or_refuse
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_rows,
    fetch_value,
    try_to_lease_hit,
)
from tests.annotation.hits.criteria import answer_all_hits
from tests.campaigns.drafts import create_launched_campaign, replay_is_clean

LABELS = [f"label {k}" for k in range(1, 13)]


async def create_labelled(engine, **settings):
    chosen: dict[str, Any] = {"design": "several_labels", "design_settings": {"labels": LABELS}, "items_per_hit": 2}
    return await create_running_campaign(engine, **chosen | settings)


async def submit_form(engine, me, hit, fields):
    async with borrow_autocommit_driver(engine) as connection:
        return await submission.store_answer_of_hit_and_return_receipt(
            connection, me, hit.id, Form(fields, source="form"), now=NOW
        )


async def export_rows(engine, campaign, name):
    file = await open_export_or_refuse(engine, campaign.slug, name)
    text = "".join([piece async for piece in file.chunks])
    return [*csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))]


async def test_a_form_of_twelve_labels_changes_the_posterior_of_each(engine):
    campaign = await create_labelled(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await submit_form(engine, me, hit, {"c0-score-00": "1", "c11-score-00": "1", "none-01": "1"})
    stored = await fetch_value(engine, "SELECT values FROM responses")
    assert stored == [1.0, 0.0] + [0.0] * 20 + [1.0, 0.0]
    judged = "SELECT criterion, sum(judgments) FROM current_posteriors GROUP BY 1 ORDER BY 1"
    assert await fetch_rows(engine, judged) == [(k, 2) for k in range(12)]
    scores = "SELECT score > 0.5 FROM current_posteriors WHERE number = :item ORDER BY criterion"
    ticked = [above for (above,) in await fetch_rows(engine, scores, item=hit.items[0])]
    assert ticked == [True] + [False] * 10 + [True]
    assert await replay_is_clean(engine, campaign.slug)


async def test_an_untouched_item_is_refused_and_nothing_is_stored(engine):
    campaign = await create_labelled(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    with pytest.raises(Invalid) as refused:
        await submit_form(engine, me, hit, {"c3-score-01": "1"})
    assert (refused.value.code, refused.value.details["missing"]) == ("scores_missing", [1])
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 0


async def test_exports_and_the_methods_paragraph_name_the_labels(engine):
    campaign = await create_labelled(engine, judgments_per_item=50)
    await answer_all_hits(engine, campaign)
    rows = await export_rows(engine, campaign, "item_label_sets")
    assert len(rows) == 12
    assert {f"share_{k}" for k in range(1, 13)} | {f"probability_{k}" for k in range(1, 13)} < rows[0].keys()
    by_majority = [name for k, name in enumerate(LABELS, start=1) if float(rows[0][f"share_{k}"] or 0) > 0.5]
    assert rows[0]["majority_set"] in ("; ".join(by_majority) or "none of these", "")
    sets = await export_rows(engine, campaign, "label_sets")
    assert sum(int(row["judgments"]) for row in sets) == 24
    items = await export_rows(engine, campaign, "items")
    assert {row["criterion"] for row in items} == set(LABELS)
    text = await load_methods_text(engine, campaign.slug, FitCache(), now=NOW)
    assert "Annotators ticked every label that applied, or none of them: “label 1”, " in text
    assert "The labels were" not in text


async def test_gold_items_have_an_expected_answer_for_each_label(engine):
    content = "id,text,check,expected joy,expected fear\n" + "".join(f"v{k},verb {k},,,\n" for k in range(30))
    content += "g1,We won!,gold,yes,no\n"
    settings = {"design": "several_labels", "design_settings": {"labels": ["joy", "fear"]}, "items_per_hit": 3}
    campaign = await create_launched_campaign(engine, content, checks_percent=50, **settings)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    while "g1" not in hit.ids:
        await submit_form(engine, me, hit, dict.fromkeys(("none-00", "none-01", "none-02"), "1"))
        hit = await try_to_lease_hit(engine, me)
    fields = {f"{'c0-score' if name == 'g1' else 'none'}-0{place}": "1" for place, name in enumerate(hit.ids)}
    await submit_form(engine, me, hit, fields)
    (row,) = await fetch_rows(engine, "SELECT value, other_values FROM check_answers")
    assert row == (1.0, [0.0])
