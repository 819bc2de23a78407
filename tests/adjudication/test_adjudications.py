"""Final labels are stored as decisions: nothing is overwritten unseen, nothing is lost, and no score changes."""

import asyncio
from typing import Any

import pytest

from app.campaigns.empty_campaigns import revert_unanswered_to_draft_or_refuse
from app.errors import Conflict, Invalid, NotFound
from app.quality.adjudications import load_adjudicated_label_by_item, load_latest_adjudications_by_item
from tests.adjudication.labelled import ADA, BEN, create_labelled_campaign, settle
from tests.annotation.hits.campaigns import create_running_campaign, execute_sql, fetch_rows, fetch_value
from tests.quality.deciding import POSTERIORS, verify_campaign

TWO_LABELS: dict[str, Any] = {
    "design": "categories",
    "design_settings": {"labels": ["yes", "no"]},
    "items_per_hit": 1,
}


@pytest.fixture
def engine(app):
    return app.state.database


async def final_labels(engine, campaign):
    async with engine.connect() as connection:
        return await load_adjudicated_label_by_item(connection, campaign.criteria[0])


async def test_a_final_label_is_stored_with_who_when_and_why(engine):
    campaign = await create_labelled_campaign(engine)
    await settle(engine, campaign, "v1", "no", reason="  The context says so. ")
    async with engine.connect() as connection:
        (latest,) = (await load_latest_adjudications_by_item(connection, campaign.criteria[0])).values()
    assert (latest.item, latest.label, latest.reason, latest.decided_by) == (1, "no", "The context says so.", "ada")
    assert await final_labels(engine, campaign) == {1: "no"}


async def test_a_later_choice_keeps_the_earlier_one(engine):
    campaign = await create_labelled_campaign(engine)
    first = await settle(engine, campaign, "v1", "no")
    second = await settle(engine, campaign, "v1", "yes", replaces=first.id, actor=BEN)
    assert await final_labels(engine, campaign) == {1: "yes"}
    await settle(engine, campaign, "v1", None, replaces=second.id)
    assert await final_labels(engine, campaign) == {}
    rows = await fetch_rows(engine, "SELECT label, decided_by, replaces FROM adjudications ORDER BY id")
    assert [tuple(row) for row in rows] == [("no", "ada", None), ("yes", "ben", first.id), (None, "ada", second.id)]


async def test_a_researcher_who_has_not_seen_the_latest_choice_is_refused(engine):
    campaign = await create_labelled_campaign(engine)
    await settle(engine, campaign, "v1", "no")
    with pytest.raises(Conflict, match="was settled as “no” by ada meanwhile") as refusal:
        await settle(engine, campaign, "v1", "yes", actor=BEN)
    assert refusal.value.code == "adjudication_changed"
    assert await final_labels(engine, campaign) == {1: "no"}


async def test_of_two_researchers_who_choose_at_once_one_is_refused(engine):
    campaign = await create_labelled_campaign(engine)
    outcomes = await asyncio.gather(
        *(settle(engine, campaign, "v1", label, actor=actor) for label, actor in (("yes", ADA), ("no", BEN))),
        return_exceptions=True,
    )
    (refusal,) = [outcome for outcome in outcomes if isinstance(outcome, Conflict)]
    assert refusal.code == "adjudication_changed"
    assert await fetch_value(engine, "SELECT count(*) FROM adjudications") == 1


async def test_answers_and_scores_stay_bit_for_bit(engine):
    campaign = await create_labelled_campaign(engine)
    before = await fetch_rows(engine, POSTERIORS), await fetch_rows(engine, "SELECT * FROM responses ORDER BY seq")
    await settle(engine, campaign, "v1", "unclear")
    after = await fetch_rows(engine, POSTERIORS), await fetch_rows(engine, "SELECT * FROM responses ORDER BY seq")
    assert before == after
    assert (await verify_campaign(engine, campaign)).has_no_mismatches


@pytest.mark.parametrize(
    ("item", "label", "more", "kind", "code"),
    [
        ("v1", "maybe", {}, Invalid, "label_unknown"),
        ("v9", "yes", {}, NotFound, "item_not_found"),
        ("v1", None, {}, Conflict, "not_adjudicated"),
        ("v1", "yes", {"replaces": 7}, Conflict, "adjudication_changed"),
        ("v1", "yes", {"reason": "x" * 501}, Invalid, "reason_too_long"),
        ("v1", "yes", {"reason": "a\x07b"}, Invalid, "reason_invalid"),
    ],
)
async def test_an_impossible_choice_is_refused_and_nothing_stored(engine, item, label, more, *, kind, code):
    campaign = await create_labelled_campaign(engine)
    with pytest.raises(kind) as refusal:
        await settle(engine, campaign, item, label, **more)
    assert refusal.value.code == code
    assert await fetch_value(engine, "SELECT count(*) FROM adjudications") == 0


async def test_only_items_that_get_labels_can_be_settled(engine):
    scores = await create_running_campaign(engine)
    with pytest.raises(Conflict) as refusal:
        await settle(engine, scores, "v1", "yes")
    assert refusal.value.code == "no_labels"
    draft = await create_running_campaign(engine, launched=False, name="Draft", **TWO_LABELS)
    with pytest.raises(Conflict) as refusal:
        await settle(engine, draft, "v1", "yes")
    assert refusal.value.code == "not_launched"


async def test_each_criterion_has_final_labels_of_its_own(engine):
    criteria = [{"name": name, "question": f"{name}?"} for name in ("Tone", "Fact")]
    settings: dict[str, Any] = {
        "design": "ordinal",
        "design_settings": {"labels": ["low", "high"]},
        "criteria": criteria,
    }
    campaign = await create_running_campaign(engine, items=2, items_per_hit=2, **settings)
    await settle(engine, campaign, "v0", "high", criterion="Fact")
    async with engine.connect() as connection:
        labels = [await load_adjudicated_label_by_item(connection, criterion) for criterion in campaign.criteria]
    assert labels == [{}, {0: "high"}]


async def test_the_log_has_every_choice_without_its_reason(engine):
    campaign = await create_labelled_campaign(engine)
    first = await settle(engine, campaign, "v1", "no", reason="A1 is right")
    await settle(engine, campaign, "v1", None, replaces=first.id)
    rows = await fetch_rows(
        engine, "SELECT who, action, about, before, after FROM audit_log WHERE action LIKE 'labels.%' ORDER BY id"
    )
    assert [tuple(row) for row in rows] == [
        ("ada", "labels.settled", "v1", None, {"label": "no"}),
        ("ada", "labels.reopened", "v1", {"label": "no"}, None),
    ]


async def test_final_labels_go_with_their_campaign_and_with_a_launch_that_is_undone(engine):
    campaign = await create_running_campaign(engine, items=3, **TWO_LABELS)
    await settle(engine, campaign, "v1", "no")
    async with engine.begin() as connection:
        await revert_unanswered_to_draft_or_refuse(connection, campaign.slug)
    assert await fetch_value(engine, "SELECT count(*) FROM adjudications") == 0
    other = await create_running_campaign(engine, items=3, name="Other", **TWO_LABELS)
    await settle(engine, other, "v1", "no")
    await execute_sql(engine, "DELETE FROM campaigns WHERE id = :id", id=other.id)
    assert await fetch_value(engine, "SELECT count(*) FROM adjudications") == 0
