"""Erase people: what goes, what stays, and that every interruption is continued."""

import asyncio
import math
from datetime import timedelta

import pytest

from app.annotation.hits.remarks import SELECT_FLAGGED_ITEMS
from app.annotation.onboarding.visit_progress import STORE_STEP_RESULT
from app.errors import Conflict, Forbidden, Gone, Invalid, NotFound
from app.privacy.erasure_work import finish_erasures_that_are_due
from app.privacy.erasures import erase_person_and_return_erasure
from app.privacy.retention import RetentionDue, lock_campaign_returning_if_still_due
from app.quality import decisions
from app.quality.listings import load_annotators_to_review
from app.record.revisions import switch_revision_if_it_misses_decisions
from tests.annotation.hits.campaigns import (
    NOW,
    create_annotator,
    create_running_campaign,
    execute_sql,
    fetch_rows,
    fetch_value,
    find_or_lease_next_hit,
    submit_scores,
    try_to_lease_hit,
)
from tests.privacy.people import (
    SUBMISSION_ID,
    TRACES,
    WORKER_ID,
    annotator_id_of,
    answer_hits,
    create_answered_campaign,
    create_person_with_link,
    dump_database,
    erase_found,
    posterior_rows,
    verification_is_clean,
)

LATER = NOW + timedelta(hours=1)
STORE_REWARD_AND_SUBMISSION = """
    WITH person AS (SELECT campaign_id, id FROM annotators WHERE worker_id = CAST(:worker AS text)), submission AS (
        INSERT INTO submissions (campaign_id, external_id, annotator_id, study, status, seen_at, problem,
            submission_hash)
        SELECT campaign_id, :submission, id, 'study-1', 'approved', :now, 'refused ' || :submission, 'a hash'
        FROM person)
    INSERT INTO payments (campaign_id, annotator_id, submission, study, amount, currency, reason, state, request_key,
        line, created_by, created_at, kind, problem, submission_hash)
    SELECT campaign_id, id, :submission, 'study-1', 90, 'GBP', 'my own comment', 'sent', 'reward', 1, 'Easel', :now,
        'reward', 'refused ' || :submission, 'a hash' FROM person
"""
RULES = ("anonymise", "remove")


async def erase_completely(engine, campaign, term, rule):
    erasure = await erase_found(engine, campaign, term, rule, now=LATER)
    await finish_erasures_that_are_due(engine, now=LATER)
    return erasure


@pytest.mark.parametrize("rule", RULES)
async def test_afterwards_a_dump_of_the_database_holds_no_trace_of_the_person(engine, tmp_path, rule):
    campaign, _ = await create_answered_campaign(engine)
    linked = await create_person_with_link(engine, campaign, "Ada Lovelace")
    await answer_hits(engine, linked, 1)
    await execute_sql(engine, STORE_REWARD_AND_SUBMISSION, submission=SUBMISSION_ID, worker=WORKER_ID, now=NOW)
    assert [trace for trace in TRACES if trace not in await dump_database(engine, tmp_path)] == []
    await erase_completely(engine, campaign, WORKER_ID, rule)
    await erase_completely(engine, campaign, "ada lovelace", rule)
    left = await dump_database(engine, tmp_path)
    assert [trace for trace in TRACES if trace in left] == []
    assert "ben" in left
    hashes = "SELECT (SELECT submission_hash FROM payments) = 'a hash', (SELECT submission_hash FROM submissions)"
    assert await fetch_rows(engine, hashes) == [(True, None)]
    assert await verification_is_clean(engine, campaign)


async def test_anonymised_judgments_stay_and_no_posterior_changes(engine):
    campaign, _ = await create_answered_campaign(engine)
    before = await posterior_rows(engine)
    values = await fetch_rows(engine, "SELECT seq, items, values FROM responses ORDER BY seq")
    pseudonym = await fetch_value(engine, "SELECT pseudonym FROM annotators WHERE worker_id = :id", id=WORKER_ID)
    await erase_completely(engine, campaign, WORKER_ID, "anonymise")
    assert await posterior_rows(engine) == before
    assert await fetch_rows(engine, "SELECT seq, items, values FROM responses ORDER BY seq") == values
    assert pseudonym not in [name for (name,) in await fetch_rows(engine, "SELECT pseudonym FROM annotators")]
    assert await fetch_value(
        engine, "SELECT extra -> 'remarks' -> 'hit' FROM responses WHERE extra IS NOT NULL LIMIT 1"
    ) == {"flag": "Another reason"}
    assert await verification_is_clean(engine, campaign)


async def test_nobody_else_of_the_campaign_is_blocked(engine):
    campaign, _ = await create_answered_campaign(engine)
    await erase_completely(engine, campaign, WORKER_ID, "anonymise")
    blocked = await fetch_rows(engine, "SELECT worker_id = 'ben', barred FROM annotators ORDER BY 1")
    assert blocked == [(False, "erased"), (True, None)]


async def test_removed_answers_count_as_those_of_an_excluded_annotator_do(engine):
    campaign, _ = await create_answered_campaign(engine)
    numbers = await fetch_rows(engine, "SELECT seq, items FROM responses ORDER BY seq")
    await erase_completely(engine, campaign, WORKER_ID, "remove")
    other = await fetch_value(engine, "SELECT id FROM annotators WHERE worker_id = 'ben'")
    counted = await fetch_value(engine, "SELECT sum(judgments) FROM current_posteriors")
    assert counted == await fetch_value(
        engine, "SELECT sum(cardinality(items)) FROM responses WHERE annotator_id = :other", other=other
    )
    assert await fetch_rows(engine, "SELECT seq, items FROM responses ORDER BY seq") == numbers
    holes = await fetch_rows(
        engine, "SELECT values, extra, telemetry FROM responses WHERE annotator_id <> :other", other=other
    )
    assert all(math.isnan(value) for values, _, _ in holes for value in values)
    assert [(extra, telemetry) for _, extra, telemetry in holes] == [(None, None)] * 2
    assert await fetch_rows(engine, "SELECT step, said FROM visits") == [("consent", {})]
    assert await verification_is_clean(engine, campaign)


async def test_removed_values_are_overwritten_only_after_no_revision_needs_them(engine):
    campaign, _ = await create_answered_campaign(engine)
    await erase_found(engine, campaign, WORKER_ID, "remove", now=LATER)
    assert await verification_is_clean(engine, campaign)
    await switch_revision_if_it_misses_decisions(engine, campaign.id, now=LATER)
    assert await verification_is_clean(engine, campaign)
    await finish_erasures_that_are_due(engine, now=LATER)
    assert await verification_is_clean(engine, campaign)
    assert await fetch_value(engine, "SELECT finished_at FROM erasures") == LATER


async def test_an_open_hit_is_free_for_others_and_its_page_can_store_nothing(engine):
    campaign = await create_running_campaign(engine, items=5, judgments_per_item=1)
    person = await create_annotator(engine, campaign, WORKER_ID, "prolific")
    hit = await try_to_lease_hit(engine, person)
    await erase_completely(engine, campaign, WORKER_ID, "anonymise")
    with pytest.raises(Gone):
        await submit_scores(engine, person, hit)
    assert (await find_or_lease_next_hit(engine, person)).reason == "erased"
    other = await create_annotator(engine, campaign, "ben")
    assert set((await try_to_lease_hit(engine, other)).items) == set(hit.items)


@pytest.mark.parametrize("rule", RULES)
async def test_an_erased_person_cannot_take_part_again_and_leaves_no_row(engine, rule):
    campaign, _ = await create_answered_campaign(engine)
    await erase_completely(engine, campaign, WORKER_ID, rule)
    with pytest.raises(Forbidden, match="Your data were erased") as refusal:
        await create_annotator(engine, campaign, WORKER_ID, "prolific", assignment="a new session")
    assert refusal.value.code == "was_erased"
    assert await fetch_value(engine, "SELECT count(*) FROM annotators") == 2


async def test_an_erased_person_may_take_part_in_another_campaign(engine):
    campaign, _ = await create_answered_campaign(engine)
    await erase_completely(engine, campaign, WORKER_ID, "remove")
    other = await create_running_campaign(engine)
    assignment = await create_annotator(engine, other, WORKER_ID, "prolific")
    assert (await find_or_lease_next_hit(engine, assignment)).hit is not None


async def test_a_person_whose_ids_only_retention_erased_is_not_refused(engine):
    campaign, _ = await create_answered_campaign(engine)
    await execute_sql(engine, "UPDATE annotators SET worker_id = 'erased:' || id WHERE worker_id = :id", id=WORKER_ID)
    again = await create_annotator(engine, campaign, WORKER_ID, "prolific", assignment="a new session")
    assert (await find_or_lease_next_hit(engine, again)).hit is not None


async def test_the_log_has_the_receipt_and_counts_and_not_the_person(engine):
    campaign, _ = await create_answered_campaign(engine)
    erasure = await erase_completely(engine, campaign, WORKER_ID, "anonymise")
    rows = await fetch_rows(engine, "SELECT about, after FROM audit_log WHERE action = 'people.erased'")
    assert rows == [(erasure.receipt, {"rule": "anonymise", "answers": 2})]


async def test_two_requests_at_once_erase_once(engine):
    campaign, _ = await create_answered_campaign(engine)
    erasing = [erase_person_and_return_erasure(engine, campaign.slug, "A1", "remove", now=LATER) for _ in range(2)]
    done, refused = sorted(await asyncio.gather(*erasing, return_exceptions=True), key=lambda one: str(type(one)))[::-1]
    if isinstance(done, Conflict):
        done, refused = refused, done
    assert isinstance(refused, Conflict)
    assert not isinstance(done, BaseException)
    assert refused.code == "already_erased"
    assert refused.details["receipt"] == done.receipt
    assert await fetch_value(engine, "SELECT count(*) FROM decisions WHERE kind = 'erased'") == 1


async def test_requests_of_both_rules_at_once_wait_for_each_other(engine):
    campaign, _ = await create_answered_campaign(engine)
    rules = ["anonymise", "remove"] * 3
    erasing = [erase_person_and_return_erasure(engine, campaign.slug, "A1", rule, now=LATER) for rule in rules]
    outcomes = await asyncio.gather(*erasing, return_exceptions=True)
    assert [one for one in outcomes if isinstance(one, BaseException) and not isinstance(one, Conflict)] == []
    stored = await fetch_rows(engine, "SELECT rule FROM erasures ORDER BY id")
    assert stored in ([("remove",)], [("anonymise",), ("remove",)])


async def test_answers_can_be_removed_after_they_were_anonymised_but_not_the_other_way(engine):
    campaign, _ = await create_answered_campaign(engine)
    await erase_completely(engine, campaign, "A1", "anonymise")
    await erase_completely(engine, campaign, "A1", "remove")
    assert await verification_is_clean(engine, campaign)
    with pytest.raises(Conflict, match="receipt"):
        await erase_person_and_return_erasure(engine, campaign.slug, "A1", "anonymise", now=LATER)


@pytest.mark.parametrize(
    ("term", "rule", "kind", "code"),
    [
        ("nobody-knows", "remove", NotFound, "person_not_found"),
        ("  ", "remove", Invalid, "person_missing"),
        ("x" * 501, "remove", Invalid, "person_too_long"),
        ("A1", "forget", Invalid, "rule_unknown"),
        ("shared", "remove", Conflict, "person_ambiguous"),
    ],
)
async def test_what_cannot_be_erased_is_refused_and_changes_nothing(engine, term, rule, kind, code):
    campaign, _ = await create_answered_campaign(engine)
    for name in ("cleo", "dan"):
        await create_annotator(engine, campaign, name, "prolific", assignment="shared")
    with pytest.raises(kind) as refusal:
        await erase_found(engine, campaign, term, rule, now=LATER)
    assert refusal.value.code == code
    assert await fetch_value(engine, "SELECT count(*) FROM erasures") == 0


async def test_only_the_reason_of_a_line_of_the_log_can_be_erased(engine):
    await create_answered_campaign(engine)
    for change in ("who = 'me'", "after = '{}'", 'after = after || \'{"reason": "other"}\''):
        with pytest.raises(Exception, match="neither changed nor taken out"):
            await fetch_rows(engine, f"UPDATE audit_log SET {change} RETURNING id")


async def test_a_name_on_the_pages_is_not_taken_for_an_id_that_reads_alike(engine):
    campaign, _ = await create_answered_campaign(engine)
    await create_annotator(engine, campaign, "A2", "prolific")
    await erase_person_and_return_erasure(engine, campaign.slug, "A2", "anonymise", now=LATER)
    ids = [worker for (worker,) in await fetch_rows(engine, "SELECT worker_id FROM annotators ORDER BY id")]
    assert [worker.startswith("erased:") for worker in ids] == [False, True, False]


@pytest.mark.own_database
async def test_one_erasure_that_fails_stops_no_other(engine, caplog):
    campaign, _ = await create_answered_campaign(engine)
    failing = await erase_person_and_return_erasure(engine, campaign.slug, "A1", "remove", now=LATER)
    other = await erase_person_and_return_erasure(engine, campaign.slug, "A2", "anonymise", now=LATER)
    await execute_sql(
        engine,
        """CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'disk full'; END $$;""",
    )
    await execute_sql(
        engine,
        f"""CREATE TRIGGER fails BEFORE UPDATE ON erasures FOR EACH ROW
            WHEN (NEW.receipt = '{failing.receipt}') EXECUTE FUNCTION fail()""",
    )
    await finish_erasures_that_are_due(engine, now=LATER, receipt_number=other.receipt)
    assert failing.receipt in caplog.text
    with pytest.raises(Exception, match="disk full"):
        await finish_erasures_that_are_due(engine, now=LATER, receipt_number=failing.receipt)
    rows = await fetch_rows(engine, "SELECT receipt FROM erasures WHERE finished_at IS NOT NULL")
    assert rows == [(other.receipt,)]


async def test_the_last_step_draws_no_other_id_or_pseudonym(engine):
    campaign, _ = await create_answered_campaign(engine)
    await erase_found(engine, campaign, WORKER_ID, "remove", now=LATER)
    drawn = (
        "SELECT a.worker_id, a.pseudonym, s.external_id FROM annotators a JOIN assignments s ON a.id = s.annotator_id"
    )
    before = await fetch_rows(engine, drawn + " ORDER BY a.id, s.id")
    await finish_erasures_that_are_due(engine, now=LATER)
    assert await fetch_rows(engine, drawn + " ORDER BY a.id, s.id") == before


async def test_an_open_page_of_an_erased_person_stores_no_answers_to_questions(engine):
    campaign, person = await create_answered_campaign(engine)
    await erase_completely(engine, campaign, "A1", "anonymise")
    stored = await fetch_rows(engine, "SELECT * FROM visits")
    async with engine.begin() as connection:
        annotator = await annotator_id_of(engine, person)
        key = {"campaign": campaign.id, "annotator": annotator, "step": "questions", "version": 2, "now": LATER}
        said = {"outcome": "passed", "said": '{"language": "my mother tongue"}'}
        await connection.execute(STORE_STEP_RESULT, key | said)
    assert await fetch_rows(engine, "SELECT * FROM visits") == stored


async def test_an_excluded_person_who_is_anonymised_stays_excluded_from_flags_and_reviews(engine):
    campaign, person = await create_answered_campaign(engine, flag_on="both", flag_people=1)
    annotator = await annotator_id_of(engine, person)
    key = {"campaign": campaign.id, "seq": await fetch_value(engine, "SELECT min(seq) FROM responses")}
    async with engine.begin() as connection:
        assert (await connection.execute(SELECT_FLAGGED_ITEMS, key)).all()
        await decisions.exclude_annotator(connection, campaign, annotator, reason="careless", now=NOW)
    await execute_sql(
        engine,
        """INSERT INTO findings (campaign_id, annotator_id, rule, action, seen, said, found_at)
           VALUES (:campaign, :annotator, 'fast', 'flag', '{}', 'too fast', :now)""",
        campaign=campaign.id,
        annotator=annotator,
        now=NOW,
    )
    await erase_completely(engine, campaign, "A1", "anonymise")
    async with engine.connect() as connection:
        assert await load_annotators_to_review(connection, campaign.id) == []
        assert (await connection.execute(SELECT_FLAGGED_ITEMS, key)).all() == []


async def test_a_campaign_that_runs_again_is_not_due_any_more(engine):
    campaign = await create_running_campaign(engine)
    due = RetentionDue("everything", NOW)
    async with engine.begin() as connection:
        assert not await lock_campaign_returning_if_still_due(connection, campaign, due)
