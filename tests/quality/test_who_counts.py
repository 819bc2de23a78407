"""Hold and release, exclude and restore: what they do to annotators, to answers and to what others are asked."""

import asyncio
import json
from typing import Any

import pytest
from sqlalchemy import text

from app.annotation.hits import drafts
from app.cli.run_command import encode_chunk
from app.database.session import borrow_driver_in_transaction
from app.errors import Conflict, Invalid, NotFound
from app.exports.registry import open_export_or_refuse
from app.imports.imported_hits_store import LOCK_RESPONSE_IMPORTS
from app.quality import annotators, decisions
from app.record import revisions
from app.record.revisions import LOCK_CAMPAIGN_FOR_DECISION
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
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
from tests.campaigns.drafts import import_results
from tests.quality.deciding import ADA, POSTERIORS, answer_hits, decide, verify_campaign


async def test_who_is_held_gets_no_hit_and_their_answers_count(engine):
    campaign, (me, *_), (first, *_) = await answer_hits(engine)
    before = await fetch_rows(engine, POSTERIORS)
    await decide(engine, campaign, "hold", first)
    work = await find_or_lease_next_hit(engine, me)
    assert (work.reason, work.hit, work.is_finished) == ("held", None, True)
    assert await fetch_rows(engine, POSTERIORS) == before
    assert await fetch_value(engine, "SELECT revision FROM campaigns") == 0


@pytest.mark.parametrize(("bars", "lets_in"), [("hold", "release"), ("exclude", "restore")])
async def test_what_an_annotator_holds_goes_to_others_and_comes_back_with_them(engine, bars, lets_in):
    campaign, (me, other), (first, _) = await answer_hits(engine, people=2, hits=0, items=5, judgments_per_item=1)
    hit = await try_to_lease_hit(engine, me)
    async with borrow_driver_in_transaction(engine) as connection:
        await drafts.try_to_save_draft_of_open_hit(connection, me, hit.id, {"00": {"score": 7}})
    assert (await find_or_lease_next_hit(engine, other)).reason == "wait"
    await decide(engine, campaign, bars, first)
    theirs = await try_to_lease_hit(engine, other)
    assert sorted(theirs.items) == sorted(hit.items)
    await expire_leases(engine, theirs)
    await decide(engine, campaign, lets_in, first)
    again = await try_to_lease_hit(engine, me)
    assert (again.id, again.draft) == (hit.id, {"00": {"score": 7}})


async def test_a_hit_got_in_the_moment_of_the_decision_goes_back_at_the_next_look(engine):
    campaign, (me, other), (first, _) = await answer_hits(engine, people=2, hits=0, items=5, judgments_per_item=1)
    await decide(engine, campaign, "hold", first)
    await execute_sql(engine, "UPDATE annotators SET barred = NULL")
    await try_to_lease_hit(engine, me)
    await execute_sql(engine, "UPDATE annotators SET barred = 'held' WHERE id = :first", first=first)
    assert (await find_or_lease_next_hit(engine, me)).reason == "held"
    assert (await find_or_lease_next_hit(engine, other)).hit is not None


async def test_a_hit_that_is_renewed_just_before_the_decision_goes_back_with_it(engine):
    campaign, (me, *_), (first, *_) = await answer_hits(engine, people=1, hits=0)
    await try_to_lease_hit(engine, me)
    await expire_leases(engine)
    async with engine.begin() as renewing:
        await renewing.execute(text("SELECT FROM annotators FOR NO KEY UPDATE"))
        deciding = asyncio.create_task(decide(engine, campaign, "hold", first))
        await wait_until(engine, requests_are_waiting_sql(1))
        await renewing.execute(text("UPDATE hits SET expires_at = clock_timestamp() + interval '1 hour'"))
    await deciding
    assert await fetch_value(engine, "SELECT count(*) FROM hits WHERE expires_at > clock_timestamp()") == 0


async def test_a_first_touch_after_its_time_is_no_way_back_to_a_hit(engine):
    campaign, (me, *_), (first, *_) = await answer_hits(engine, people=1, hits=0)
    hit = await try_to_lease_hit(engine, me)
    await execute_sql(engine, "UPDATE hits SET untouched_by = 'somewhere'")
    await decide(engine, campaign, "hold", first)
    async with borrow_driver_in_transaction(engine) as connection:
        await drafts.try_to_save_draft_of_open_hit(connection, me, hit.id, {})
    assert await fetch_value(engine, "SELECT count(*) FROM hits WHERE expires_at > clock_timestamp()") == 0


async def test_a_held_annotator_can_still_send_what_they_were_answering_and_it_counts(engine):
    campaign, (me, *_), (first, *_) = await answer_hits(engine)
    hit = await try_to_lease_hit(engine, me)
    await decide(engine, campaign, "hold", first)
    await submit_scores(engine, me, hit)
    assert (await verify_campaign(engine, campaign)).responses == 7


async def test_without_an_excluded_annotator_items_want_their_judgments_anew(engine):
    campaign, (careless, careful), (first, _) = await answer_hits(
        engine, people=2, hits=0, items=10, judgments_per_item=1
    )
    await submit_scores(engine, careless, await try_to_lease_hit(engine, careless))
    await decide(engine, campaign, "exclude", first)
    for _ in range(2):
        await submit_scores(engine, careful, await try_to_lease_hit(engine, careful))
    assert await fetch_rows(engine, "SELECT DISTINCT judgments FROM current_posteriors") == [(1,)]
    assert await fetch_value(engine, "SELECT status FROM campaigns") == "finished"
    assert (await verify_campaign(engine, campaign)).responses == 2


@pytest.mark.parametrize("law", ["easl", "easl-aware", "ra"])
async def test_whoever_is_restored_counts_as_before_and_goes_on(engine, law):
    campaign, (me, *_), (first, *_) = await answer_hits(engine, update_law=law)
    before = await fetch_rows(engine, POSTERIORS)
    await decide(engine, campaign, "exclude", first)
    assert await fetch_rows(engine, POSTERIORS) != before
    assert (await verify_campaign(engine, campaign)).has_no_mismatches
    await decide(engine, campaign, "restore", first)
    assert await fetch_rows(engine, POSTERIORS) == before
    assert (await find_or_lease_next_hit(engine, me)).hit is not None


async def test_one_answer_is_left_out_and_its_annotator_goes_on(engine):
    campaign, (me, *_), _ = await answer_hits(engine)
    before = await fetch_rows(engine, POSTERIORS)
    answer = await fetch_value(engine, "SELECT min(seq) FROM responses")
    await decide(engine, campaign, "exclude_answer", answer)
    assert (await verify_campaign(engine, campaign)).responses == 5
    assert (await find_or_lease_next_hit(engine, me)).hit is not None
    await decide(engine, campaign, "restore_answer", answer)
    assert await fetch_rows(engine, POSTERIORS) == before


async def test_an_answer_excluded_by_itself_stays_so_when_its_annotator_is_restored(engine):
    campaign, _, (first, *_) = await answer_hits(engine)
    answer = await fetch_value(engine, "SELECT min(seq) FROM responses")
    await decide(engine, campaign, "exclude", first)
    await decide(engine, campaign, "exclude_answer", answer)
    await decide(engine, campaign, "restore", first)
    found = await verify_campaign(engine, campaign)
    assert (found.has_no_mismatches, found.responses) == (True, 5)
    await decide(engine, campaign, "restore_answer", answer)
    assert (await verify_campaign(engine, campaign)).responses == 6


async def test_a_held_annotator_can_be_excluded_and_is_then_restored_to_work(engine):
    campaign, (me, *_), (first, *_) = await answer_hits(engine)
    await decide(engine, campaign, "hold", first)
    await decide(engine, campaign, "exclude", first)
    assert await fetch_value(engine, "SELECT barred FROM annotators WHERE id = :id", id=first) == "excluded"
    await decide(engine, campaign, "restore", first)
    assert (await find_or_lease_next_hit(engine, me)).hit is not None


@pytest.mark.parametrize(
    ("before", "what", "code"),
    [
        ([], "release", "not_held"),
        ([], "restore", "not_excluded"),
        (["hold"], "hold", "already_held"),
        (["hold"], "restore", "not_excluded"),
        (["exclude"], "exclude", "already_excluded"),
        (["exclude"], "hold", "already_excluded"),
        (["exclude"], "release", "not_held"),
        (["exclude", "restore"], "restore", "not_excluded"),
    ],
)
async def test_what_is_so_already_is_not_decided_again(engine, before, what, code):
    campaign, _, (first, *_) = await answer_hits(engine, people=1, hits=1)
    for earlier in before:
        await decide(engine, campaign, earlier, first)
    decisions = await fetch_value(engine, "SELECT count(*) FROM decisions")
    with pytest.raises(Conflict) as problem:
        await decide(engine, campaign, what, first)
    assert problem.value.code == code
    assert await fetch_value(engine, "SELECT count(*) FROM decisions") == decisions


@pytest.mark.parametrize(
    ("kind", "what", "code"),
    [
        (None, "restore_answer", "not_excluded"),
        ("exclude", "exclude_answer", "already_excluded"),
        ("include", "restore_answer", "not_excluded"),
        ("withdraw", "exclude_answer", "answer_withdrawn"),
        ("withdraw", "restore_answer", "answer_withdrawn"),
    ],
)
async def test_nor_is_what_is_so_of_an_answer(engine, kind, what, code):
    campaign, _, _ = await answer_hits(engine, people=1, hits=1)
    answer = await fetch_value(engine, "SELECT seq FROM responses")
    if kind:
        async with engine.begin() as connection:
            why: dict[str, Any] = {"reason": "mistaken", "actor": "ada", "now": NOW}
            await revisions.store_decision_and_return_number(connection, campaign, kind, "response", answer, **why)
    with pytest.raises(Conflict) as problem:
        await decide(engine, campaign, what, answer)
    assert problem.value.code == code


async def test_to_restore_an_answer_of_an_excluded_annotator_is_to_restore_them(engine):
    campaign, _, (first, *_) = await answer_hits(engine, people=1, hits=1)
    await decide(engine, campaign, "exclude", first)
    with pytest.raises(Conflict, match="restore them instead"):
        await decide(engine, campaign, "restore_answer", await fetch_value(engine, "SELECT seq FROM responses"))


async def test_two_who_exclude_somebody_at_once_make_one_decision(engine):
    campaign, _, (first, *_) = await answer_hits(engine)
    outcomes = await asyncio.gather(
        *(decide(engine, campaign, "exclude", first) for _ in range(2)), return_exceptions=True
    )
    assert [one.code for one in outcomes if isinstance(one, Conflict)] == ["already_excluded"]
    assert await fetch_value(engine, "SELECT count(*) FROM decisions") == 1
    assert (await verify_campaign(engine, campaign)).responses == 4


async def test_two_who_exclude_an_answer_at_once_make_one_decision(engine):
    campaign, _, _ = await answer_hits(engine, people=1, hits=1)
    answer = await fetch_value(engine, "SELECT seq FROM responses")
    async with engine.begin() as another_decision:
        await another_decision.execute(LOCK_CAMPAIGN_FOR_DECISION, {"campaign": campaign.id})
        deciding = [asyncio.create_task(decide(engine, campaign, "exclude_answer", answer)) for _ in range(2)]
        await wait_until(engine, requests_are_waiting_sql(2))
    outcomes = await asyncio.gather(*deciding, return_exceptions=True)
    assert [one.code for one in outcomes if isinstance(one, Conflict)] == ["already_excluded"]
    numbers = await fetch_rows(engine, "SELECT seq FROM decisions")
    assert [(one,) for one in outcomes if not isinstance(one, Exception)] == numbers


async def test_a_decision_is_said_to_be_missing_in_the_scores_until_they_are_revised(engine):
    campaign, _, (first, *_) = await answer_hits(engine)
    seen = []
    async with engine.connect() as connection:
        seen.append(await annotators.are_decisions_missing_in_posteriors(connection, campaign.id))
    async with engine.begin() as connection:
        await decisions.exclude_annotator(connection, campaign, first, reason="fast", actor=ADA, now=NOW)
        seen.append(await annotators.are_decisions_missing_in_posteriors(connection, campaign.id))
    await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=NOW)
    async with engine.connect() as connection:
        seen.append(await annotators.are_decisions_missing_in_posteriors(connection, campaign.id))
    assert seen == [False, True, False]


async def test_two_who_exclude_different_people_at_once_leave_both_out(engine):
    campaign, _, (first, second, _) = await answer_hits(engine, update_law="easl-aware")
    await asyncio.gather(*(decide(engine, campaign, "exclude", who) for who in (first, second)))
    found = await verify_campaign(engine, campaign)
    assert (found.has_no_mismatches, found.responses) == (True, 2)


async def test_an_answer_that_is_being_stored_is_waited_for_and_not_lost(engine):
    """The exclusion wants the HIT's row that the answer has; the answer, its campaign's, if it finishes it."""
    campaign, (me, *_), (first, *_) = await answer_hits(engine)
    hit = await try_to_lease_hit(engine, me)
    async with engine.begin() as connection:
        await connection.execute(text("SELECT FROM hits WHERE id = :hit FOR NO KEY UPDATE"), {"hit": hit.id})
        excluding = asyncio.create_task(decide(engine, campaign, "exclude", first))
        await wait_until(engine, requests_are_waiting_sql(1))
        answering = asyncio.create_task(submit_scores(engine, me, hit))
        await wait_until(engine, requests_are_waiting_sql(2))
    await asyncio.gather(excluding, answering)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 7
    found = await verify_campaign(engine, campaign)
    assert (found.has_no_mismatches, found.responses) == (True, 4)


async def test_who_is_excluded_during_an_import_is_left_out_of_it(engine):
    campaign = await create_running_campaign(engine)
    row = "WorkerId,AssignmentId,Input.id1,Input.id2,Answer.range1,Answer.range2\n{},{},v0,v1,10,90\n"
    await import_results(engine, campaign, row.format("W1", "A1"))
    worker = await fetch_value(engine, "SELECT id FROM annotators")
    async with engine.begin() as another_import:
        await another_import.execute(LOCK_RESPONSE_IMPORTS, {"campaign": campaign.id})
        more = row.format("W1", "A2") + row.format("W2", "A3").split("\n", 1)[1]
        importing = asyncio.create_task(import_results(engine, campaign, more))
        await wait_until(engine, requests_are_waiting_sql(1))
        excluding = asyncio.create_task(decide(engine, campaign, "exclude", worker))
        await wait_until(engine, requests_are_waiting_sql(2))
    await asyncio.gather(importing, excluding)
    found = await verify_campaign(engine, campaign)
    assert (found.has_no_mismatches, found.responses) == (True, 1)
    assert await fetch_value(engine, "SELECT count(*) FROM responses") == 3


async def test_a_reason_is_needed_and_kept_with_who_and_when(engine):
    campaign, _, (first, second, _) = await answer_hits(engine, hits=1)
    for reason, code in (
        ("  ", "reason_missing"),
        ("\u200b", "reason_missing"),
        ("x" * 501, "reason_too_long"),
        ("all\x07 at 50", "reason_invalid"),
        ("all\x00 at 50", "reason_invalid"),
    ):
        with pytest.raises(Invalid) as problem:
            await decide(engine, campaign, "exclude", first, reason=reason)
        assert problem.value.code == code, repr(reason)
    await decide(engine, campaign, "exclude", first, reason=" sets all to 50 ")
    await decide(engine, campaign, "hold", second)
    told = "SELECT barred, barred_reason, barred_by, barred_at FROM annotators WHERE barred IS NOT NULL ORDER BY id"
    assert await fetch_rows(engine, told) == [
        ("excluded", "sets all to 50", "ada", NOW),
        ("held", "too fast", "ada", NOW),
    ]
    log = "SELECT action, about, after ->> 'reason' FROM audit_log WHERE action LIKE 'answers.%' ORDER BY id"
    assert await fetch_rows(engine, log) == [
        ("answers.exclude", "A1", "sets all to 50"),
        ("answers.hold", "A2", "too fast"),
    ]


async def test_nobody_of_another_campaign_is_touched(engine):
    campaign, _, _ = await answer_hits(engine, people=1, hits=1)
    _, (theirs,), (other,) = await answer_hits(engine, people=1, hits=1)
    for what in ("hold", "release", "exclude", "restore"):
        with pytest.raises(NotFound) as problem:
            await decide(engine, campaign, what, other)
        assert problem.value.code == "annotator_not_found"
    answer = await fetch_value(engine, "SELECT max(seq) FROM responses")
    with pytest.raises(NotFound) as problem:
        await decide(engine, campaign, "exclude_answer", answer)
    assert problem.value.code == "response_not_found"
    assert (await find_or_lease_next_hit(engine, theirs)).hit is not None


async def test_annotators_are_found_by_their_names(engine):
    campaign, _, rows = await answer_hits(engine, hits=0)
    await create_annotator(engine, await create_running_campaign(engine), "of another campaign")
    async with engine.connect() as connection:
        found = [await decisions.find_annotator_id_or_refuse(connection, campaign, name) for name in ("A1", "A2", "A3")]
        assert found == rows
        pseudonym = await fetch_value(engine, "SELECT pseudonym FROM annotators WHERE id = :id", id=rows[1])
        assert await decisions.find_annotator_id_or_refuse(connection, campaign, pseudonym) == rows[1]
        for name in ("A4", "A0", "A-1", "A", "", "a1", "A1 ", "A²", "A" + "9" * 5000):
            with pytest.raises(NotFound) as problem:
                await decisions.find_annotator_id_or_refuse(connection, campaign, name)
            assert problem.value.code == "annotator_not_found"


async def test_what_is_left_out_stays_in_exports_and_is_marked(engine):
    campaign, _, (first, second, _) = await answer_hits(engine, hits=2)
    answer = await fetch_value(engine, "SELECT min(seq) FROM responses WHERE annotator_id = :second", second=second)
    await decide(engine, campaign, "exclude", first)
    await decide(engine, campaign, "exclude_answer", answer)
    rows = [json.loads(line) for line in await lines_of(engine, campaign, "responses")]
    assert len(rows) == 3 * 2 * 5
    out = {row["seq"] for row in rows if not row["counts"]}
    assert len(out) == 3
    assert answer in out
    paid = [json.loads(line) for line in await lines_of(engine, campaign, "assignments")]
    assert [(row["hits_answered"], row["hits_counted"], row["barred"]) for row in paid] == [
        (2, 0, "excluded"),
        (2, 1, None),
        (2, 2, None),
    ]


async def test_exports_say_why_an_answer_is_left_out_by_the_last_decision_that_the_scores_know(engine):
    campaign, _, (first, second, _) = await answer_hits(engine, hits=1)
    answer = await fetch_value(engine, "SELECT min(seq) FROM responses WHERE annotator_id = :second", second=second)
    for what, target in (("exclude", first), ("exclude_answer", answer)):
        await decide(engine, campaign, what, target, reason="too fast")
    for what, target in (("restore", first), ("restore_answer", answer)):
        await decide(engine, campaign, what, target, reason="a mistake")
    assert {reason for _, reason in await left_out_with_reasons(engine, campaign)} == {None}
    for what, target in (("exclude", first), ("exclude_answer", answer)):
        await decide(engine, campaign, what, target, reason="fast again")
    expected = [("annotator_excluded", "fast again"), ("answer_excluded", "fast again"), (None, None)]
    assert await left_out_with_reasons(engine, campaign) == expected
    async with engine.begin() as connection:
        await decisions.restore_excluded_annotator(connection, campaign, first, reason="fine", actor=ADA, now=NOW)
        await decisions.restore_answer(connection, campaign, answer, reason="fine", actor=ADA, now=NOW)
    assert await left_out_with_reasons(engine, campaign) == expected  # until the scores are revised


async def left_out_with_reasons(engine, campaign):
    """Return why each answer is left out, and the reason that was given, in the order of the answers."""
    rows = [json.loads(line) for line in await lines_of(engine, campaign, "responses")]
    return [(row["left_out"], row["left_out_reason"]) for row in {row["seq"]: row for row in rows}.values()]


async def lines_of(engine, campaign, what):
    file = await open_export_or_refuse(engine, campaign.slug, what, "jsonl")
    return b"".join([encode_chunk(chunk) async for chunk in file.chunks]).decode().splitlines()
