"""Verify: what is stored is what the responses lead to, to the last bit."""

import asyncio
import math
import struct

import numpy as np
import pytest
from sqlalchemy import text

from app.database.bulk import open_snapshot
from app.errors import Conflict
from app.inference.online.annotator_aware_editions import INITIAL_CAMPAIGN_STATE, TOTALS_SIZE
from app.record import replay
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.replay import Verification
from tests.annotation.hits.campaigns import (
    create_annotator,
    create_running_campaign,
    expire_leases,
    fetch_rows,
    fetch_value,
    submit_scores,
    try_to_lease_hit,
)
from tests.campaigns.drafts import create_draft, create_launched_campaign, import_results
from tests.laws import SCORE_LAWS


async def verified(engine, slug: str) -> Verification:
    async with open_snapshot(engine) as connection:
        return await replay.verify_by_replay_or_refuse(
            connection, await load_campaign_by_slug_or_refuse(connection, slug)
        )


async def answered(engine, hits: int = 4, **settings):
    """Create a campaign with `hits` answers through the serving path."""
    campaign = await create_running_campaign(engine, **settings)
    for k in range(hits):
        assignment = await create_annotator(engine, campaign, f"ann {k}")
        await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    return campaign


async def change(engine, statement: str) -> None:
    async with engine.begin() as connection:
        assert (await connection.execute(text(statement))).rowcount == 1


def next_float(number: float) -> float:
    """Return the number with its last bit changed."""
    (bits,) = struct.unpack("<q", struct.pack("<d", number))
    return float(struct.unpack("<d", struct.pack("<q", bits ^ 1))[0])


@pytest.mark.parametrize("law", SCORE_LAWS)
async def test_live_answers_verify_bit_for_bit(engine, law):
    campaign = await answered(engine, update_law=law, gamma=0.3, epsilon=0.05, tie_margin_points=15)
    assert await verified(engine, campaign.slug) == Verification(4, 12, 0, [])


async def test_a_campaign_without_answers_is_clean(engine):
    campaign = await create_running_campaign(engine)
    assert await verified(engine, campaign.slug) == Verification(0, 12, 0, [])


async def test_many_chunks_replay_like_one(engine, monkeypatch):
    campaign = await answered(engine)
    monkeypatch.setattr(replay, "REPLAYED_RESPONSES_PER_BATCH", 1)
    assert (await verified(engine, campaign.slug)).has_no_mismatches


@pytest.mark.parametrize(
    ("column", "stored"), [("alpha", "state[1]"), ("beta", "state[2]"), ("score", "score"), ("variance", "variance")]
)
async def test_one_flipped_bit_is_seen_and_named(engine, column, stored):
    campaign = await answered(engine)
    before = await fetch_value(engine, f"SELECT {stored} FROM current_posteriors WHERE number = 7")
    after = next_float(before)
    assert math.isclose(before, after, rel_tol=1e-15)
    await change(engine, f"UPDATE posteriors SET {stored} = {after!r} WHERE subject = 7")
    found = await verified(engine, campaign.slug)
    assert (found.has_no_mismatches, found.mismatch_count) == (False, 1)
    assert found.mismatches == [replay.Mismatch(7, "v7", column, after, before)]


async def test_a_prior_below_zero_by_its_sign_alone_verifies_clean(engine):
    campaign = await create_launched_campaign(
        engine, "id,text,mu,sigma2\n1,a,0,1\n2,b,-0.0,1\n3,c,0,1\n", update_law="trueskill"
    )
    assert await verified(engine, campaign.slug) == Verification(0, 3, 0, [])


@pytest.mark.parametrize("kind", ["campaign", "item", "annotator"])
async def test_what_was_learned_is_verified_too(engine, kind):
    campaign = await answered(engine, update_law="easl-aware")
    one = "(SELECT number FROM states WHERE kind = :kind ORDER BY number LIMIT 1)"
    raw = await fetch_value(engine, f"SELECT state FROM states WHERE kind = :kind AND number = {one}", kind=kind)
    state = struct.pack("<d", 0.625) + raw[8:]
    async with engine.begin() as connection:
        changed = text(f"UPDATE states SET state = :state WHERE kind = :kind AND number = {one}")
        await connection.execute(changed, {"kind": kind, "state": state})
    found = await verified(engine, campaign.slug)
    assert [(m.column, m.stored) for m in found.mismatches] == [("learned", 0.625)]
    async with engine.begin() as connection:
        await connection.execute(text("DELETE FROM states WHERE kind = :kind"), {"kind": kind})
        await connection.execute(
            text(
                "INSERT INTO states (campaign_id, kind, number, layout, state) VALUES (:c, 'campaign', 0, 1, '')"
                " ON CONFLICT DO NOTHING"
            ),
            {"c": campaign.id},
        )
    assert not (await verified(engine, campaign.slug)).has_no_mismatches


async def test_a_judgment_too_many_and_a_lost_posterior_are_seen(engine):
    campaign = await answered(engine)
    await change(engine, "UPDATE posteriors SET judgments = judgments + 1 WHERE subject = 3")
    await change(engine, "DELETE FROM posteriors WHERE subject = 5")
    found = await verified(engine, campaign.slug)
    assert [(m.number, m.column) for m in found.mismatches] == [
        (3, "judgments"),
        *((5, column) for column in ("alpha", "beta", "score", "variance", "judgments", "unjudged")),
    ]


async def test_a_changed_response_changes_its_items_only(engine):
    campaign = await answered(engine, hits=1)
    items = await fetch_value(engine, "SELECT items FROM responses")
    await change(engine, "UPDATE responses SET values[1] = values[1] + 1")
    found = await verified(engine, campaign.slug)
    assert {m.number for m in found.mismatches} == {items[0]}


async def test_only_the_first_mismatches_are_listed_and_all_are_counted(engine):
    campaign = await answered(engine, items=30)
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE posteriors SET variance = variance / 2"))
    found = await verified(engine, campaign.slug)
    assert (found.mismatch_count, len(found.mismatches)) == (30, 20)
    assert [m.number for m in found.mismatches] == list(range(20))


async def test_a_response_that_no_law_can_apply_is_named(engine):
    campaign = await answered(engine, hits=1)
    await change(engine, "UPDATE responses SET items[1] = 99")
    with pytest.raises(Conflict, match="cannot be replayed") as problem:
        await verified(engine, campaign.slug)
    assert problem.value.code == "not_replayable"


async def test_late_answers_are_learned_from_in_the_order_of_their_numbers(engine):
    campaign = await create_running_campaign(engine, update_law="easl-aware", judgments_per_item=50)
    people = [await create_annotator(engine, campaign, f"ann {k}") for k in range(8)]
    hits = [await try_to_lease_hit(engine, person) for person in people]
    await expire_leases(engine)
    await asyncio.gather(*(submit_scores(engine, who, hit) for who, hit in zip(people, hits, strict=True)))
    assert await verified(engine, campaign.slug) == Verification(8, 12, 0, [])


async def test_a_draft_has_nothing_to_verify(engine):
    campaign = await create_draft(engine)
    with pytest.raises(Conflict) as problem:
        await verified(engine, campaign.slug)
    assert problem.value.code == "not_launched"


async def test_answers_that_come_in_meanwhile_do_not_disturb_it(engine):
    campaign = await answered(engine)
    async with open_snapshot(engine) as connection:
        seen = await load_campaign_by_slug_or_refuse(connection, campaign.slug)
        late = await create_annotator(engine, campaign, "late")
        await submit_scores(engine, late, await try_to_lease_hit(engine, late))
        assert await replay.verify_by_replay_or_refuse(connection, seen) == Verification(4, 12, 0, [])
    assert (await verified(engine, campaign.slug)).responses == 5


@pytest.mark.parametrize("law", ["ra", "easl-aware"])
async def test_an_import_amid_live_answers_keeps_the_order_of_updates(engine, law):
    """Both take the same locks first, so the sequence numbers tell the order, which these laws depend on.

    No item gets all its judgments: v1 is in 80 rows, and at most in 16 live HITs.
    """
    campaign = await create_running_campaign(engine, update_law=law, judgments_per_item=80 + 16 + 1)
    results = "Input.id1,Input.id2,Answer.range1,Answer.range2\n" + "v1,v2,90,10\nv5,v1,20,80\n" * 40

    async def live(k: int) -> None:
        assignment = await create_annotator(engine, campaign, f"ann {k}")
        for _ in range(4):
            await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))

    await asyncio.gather(*(live(k) for k in range(4)), import_results(engine, campaign, results))
    found = await verified(engine, campaign.slug)
    assert (found.responses, found.mismatches) == (96, [])


async def test_a_campaign_launched_under_the_first_rule_of_easl_aware_keeps_it(engine):
    """Its state was empty before the first answer; then other items were never looked at again."""
    old, new = [
        await create_running_campaign(engine, update_law="easl-aware", name=name, items=6) for name in ("Old", "New")
    ]
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE states SET state = '' WHERE campaign_id = :old"), {"old": old.id})
    for campaign in (old, new):
        for k in range(4):
            assignment = await create_annotator(engine, campaign, f"ann {k}")
            await submit_scores(engine, assignment, await try_to_lease_hit(engine, assignment))
    results = "Input.id1,Input.id2,Answer.range1,Answer.range2\n" + "v1,v2,90,10\nv5,v1,20,80\n" * 3
    await import_results(engine, old, results)
    assert (await verified(engine, old.slug)).mismatches == []
    assert (await verified(engine, new.slug)).mismatches == []
    floats = "SELECT octet_length(state) / 8 FROM states WHERE kind = 'campaign' AND campaign_id = :id"
    assert await fetch_value(engine, floats, id=old.id) == TOTALS_SIZE
    assert await fetch_value(engine, floats, id=new.id) == len(INITIAL_CAMPAIGN_STATE) + TOTALS_SIZE


async def test_an_answer_changes_posteriors_of_other_items_too_under_easl_aware(engine):
    """Those of items that were judged: what has become known of their annotators since counts for them as well."""
    campaign = await create_running_campaign(
        engine, update_law="easl-aware", items=10, items_per_hit=5, judgments_per_item=50
    )
    people = [await create_annotator(engine, campaign, f"ann {k}") for k in range(6)]
    for k in range(24):
        hit = await try_to_lease_hit(engine, people[k % 6])
        at_random = k % 6 == 0
        scores = [float((item * 37 + k * 53) % 101 if at_random else 10 * item) for item in hit.items]
        await submit_scores(engine, people[k % 6], hit, scores=scores)
    posteriors = "SELECT number, state FROM current_posteriors ORDER BY number"
    before = await fetch_rows(engine, posteriors)
    last = await try_to_lease_hit(engine, people[0])
    await submit_scores(engine, people[0], last, scores=[50.0] * 5)
    changed = {now[0] for now, then in zip(await fetch_rows(engine, posteriors), before, strict=True) if now != then}
    assert changed > set(last.items)
    assert (await verified(engine, campaign.slug)).mismatches == []


def test_what_is_no_number_is_never_a_matter_of_rounding():
    stored, replayed = np.array([np.nan, 1.0, 1.0]), np.array([-np.nan, 1.0 + 1e-15, 1.1])
    count, beyond_rounding, _ = replay.count_differing_posteriors_and_list_first({"score": stored}, {"score": replayed})
    assert (count, beyond_rounding) == (3, 2)


@pytest.mark.parametrize(
    ("mismatches", "beyond_rounding", "checks", "is_clean", "is_rounding"),
    [
        (0, 0, 0, True, False),
        (1, 0, 0, False, True),
        (3, 0, 0, False, True),
        (3, 1, 0, False, False),
        (3, 0, 1, False, False),
        (0, 0, 1, False, False),
    ],
)
def test_a_verification_is_clean_or_differs_by_rounding_alone_or_by_more(
    mismatches, beyond_rounding, checks, is_clean, is_rounding
):
    verification = Verification(4, 12, mismatches, [], checks, beyond_rounding)
    assert verification.has_no_mismatches is is_clean
    assert verification.has_only_rounding_mismatches is is_rounding


@pytest.mark.parametrize(
    ("stored", "replayed", "pair"),
    [
        ([1.0, 2.0], [1.0, 2.0], None),
        ([1.0, 2.0], [1.0, 3.0], (2.0, 3.0)),
        ([1.0, 2.0], [1.0 + 1e-15, 3.0], (2.0, 3.0)),
        ([1.0, 2.0], [1.0 + 1e-15, 2.0 + 1e-15], (1.0, 1.0 + 1e-15)),
        ([[1.0], [2.0, 4.0]], [[1.0], [2.0, 5.0]], (4.0, 5.0)),
        ([np.nan, 2.0], [np.nan, 2.0], None),
        ((), (), None),
    ],
)
def test_of_a_state_of_a_law_the_first_number_that_differs_is_told_and_one_beyond_rounding_first(
    stored, replayed, pair
):
    assert replay.first_differing_pair_or_none(stored, replayed) == pair


def test_numbers_that_are_missing_at_the_end_of_a_state_differ_from_any():
    for stored, replayed in (([1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0])):
        pair = replay.first_differing_pair_or_none(stored, replayed)
        assert pair is not None
        assert [math.isnan(number) for number in pair] == [len(stored) == 1, len(replayed) == 1]
        assert 2.0 in pair
