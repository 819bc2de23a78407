"""Campaigns whose items are systems: a HIT shows outputs of several for one segment."""

import asyncio
from collections import Counter

import pytest

from app.annotation.hits import landing, submission
from app.annotation.hits.campaign_index import PosteriorCache
from app.dashboard.incremental import IncrementalReplays
from app.dashboard.state import load_dashboard_state
from app.database.session import borrow_autocommit_driver
from app.designs.answer import Answer, Form
from app.errors import Invalid
from app.record import law_storage, unjudged
from app.record.revisions import store_decision_and_return_number, switch_revision_if_it_misses_decisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    execute_sql,
    expire_leases,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    requests_are_waiting_sql,
    submit_scores,
    try_to_lease_hit,
    wait_until,
)
from tests.annotation.hits.systems import SYSTEMS, answer_hits_of_systems, create_campaign_of_systems, outputs_table
from tests.campaigns.drafts import import_items, replay_is_clean


async def test_a_hit_shows_outputs_of_several_systems_for_one_segment(engine):
    campaign = await create_campaign_of_systems(engine, outputs_table(above=True), items_per_hit=3)
    hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign))
    assert hit.texts == [f"{system} on {hit.segment}" for system in hit.ids]
    assert hit.source_and_reference == (f"source {hit.segment}", f"reference {hit.segment}")
    assert (await try_to_lease_hit(engine, await create_annotator(engine, campaign))) == hit  # a reload shows the same


async def test_before_they_begin_people_see_outputs_and_no_names(engine):
    campaign = await create_campaign_of_systems(engine, outputs_table(above=True), items_per_hit=3)
    async with borrow_autocommit_driver(engine) as connection:
        shown = await landing.load_rendered_sample_items(
            connection, await landing.load_campaign_by_link_or_refuse(connection, campaign.link_key)
        )
    assert len(shown.texts) == 3
    assert all(" on " in text for text in shown.texts)
    assert [part.title for part in shown.shared_context] == ["Source", "Reference"]


async def test_an_answer_changes_the_posteriors_of_the_systems_and_replays_to_the_bit(engine):
    campaign = await create_campaign_of_systems(engine)
    await answer_hits_of_systems(engine, campaign, by=3, each=4)
    assert await fetch_value(engine, "SELECT sum(judgments) FROM current_posteriors") == 24
    assert await fetch_rows(engine, "SELECT r.segment FROM responses r ORDER BY seq") == await fetch_rows(
        engine, "SELECT segment FROM hits ORDER BY id"
    )
    assert await replay_is_clean(engine, campaign.slug)


async def test_segments_are_used_evenly(engine):
    campaign = await create_campaign_of_systems(engine, outputs_table(segments=5), judgments_per_item=100)
    await answer_hits_of_systems(engine, campaign, by=5, each=3)
    assert await fetch_rows(engine, "SELECT segment, count(*) FROM responses GROUP BY 1 ORDER BY 1") == [
        (k, 3) for k in range(5)
    ]


async def test_segments_that_others_hold_count_as_used(engine):
    campaign = await create_campaign_of_systems(engine, outputs_table(segments=4), judgments_per_item=100)
    people = [await create_annotator(engine, campaign, f"ann {k}") for k in range(8)]
    caches = [PosteriorCache(), PosteriorCache()]
    hits = [await try_to_lease_hit(engine, me, cache=caches[k % 2]) for k, me in enumerate(people)]
    assert Counter(hit.segment for hit in hits) == dict.fromkeys(range(4), 2)
    more = [await create_annotator(engine, campaign, f"more {k}") for k in range(4)]
    async with engine.begin() as storing:  # so that nobody gets a lease before all have chosen
        await storing.execute(law_storage.TAKE_STORE_LOCK, {"campaign": campaign.id})
        choosing = [asyncio.create_task(try_to_lease_hit(engine, me, cache=caches[0])) for me in more]
        await wait_until(engine, requests_are_waiting_sql(4))
    assert len({hit.segment for hit in await asyncio.gather(*choosing)}) == 4


async def test_nobody_sees_a_segment_twice_while_others_remain(engine):
    campaign = await create_campaign_of_systems(engine, outputs_table(segments=4), judgments_per_item=100)
    await answer_hits_of_systems(engine, campaign, by=1, each=6)
    seen = [segment for (segment,) in await fetch_rows(engine, "SELECT segment FROM responses ORDER BY seq")]
    assert sorted(seen[:4]) == [0, 1, 2, 3]
    assert len(seen) == 6


async def test_who_has_had_all_segments_is_done_where_nothing_is_shown_again(engine):
    campaign = await create_campaign_of_systems(
        engine, outputs_table(segments=3), judgments_per_item=100, repeat_items=False
    )
    await answer_hits_of_systems(engine, campaign, by=1, each=3)
    me = await create_annotator(engine, campaign, "ann 0")
    assert (await find_or_lease_next_hit(engine, me)).reason == "seen_all"
    assert (await find_or_lease_next_hit(engine, await create_annotator(engine, campaign, "another"))).hit


async def test_a_segment_that_somebody_had_meanwhile_is_not_renewed(engine):
    """Two visits of one person, the lease of the first run out."""
    campaign = await create_campaign_of_systems(
        engine, outputs_table(segments=1), judgments_per_item=100, repeat_items=False
    )
    me = await create_annotator(engine, campaign, platform="prolific", assignment="first")
    hit = await try_to_lease_hit(engine, me)
    await expire_leases(engine, hit)
    again = await create_annotator(engine, campaign, platform="prolific", assignment="second")
    await submit_scores(engine, again, await try_to_lease_hit(engine, again))
    assert (await find_or_lease_next_hit(engine, me)).reason == "seen_all"


async def test_a_system_is_judged_as_often_as_wanted_and_no_more(engine):
    campaign = await create_campaign_of_systems(engine, judgments_per_item=6)
    await answer_hits_of_systems(engine, campaign, by=4, each=6)
    assert await fetch_rows(engine, "SELECT DISTINCT judgments FROM current_posteriors") == [(6,)]
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"


ALIKE = "system,segment,output\n" + "".join(
    f"{system},s{k},{text} {k}\n"
    for k in range(4)
    for system, text in (("ape", "same"), ("bee", "same"), ("cat", "other"))
)


async def test_outputs_that_are_the_same_are_shown_once_and_count_for_both(engine):
    campaign = await create_campaign_of_systems(engine, ALIKE, items_per_hit=3)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    assert sorted(hit.texts) == [f"other {hit.segment}", f"same {hit.segment}"]
    assert (await try_to_lease_hit(engine, me)).items == hit.items
    scores = [80.0 if text.startswith("same") else 20.0 for text in hit.texts]
    await submit_scores(engine, me, hit, scores=scores)
    assert await fetch_rows(
        engine, "SELECT item, value FROM responses, unnest(items, values) AS u (item, value) ORDER BY item"
    ) == [(0, 80.0), (1, 80.0), (2, 20.0)]
    assert await fetch_rows(engine, "SELECT DISTINCT judgments FROM current_posteriors") == [(1,)]
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_form_answers_about_what_is_shown(engine):
    campaign = await create_campaign_of_systems(engine, ALIKE, items_per_hit=3)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    hidden = ({0, 1, 2} - {*hit.items}).pop()
    fields = {f"score-{item}": "50" for item in hit.items}
    async with borrow_autocommit_driver(engine) as connection:
        with pytest.raises(Invalid):
            await submission.store_answer_of_hit_and_return_receipt(
                connection, me, hit.id, Form(fields | {f"score-{hidden}": "1"}, "form"), now=NOW
            )
        await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, Form(fields, "form"), now=NOW)


async def test_systems_that_are_the_same_are_not_compared_with_each_other(engine):
    campaign = await create_campaign_of_systems(engine, ALIKE, design="pairwise", judgments_per_item=12)
    for k in range(6):
        hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign, f"ann {k}"))
        assert len(set(hit.texts)) == 2


HOLES = "system,segment,output\n" + "".join(
    f"{system},s{k},{system} on {k}\n"
    for system, those in (("ape", "0123"), ("bee", "01"), ("cat", "23"))
    for k in those
)


async def test_where_a_system_has_no_output_another_one_stands_in(engine):
    campaign = await create_campaign_of_systems(engine, HOLES, judgments_per_item=40)
    await answer_hits_of_systems(engine, campaign, by=3, each=5)
    shown = await fetch_rows(engine, "SELECT segment, items FROM hits")
    assert len(shown) == 15
    assert all(len(items) == 2 for _, items in shown)
    assert {(segment // 2, *sorted(items)) for segment, items in shown} == {(0, 0, 1), (1, 0, 2)}


async def test_the_baseline_is_in_every_hit_with_its_own_output(engine):
    campaign = await create_campaign_of_systems(
        engine, HOLES, design="baseline", design_settings={"baseline": "ape"}, judgments_per_item=8
    )
    await answer_hits_of_systems(engine, campaign, by=4, each=4)
    assert all(0 in items for (items,) in await fetch_rows(engine, "SELECT items FROM hits"))
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    assert await replay_is_clean(engine, campaign.slug)


@pytest.mark.parametrize("law", ["easl", "easl-aware", "trueskill"])
async def test_a_system_that_joins_later_catches_up(engine, law):
    campaign = await create_campaign_of_systems(engine, judgments_per_item=12, update_law=law)
    cache = PosteriorCache()  # of a process that knew the campaign before
    me = await create_annotator(engine, campaign)
    for _ in range(4):
        await submit_scores(engine, me, await try_to_lease_hit(engine, me, cache=cache))
    held = await create_annotator(engine, campaign, "holds one")
    hit = await try_to_lease_hit(engine, held, cache=cache)
    before = await fetch_rows(engine, "SELECT number, state, judgments FROM current_posteriors ORDER BY number")
    assert await import_items(engine, campaign, outputs_table(("elk",))) == 6
    after = await fetch_rows(engine, "SELECT number, state, judgments FROM current_posteriors ORDER BY number")
    assert after[:4] == before
    assert after[4][2] == 0
    assert await replay_is_clean(engine, campaign.slug)
    await submit_scores(engine, held, hit)
    for k in range(6):
        someone = await create_annotator(engine, campaign, f"late {k}")
        late = await try_to_lease_hit(engine, someone, cache=cache)
        assert "elk" in late.ids or k > 0
        await submit_scores(engine, someone, late)
    assert await replay_is_clean(engine, campaign.slug)


async def test_answers_that_wait_for_a_system_to_join_are_stored(engine):
    campaign = await create_campaign_of_systems(engine)
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    await asyncio.gather(import_items(engine, campaign, outputs_table(("elk",))), submit_scores(engine, me, hit))
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 1
    assert await replay_is_clean(engine, campaign.slug)


async def test_a_system_joins_a_campaign_without_the_answers_that_are_left_out(engine):
    campaign = await create_campaign_of_systems(engine, judgments_per_item=12)
    await answer_hits_of_systems(engine, campaign, by=3, each=2)
    out = await fetch_value(engine, "SELECT min(annotator_id) FROM responses")
    async with engine.begin() as connection:
        await store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", out, reason="bot", actor="me", now=NOW
        )
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    await import_items(engine, campaign, outputs_table(("elk",)))
    assert await fetch_value(engine, "SELECT sum(judgments) FROM current_posteriors") == 8
    assert await replay_is_clean(engine, campaign.slug)


async def test_answers_that_are_left_out_use_no_segment(engine):
    campaign = await create_campaign_of_systems(engine, judgments_per_item=12)
    await answer_hits_of_systems(engine, campaign, by=3, each=2)
    out = await fetch_value(engine, "SELECT min(annotator_id) FROM responses")
    async with engine.begin() as connection:
        await store_decision_and_return_number(
            connection, campaign, "exclude", "annotator", out, reason="bot", actor="me", now=NOW
        )
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    cache, me = PosteriorCache(), await create_annotator(engine, campaign, "one more")
    hit = await try_to_lease_hit(engine, me, cache=cache)
    assert uses(cache, campaign) == 8  # as they were loaded
    await submit_scores(engine, me, hit)
    await find_or_lease_next_hit(engine, me, cache=cache)
    assert uses(cache, campaign) == 10  # as they were heard of


def uses(cache, campaign):
    """Of all outputs together."""
    return cache.indexes[campaign.id].segments.uses.sum()


async def test_what_a_process_shows_of_a_campaign_learns_of_a_system_that_joined(engine):
    campaign = await create_campaign_of_systems(engine)
    await answer_hits_of_systems(engine, campaign, by=2, each=2)
    cache, followers = PosteriorCache(), IncrementalReplays()
    for systems in (4, 5):
        async with engine.begin() as connection:
            state = await load_dashboard_state(connection, cache, followers, campaign.criteria[0], now=NOW)
        assert len(state.figures["heatmap"]["labels"]) == systems
        await import_items(engine, campaign, outputs_table(("elk" if systems == 4 else "fox",)))


async def test_an_output_that_cannot_be_judged_counts_for_nobody_and_its_system_stays(engine):
    campaign = await create_campaign_of_systems(
        engine, ALIKE, items_per_hit=3, cannot_be_judged=True, unjudged_people=1
    )
    me = await create_annotator(engine, campaign)
    hit = await try_to_lease_hit(engine, me)
    (same,) = [item for item, text in zip(hit.items, hit.texts, strict=True) if text.startswith("same")]
    (other,) = {*hit.items} - {same}
    async with borrow_autocommit_driver(engine) as connection:
        reason = campaign.unjudged_reasons[0] if campaign.unjudged_reasons else ""
        answer = Answer({other: 30.0}, unjudged={same: reason})
        await submission.store_answer_of_hit_and_return_receipt(connection, me, hit.id, answer, now=NOW)
    assert await fetch_rows(engine, "SELECT number, judgments FROM current_posteriors ORDER BY number") == [
        (0, 0),
        (1, 0),
        (2, 1),
    ]
    assert await fetch_value(engine, "SELECT max(unjudged) FROM posteriors") == 0
    async with engine.begin() as connection:
        assert await unjudged.load_reason_counts_by_unjudged_item(connection, campaign.id) == {}
    assert await fetch_rows(
        engine, "SELECT jsonb_object_keys(extra -> 'cannot_be_judged') FROM responses ORDER BY 1"
    ) == [
        ("0",),
        ("1",),
    ]
    assert await replay_is_clean(engine, campaign.slug)
    assert (await find_or_lease_next_hit(engine, me)).hit


async def test_nobody_is_asked_again_about_outputs_that_they_could_not_judge(engine):
    campaign = await create_campaign_of_systems(
        engine, outputs_table(segments=3), judgments_per_item=100, cannot_be_judged=True
    )
    me, seen = await create_annotator(engine, campaign), []
    reason = campaign.unjudged_reasons[0]
    for broken in (True, True, False, False, True):
        hit = await try_to_lease_hit(engine, me)
        seen.append(hit.segment)
        scores, unjudged = ({}, dict.fromkeys(hit.items, reason)) if broken else (dict.fromkeys(hit.items, 50.0), {})
        async with borrow_autocommit_driver(engine) as connection:
            await submission.store_answer_of_hit_and_return_receipt(
                connection, me, hit.id, Answer(scores, unjudged=unjudged), now=NOW
            )
    assert {*seen[:3]} == {0, 1, 2}
    assert {*seen[3:]} == {seen[2]}
    assert (await find_or_lease_next_hit(engine, me)).reason == "seen_all"
    assert (await find_or_lease_next_hit(engine, await create_annotator(engine, campaign, "bob"))).hit


def in_pairs(*outputs):
    """A table of systems, each with one output for every segment; the same letter is the same output."""
    rows = [f"{system},s{k},{text} {k}" for k in range(3) for system, text in zip(SYSTEMS, outputs, strict=False)]
    return "\n".join(["system,segment,output", *rows]) + "\n"


def in_order(campaign, hit):
    """The system with the higher number is better."""
    return campaign.design.simulate_answer_values([item / 10 for item in hit.items])


async def judged_until(engine, campaign, people):
    """Whether the campaign ended while so many people, each with another name, answered all they could."""
    for k in range(people):
        me = await create_annotator(engine, campaign, f"p{k}")
        while (work := await find_or_lease_next_hit(engine, me)).hit is not None:
            await submit_scores(engine, me, work.hit, scores=in_order(campaign, work.hit))
        if work.reason == "all_done":
            return True
    return False


async def test_it_ends_when_what_is_left_cannot_be_compared(engine):
    campaign = await create_campaign_of_systems(
        engine, in_pairs("x", "x", "y"), design="pairwise", judgments_per_item=3
    )
    assert await judged_until(engine, campaign, 8)
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    left = await fetch_rows(engine, "SELECT number, judgments FROM current_posteriors ORDER BY number")
    assert sum(judgments for _, judgments in left) == 6
    assert left[2] == (2, 3)
    assert await replay_is_clean(engine, campaign.slug)


async def test_whoever_comes_when_what_is_left_cannot_be_compared_is_told_that_all_is_done(engine):
    campaign = await create_campaign_of_systems(
        engine, in_pairs("x", "x", "y"), design="pairwise", judgments_per_item=3
    )
    await execute_sql(engine, "UPDATE posteriors SET judgments = 3 WHERE subject = 2")
    assert (await find_or_lease_next_hit(engine, await create_annotator(engine, campaign))).reason == "all_done"
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"


async def test_it_goes_on_while_others_hold_what_could_be_compared(engine):
    campaign = await create_campaign_of_systems(
        engine, in_pairs("x", "x", "y"), design="pairwise", judgments_per_item=1
    )
    holder = await create_annotator(engine, campaign, "holder")
    hit = await try_to_lease_hit(engine, holder)
    assert 2 in hit.items
    assert (await find_or_lease_next_hit(engine, await create_annotator(engine, campaign, "other"))).reason == "wait"
    await submit_scores(engine, holder, hit, scores=in_order(campaign, hit))
    assert (
        await find_or_lease_next_hit(engine, await create_annotator(engine, campaign, "other"))
    ).reason == "all_done"


async def test_who_has_had_every_segment_does_not_end_it_for_others(engine):
    table_ = in_pairs("x", "y", "z", "w")
    campaign = await create_campaign_of_systems(
        engine, table_, design="pairwise", judgments_per_item=9, repeat_items=False
    )
    assert not await judged_until(engine, campaign, 2)
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "running"


async def test_nobody_is_sent_away_because_the_systems_that_were_drawn_are_the_same(engine):
    """The first goes best with the second, which is the same as it, and that one else with the third; but the first and
    the third differ where both have an output.
    """
    rows = "ape,s0,x\nbee,s0,x\ndoe,s0,z\nbee,s1,y\ncat,s1,y\nape,s2,p\ncat,s2,q\ndoe,s1,z\n"
    campaign = await create_campaign_of_systems(
        engine, "system,segment,output\n" + rows, design="pairwise", judgments_per_item=3
    )
    places = "score = (ARRAY[.1, .1, .5, .9])[subject + 1], variance = (ARRAY[3e-6, 2e-6, 1e-6, 1e-6])[subject + 1]"
    done = "judgments = CASE WHEN external_id = 'doe' THEN 3 ELSE 0 END"
    named = "FROM items WHERE items.number = subject"
    await execute_sql(engine, f"UPDATE posteriors SET {places}, {done} {named}")
    me = await create_annotator(engine, campaign)
    names = dict(await fetch_rows(engine, "SELECT number, external_id FROM items"))
    hit = await try_to_lease_hit(engine, me, cache=PosteriorCache())
    assert {names[item] for item in hit.items} == {"ape", "cat"}


async def test_a_system_that_can_be_compared_with_no_other_any_more_is_passed_over_though_it_would_come_first(engine):
    """The only one with outputs for the same segments has all its judgments."""
    pairs = (("ape", "bee", 0), ("cat", "doe", 1), ("cat", "doe", 2), ("cat", "doe", 3))
    rows = "".join(f"{system},s{k},{system} {k}\n" for *systems, k in pairs for system in systems)
    campaign = await create_campaign_of_systems(
        engine, "system,segment,output\n" + rows, design="pairwise", judgments_per_item=3
    )
    changed = "variance = CASE number WHEN 0 THEN 9 ELSE .01 END, judgments = CASE number WHEN 1 THEN 3 ELSE 0 END"
    named = "SELECT array_position(ARRAY['ape', 'bee'], external_id) - 1 AS number, items.number AS item FROM items"
    await execute_sql(engine, f"UPDATE posteriors SET {changed} FROM ({named}) AS named WHERE item = subject")
    cache = PosteriorCache()
    for name in ("ann", "bob"):
        hit = await try_to_lease_hit(engine, await create_annotator(engine, campaign, name), cache=cache)
        assert sorted(hit.ids) == ["cat", "doe"]


async def test_what_is_left_is_said_on_the_overview(engine, researcher):
    campaign = await create_campaign_of_systems(
        engine, in_pairs("x", "x", "y"), design="pairwise", judgments_per_item=3
    )
    address = f"/admin/campaigns/{campaign.slug}"
    assert "cannot be compared" not in (await researcher.get(address)).text
    await judged_until(engine, campaign, 8)
    page = " ".join((await researcher.get(address)).text.split())
    left = await fetch_rows(engine, "SELECT number, judgments FROM current_posteriors WHERE judgments < 3 ORDER BY 1")
    said = " and ".join(f"{SYSTEMS[number]} ({judgments} of 3)" for number, judgments in left)
    assert f"ended before collecting all judgments of {said}. These" in page


async def test_nothing_is_said_of_one_system_that_is_left_when_a_campaign_ends_as_it_should(engine, researcher):
    campaign = await create_campaign_of_systems(
        engine, outputs_table(SYSTEMS[:3]), design="pairwise", judgments_per_item=3
    )
    assert await judged_until(engine, campaign, 8)
    assert await fetch_rows(engine, "SELECT judgments FROM current_posteriors WHERE judgments < 3") == [(2,)]
    assert (
        "ended before collecting all judgments" not in (await researcher.get(f"/admin/campaigns/{campaign.slug}")).text
    )
