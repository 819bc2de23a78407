"""Recordings that must be played: what the page reports is stored and exported, and too little is refused."""

import csv
import io
from typing import Any

import pytest
from pydantic import ValidationError

from app.annotation.hits import submission, undo
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Form
from app.designs.presentation import PresentationSettings
from app.errors import Invalid
from app.quality import inputs
from app.quality.rule_reach import load_rule_reach_by_name
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.annotation.hits.test_checks import load_design_and_inputs, with_checks

SCORES = {"score-00": "20", "score-01": "70"}
ENOUGH = {"plays-00": "2", "seconds_heard-00": "9.5", "seconds_long-00": "10"}
ENOUGH |= {"plays-01": "1", "seconds_heard-01": "3", "seconds_long-01": "3"}


async def answer(engine, campaign, fields, name="ann", source="page"):
    me = await create_annotator(engine, campaign, name)
    hit = await try_to_lease_hit(engine, me)
    async with borrow_autocommit_driver(engine) as connection:
        await submission.store_answer_of_hit_and_return_receipt(
            connection, me, hit.id, Form(SCORES | fields, source), now=NOW
        )
    return hit


async def recordings(engine, must_play, **settings):
    chosen: dict[str, Any] = {"items": 2, "items_per_hit": 2, "judgments_per_item": 9, "must_play": must_play}
    return await create_running_campaign(engine, **chosen | settings)


@pytest.mark.parametrize(
    ("must_play", "changed", "positions"),
    [
        ("end", {}, None),
        ("end", {"seconds_heard-00": "8.9"}, [1]),
        ("end", {"plays-00": "0", "plays-01": "0"}, [1, 2]),
        ("end", {"seconds_long-01": ""}, None),
        ("start", {"seconds_heard-00": "0.1"}, None),
        ("start", {"plays-01": "0"}, [2]),
        ("none", {"plays-01": "0"}, None),
        ("end", {"plays-01": ""}, None),  # its file did not load
        ("end", {"plays-01": "0", "unjudged-01": "yes", "score-01": ""}, None),
    ],
)
async def test_a_report_of_too_little_is_refused_and_nothing_is_stored(engine, must_play, changed, positions):
    campaign = await recordings(engine, must_play, cannot_be_judged=True, unjudged_reasons=[])
    if positions is None:
        await answer(engine, campaign, ENOUGH | changed)
    else:
        with pytest.raises(Invalid, match="Not everything was played") as refusal:
            await answer(engine, campaign, ENOUGH | changed)
        assert (refusal.value.code, refusal.value.details["positions"]) == ("not_played", positions)
    stored = await fetch_value(
        engine, "SELECT count(*) FROM responses WHERE campaign_id = :campaign", campaign=campaign.id
    )
    assert stored == (positions is None)


async def test_a_page_without_scripts_reports_nothing_and_is_taken(engine):
    campaign = await recordings(engine, "end")
    await answer(engine, campaign, {}, source="form")


async def test_a_check_must_be_played_like_any_item(engine):
    campaign = await with_checks(engine, must_play="start", checks_percent=50)
    me = await create_annotator(engine, campaign, "ben")
    while {*(hit := await try_to_lease_hit(engine, me)).ids}.isdisjoint({"g1", "g2", "a1"}):
        await submit_scores(engine, me, hit)
    report = {f"score-0{place}": "42" for place in range(5)} | {"plays-04": "0"}
    async with borrow_autocommit_driver(engine) as connection:
        with pytest.raises(Invalid) as refusal:
            await submission.store_answer_of_hit_and_return_receipt(
                connection, me, hit.id, Form(report, "page"), now=NOW
            )
    assert refusal.value.details["positions"] == [5]


async def test_plays_and_seconds_are_exported_for_each_item(app, researcher):
    engine = app.state.database
    campaign = await recordings(engine, "end")
    hit = await answer(engine, campaign, ENOUGH)
    reply = await researcher.get(f"/admin/campaigns/{campaign.slug}/export/responses.csv")
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert [(row["plays"], row["seconds_heard"]) for row in rows] == [("2", "9.5"), ("1", "3.0")]
    assert len(hit.items) == 2


async def played_shares(engine, campaign):
    async with engine.begin() as connection:
        design, record = await load_design_and_inputs(connection, campaign)
    behaviours = inputs.build_behaviours_by_annotator(design, record)
    return [sorted(behaviours[number].played_share.tolist()) for number in sorted(behaviours)]


async def test_the_rule_about_playing_sees_each_recording_as_a_share_of_its_longest_playback(engine):
    campaign = await recordings(engine, "start")
    same = {"plays-00": "1", "plays-01": "1"}
    await answer(engine, campaign, same | {"seconds_heard-00": "8", "seconds_heard-01": "8"}, "ann")
    await answer(engine, campaign, same | {"seconds_heard-00": "2", "seconds_heard-01": "2"}, "ben")
    await answer(engine, campaign, {}, "cat", source="form")
    assert await played_shares(engine, campaign) == [[1.0, 1.0], [0.25, 0.25], []]


async def test_a_changed_answer_needs_no_new_play(engine):
    campaign = await recordings(engine, "start", undo=True)
    hit = await answer(engine, campaign, ENOUGH)
    me = await create_annotator(engine, campaign, "ann")
    changed = SCORES | {"score-00": "40", "plays-00": "0", "plays-01": "0"}
    async with borrow_autocommit_driver(engine) as connection:
        last = await undo.load_last_answer_for_change_or_refuse(connection, me, now=NOW)
        await undo.replace_answer_and_return_receipt_or_refuse(
            connection, me, hit.id, last.seq, Form(changed, "page"), now=NOW
        )
    assert await played_shares(engine, campaign) == [[1.0, 1.0]]


async def test_a_campaign_that_plays_nothing_has_no_use_for_the_rule_about_playing(engine):
    for must_play, starts_at in (("none", ""), ("start", "After 5 judgments by one person.")):
        campaign = await recordings(engine, must_play)
        async with engine.begin() as connection:
            reaches = await load_rule_reach_by_name(connection, campaign, item_count=60)
        assert reaches["played"].starts_at == starts_at


@pytest.mark.parametrize("tag", ["", "de", "pt-BR", "zh-Hant", "sl-rozaj-biske", "es-419", "x-klingon"])
def test_the_language_of_items_is_a_tag(tag):
    assert PresentationSettings(items_language=tag).items_language == tag


@pytest.mark.parametrize("text", ["German", "de_DE", "d", "de-", "de--AT", '"><b>', "٤٤"])
def test_what_is_no_tag_is_refused(text):
    with pytest.raises(ValidationError, match="must be a language tag such as de"):
        PresentationSettings(items_language=text)
