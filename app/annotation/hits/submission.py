"""Storage of an answer together with the posteriors that it changes, in one transaction.

Locks are always taken in the same order: the right to store (which a new revision of the posteriors blocks for a
moment), the law's state of the campaign (a row that not every law has), the HIT's row, the annotator's row (if their
HITs are counted), then the posterior rows by item number. So two answers that share items, two posts of one HIT, and a
concurrent renewal of a lease wait for each other instead of deadlocking. With several criteria the posteriors by the
first one are locked first, and their locks also protect the posteriors by the others.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from sqlalchemy import text

from app.annotation.hits import remarks
from app.annotation.hits.answer_parameters import AnswerableHit, AnswerKey, build_response_parameters
from app.annotation.hits.assignment import (
    DATABASE_TIME,
    HIT_BELONGS_TO_ASSIGNMENT,
    IS_FIRST_RESPONSE,
    IS_ONE_HIT_PLATFORM,
)
from app.annotation.hits.lease_parameters import HoldParameters
from app.annotation.hits.lease_sql import (
    ANNOTATOR_MAY_HOLD_HIT,
    HAS_ROOM_IN_EVERY_ITEM,
    lock_annotator_and_posteriors,
    lock_revision_and_law_state,
)
from app.annotation.platforms.assignments import AssignmentId
from app.database.campaign import FINISH_IF_COMPLETE
from app.database.session import Driver, Record, execute_statement, fetch_first_row, fetch_rows, fetch_value
from app.designs.answer import Answer, Form
from app.designs.criteria import Criterion, LearningCampaign, Submission, submission_of_each_criterion
from app.designs.criteria_settings import CriterionSettings
from app.designs.playback import refuse_unplayed
from app.errors import Gone, NotFound
from app.quality import checks
from app.quality.check_positions import PlacedCheck, page_numbers_of_items_and_checks
from app.record import law_storage, unjudged
from app.record.bulk_update import LOCK_ITEM_POSTERIORS
from app.record.campaign_law import hits_of_judging_responses_for_law
from app.record.law_runner import LawRunner
from app.record.law_storage import Revision
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION, UPDATE_POSTERIORS, UPDATE_POSTERIORS_SQL
from app.record.responses import Response
from app.selection.segments import (
    shown_items_of_hit,
    value_of_each_item_from_shown_ones,
    values_spread_to_equal_outputs,
)


def close_hit_and_lock_posteriors_sql(condition: str) -> str:
    """Return SQL that closes the HIT if `condition` holds, locks its posteriors in item order and reads them.

    The subselects make the item numbers known before the join, so that it uses the index whatever the statistics are.
    If the statement waited for a switch of revisions, it may read the earlier one; STORE_RESPONSE checks this again.
    """
    return f"""
    WITH turn AS MATERIALIZED ({law_storage.SHARE_STORE_LOCK.text}), known AS MATERIALIZED (
        SELECT 1 FROM (SELECT count(*) FROM turn) AS shared, LATERAL ({law_storage.LOCK_LAW_STATE.text}) AS locked
    ), closed AS (
        UPDATE hits h SET closed_at = :now, assignment_id = :assignment, untouched_by = NULL
        FROM (SELECT count(*) FROM known) AS locked
        WHERE h.campaign_id = :campaign AND h.id = :hit AND {condition}
        RETURNING h.campaign_id, h.annotator_id, h.items, h.segment, h.shown_as, h.expires_at
    ), locked AS MATERIALIZED (
        SELECT p.subject, p.state, p.judgments FROM posteriors p
        WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = ANY(CAST((SELECT items FROM closed) AS int[]))
        ORDER BY p.subject FOR NO KEY UPDATE OF p
    )
    SELECT closed.items AS hit_items, closed.segment, closed.shown_as, closed.annotator_id,
           closed.expires_at,
           c.id AS campaign_id, c.revision, c.design AS design_name, c.design_settings, c.update_law, c.gamma,
           c.epsilon, c.tie_margin_points, c.criteria AS criteria_settings, c.seed, c.judgments_per_item,
           c.always_shown, c.cannot_be_judged, c.unjudged_reasons, c.unjudged_people, c.has_checks,
           c.general_settings ->> 'must_play' AS must_play,
           c.decided > 0 AND EXISTS (
               SELECT 1 FROM exclusions(c.id, c.decided) AS x WHERE x.annotator_id = closed.annotator_id
           ) AS left_out,
           ARRAY(SELECT subject FROM locked) AS numbers, ARRAY(SELECT state FROM locked) AS states,
           ARRAY(SELECT judgments FROM locked) AS judgments
    FROM closed JOIN campaigns c ON c.id = closed.campaign_id
    """


# The first post wins: only one can find the lease open, by the clock at the time when it gets the lock on the HIT's
# row. The annotator may have continued the HIT in another visit; it counts for the visit that answers.
CLOSE_HIT = text(
    close_hit_and_lock_posteriors_sql(
        f"{HIT_BELONGS_TO_ASSIGNMENT} AND h.closed_at IS NULL AND h.expires_at > clock_timestamp()"
    )
)
CLOSE_EXPIRED_HIT = text(close_hit_and_lock_posteriors_sql(f"{HAS_ROOM_IN_EVERY_ITEM} AND {ANNOTATOR_MAY_HOLD_HIT}"))

LOCK_EXPIRED_HIT = text(f"""
    SELECT h.annotator_id, c.judgments_per_item,
           ARRAY(SELECT item FROM unnest(h.items) AS item WHERE item <> ALL(c.always_shown)) AS capped,
           h.segment, c.repeat_items, c.hits_per_annotator, c.status,
           (SELECT {IS_ONE_HIT_PLATFORM} FROM annotators o
            WHERE o.campaign_id = h.campaign_id AND o.id = h.annotator_id) AS one_hit
    FROM hits h JOIN campaigns c ON c.id = h.campaign_id
    WHERE h.campaign_id = :campaign AND h.id = :hit AND {HIT_BELONGS_TO_ASSIGNMENT} FOR NO KEY UPDATE OF h
""")

SELECT_IF_CURRENT_REVISION = text("SELECT 1 FROM campaigns WHERE id = :campaign AND revision = :revision")

SELECT_FIRST_RESPONSE = text(f"""
    SELECT r.seq FROM responses r WHERE r.campaign_id = :campaign AND r.hit_id = :hit AND {IS_FIRST_RESPONSE}
""")

# All locks are held when this is sent, so the revision stays. Nothing is stored if the lease ended while the
# transaction waited for locks, or if it read an earlier revision.
STORE_RESPONSE = text(f"""
    WITH response AS (
        INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, segment, extra, telemetry,
                               received_at)
        SELECT :campaign, :hit, CAST(:annotator AS bigint), CAST(:source AS text), CAST(:items AS int[]),
               CAST(:values AS float8[]), CAST(:segment AS int), CAST(:extra AS jsonb), CAST(:telemetry AS jsonb),
               CAST(:now AS timestamptz)
        WHERE coalesce(CAST(:held_until AS timestamptz), 'infinity') > {DATABASE_TIME}
        AND :revision = (SELECT revision FROM campaigns WHERE id = :campaign)
        RETURNING seq
    ), changed AS (
        {UPDATE_POSTERIORS_SQL}
    )
    SELECT (SELECT seq FROM response) AS seq, bool_and(judgments >= :wanted) AS all_reached FROM changed
""")


class ClosedHit(AnswerableHit, LearningCampaign, Record):
    """A HIT that was just closed, with its campaign and the locked posteriors of its items by the first criterion.

    `states` and `judgments` are in the order of `numbers`. `left_out` is true if the annotator is excluded.
    """

    hit_items: list[int]
    segment: int | None
    shown_as: list[int] | None
    annotator_id: int
    expires_at: datetime
    campaign_id: int
    revision: int
    design_name: str
    design_settings: dict[str, Any]
    update_law: str
    gamma: float
    epsilon: float
    tie_margin_points: int
    criteria_settings: list[CriterionSettings]
    seed: int
    judgments_per_item: int
    always_shown: list[int]
    cannot_be_judged: bool
    unjudged_reasons: list[str]
    unjudged_people: int
    has_checks: bool
    must_play: str | None
    left_out: bool
    numbers: list[int]
    states: list[list[float]]
    judgments: list[int]

    @property
    def has_fully_judged_item(self) -> bool:
        """True if an item already has all wanted judgments."""
        judgment_counts = zip(self.numbers, self.judgments, strict=True)
        return any(
            count >= self.judgments_per_item and item not in self.always_shown for item, count in judgment_counts
        )


class ExpiredHit(Record):
    """A HIT whose lease is over, with its campaign's status and limits; `capped` items have a limit on judgments."""

    annotator_id: int
    judgments_per_item: int
    capped: list[int]
    segment: int | None
    repeat_items: bool
    hits_per_annotator: int | None
    status: str
    one_hit: bool


@dataclass(slots=True, kw_only=True)
class LateAnswerParameters(HoldParameters):
    """Parameters of `CLOSE_EXPIRED_HIT`."""

    now: datetime


class StoredResponse(Record):
    """Number of a response, None if it was not stored, and whether all of its items have all wanted judgments."""

    seq: int | None
    all_reached: bool | None


class LockedPosterior(Record):
    subject: int
    state: list[float]


@dataclass(frozen=True)
class AnswerReceipt:
    """Receipt of an answer: its number, and whether the HIT had an answer already."""

    hit_id: int
    seq: int
    repeated: bool = False


class LeaseExpired(Exception):
    """The lease of the answered HIT is over. The answer may still be acceptable as a late one."""


async def store_answer_of_hit(
    connection: Driver, assignment: AssignmentId, hit_id: int, submitted: Submission, *, now: datetime
) -> AnswerReceipt:
    """Close the lease, store the answer and update the posteriors; all is committed when this returns.

    An answer to a HIT that already has one changes nothing and gets the receipt of the first answer.

    Args:
        connection: Connection of the request, in no transaction.
        assignment: The annotator's assignment.
        hit_id: Id of the HIT.
        submitted: The answer, or a form with one.
        now: Time to store. The database's clock decides whether the lease is over.

    Raises:
        NotFound: `hit_not_found`.
        Gone: `lease_expired`: other annotators needed the items meanwhile, or this one may answer no more HITs.
        Invalid: The design refuses the answer.

    """
    key = AnswerKey(**assignment.parameters, hit=hit_id, now=now)
    try:
        async with connection.transaction():
            return await store_answer_before_expiry(connection, key, submitted)
    except LeaseExpired:
        return await store_answer_under_lock(connection, key, submitted)


async def store_answer_under_lock(connection: Driver, key: AnswerKey, submitted: Submission) -> AnswerReceipt:
    """Try again to store the answer, first as one in time, then as a late one.

    The first attempt may have failed only because of a new revision, which the lock on the revision now prevents.
    """
    with suppress(LeaseExpired):
        async with connection.transaction():
            await lock_revision_and_law_state(connection, key.campaign)
            return await store_answer_before_expiry(connection, key, submitted)
    async with connection.transaction():
        return await store_late_answer_if_possible(connection, key, submitted)


async def store_answer_before_expiry(connection: Driver, key: AnswerKey, submitted: Submission) -> AnswerReceipt:
    """Store the answer to a HIT whose lease is open.

    Raises:
        LeaseExpired: The lease is over; it may have ended while this transaction waited for locks.

    """
    hit = await fetch_first_row(connection, CLOSE_HIT, key, ClosedHit)
    if hit is None:
        raise LeaseExpired
    if hit.has_fully_judged_item:
        raise lease_lost_error()
    return await store_response_and_update_posteriors(connection, key, hit, submitted, held_until=hit.expires_at)


async def store_late_answer_if_possible(connection: Driver, key: AnswerKey, submitted: Submission) -> AnswerReceipt:
    """Store a late answer if no other annotator has needed the items and this one has not reached their limit.

    It takes the same locks as a renewal of the lease, so that the two wait for each other.
    """
    await lock_revision_and_law_state(connection, key.campaign)
    hit = await fetch_first_row(connection, LOCK_EXPIRED_HIT, key, ExpiredHit)
    if hit is None:
        raise NotFound("This HIT is not yours or does not exist. Nothing was stored.", code="hit_not_found")
    if first_seq := await fetch_value(connection, SELECT_FIRST_RESPONSE, key):
        return AnswerReceipt(key.hit, first_seq, repeated=True)
    closed_hit = None
    if hit.status in ("running", "paused"):
        parameters = LateAnswerParameters(
            campaign=key.campaign,
            hit=key.hit,
            annotator=hit.annotator_id,
            assignment=key.assignment,
            segment=hit.segment,
            capped=hit.capped,
            few_open=False,
            repeat_items=hit.repeat_items,
            hits_per_annotator=hit.hits_per_annotator,
            one_hit=hit.one_hit,
            wanted=hit.judgments_per_item,
            now=key.now,
        )
        await lock_annotator_and_posteriors(connection, parameters)
        closed_hit = await fetch_first_row(connection, CLOSE_EXPIRED_HIT, parameters, ClosedHit)
    if closed_hit is None:
        raise lease_lost_error()
    return await store_response_and_update_posteriors(connection, key, closed_hit, submitted)


def lease_lost_error() -> Gone:
    return Gone(
        "Your time for these items had run out, and they are no longer yours to answer, so this answer was not "
        "stored. Your earlier answers are safe.",
        code="lease_expired",
    )


async def store_response_and_update_posteriors(
    connection: Driver,
    key: AnswerKey,
    hit: ClosedHit,
    submitted: Submission,
    *,
    held_until: datetime | None = None,
) -> AnswerReceipt:
    """Store the response to a HIT that was just closed, and the updated posteriors.

    Raises:
        LeaseExpired: It is after `held_until`, or the posteriors that were read belong to an earlier revision.

    """
    placed_checks = await checks.load_placed_checks(connection, hit.campaign_id, key.hit) if hit.has_checks else []
    if isinstance(submitted, Form):
        refuse_unplayed(hit.must_play, submitted, len(hit.hit_items) + len(placed_checks))
    submitted_items, shown_values = (
        answer_without_checks_and_shown_values(hit, submitted, placed_checks) if placed_checks else (submitted, [])
    )
    parsed_answers = parse_answer_and_values_by_criterion(hit, submitted_items)
    answers = [criterion_answer for criterion_answer, _ in parsed_answers]
    answer = await remarks.answer_with_offered_remarks(connection, hit.campaign_id, answers[0], placed_checks)
    values = [value for _, item_values in parsed_answers for value in item_values]
    responses = [
        Response.from_stored(0, hit.annotator_id, hit.hit_items, item_values) for _, item_values in parsed_answers
    ]
    parameters = build_response_parameters(key, hit, [answer, *answers[1:]], values)
    conditions = {"held_until": held_until, "wanted": hit.judgments_per_item}
    posteriors = await store_law_state_and_compute_posteriors(connection, hit, responses[0])
    (stored,) = await fetch_rows(connection, STORE_RESPONSE, vars(parameters) | conditions | posteriors, StoredResponse)
    if stored.seq is None:
        raise LeaseExpired
    if answer.remarks:
        await remarks.raise_alerts_of_flagged_items(connection, hit.campaign_id, stored.seq)
    if placed_checks:
        await checks.store_first_check_answers(
            connection,
            key.campaign,
            key.hit,
            placed_checks,
            shown_values,
            annotator_id=hit.annotator_id,
            now=key.now,
        )
    await update_other_criteria_posteriors(connection, hit, responses)
    unjudged_items = [*answers[0].unjudged]
    is_item_dropped = unjudged_items and await record_unjudged_items(connection, hit, stored.seq, unjudged_items)
    if stored.all_reached or is_item_dropped:
        await execute_statement(connection, FINISH_IF_COMPLETE, {"campaign": key.campaign, "now": key.now})
    return AnswerReceipt(key.hit, stored.seq)


def answer_without_checks_and_shown_values(
    hit: AnswerableHit, submitted: Submission, placed_checks: Sequence[PlacedCheck]
) -> tuple[Answer, list[float]]:
    """Return the answer on a HIT's items alone, and the values of all items and checks as shown. Raises `Invalid`."""
    (part,) = submission_of_each_criterion(submitted, hit)
    answer, values = hit.criteria[0].parse_answer(part, page_numbers_of_items_and_checks(hit.hit_items, placed_checks))
    items = {*hit.hit_items}
    item_values = {number: value for number, value in answer.values.items() if number in items}
    unjudged_items = {number: reason for number, reason in answer.unjudged.items() if number in items}
    check_reasons = {
        check.check_number: answer.unjudged[check.shown_number]
        for check in placed_checks
        if check.shown_number in answer.unjudged
    }
    return replace(answer, values=item_values, unjudged=unjudged_items, unjudged_checks=check_reasons), values


def parse_answer_and_values_by_criterion(hit: AnswerableHit, submitted: Submission) -> list[tuple[Answer, list[float]]]:
    """Return the answer and the values of the HIT's items, by each of the campaign's criteria. Raises `Invalid`."""
    parts = submission_of_each_criterion(submitted, hit)
    if isinstance(submitted, Answer) and not hit.hit_items:  # a HIT of checks
        return [(submitted, [])]
    return [
        parse_answer_and_values_of_criterion(criterion, part)
        for criterion, part in zip(hit.criteria, parts, strict=True)
    ]


def parse_answer_and_values_of_criterion(
    criterion: Criterion[AnswerableHit], submitted: Answer | Form
) -> tuple[Answer, list[float]]:
    """Return the answer and the values of the HIT's items, by one criterion. Raises `Invalid`."""
    hit = criterion.campaign
    shown = shown_items_of_hit(hit.hit_items, hit.shown_as)
    answer, values = criterion.parse_answer(submitted, shown)
    shown_values = dict(zip(shown, values, strict=True))
    if hit.shown_as:
        answer = replace(
            answer,
            unjudged=values_spread_to_equal_outputs(answer.unjudged, hit.hit_items, hit.shown_as),
            remarks=remarks.remarks_copied_to_equal_outputs(answer.remarks, hit.hit_items, hit.shown_as),
        )
    return answer, value_of_each_item_from_shown_ones(shown_values, hit.hit_items, hit.shown_as)


async def store_law_state_and_compute_posteriors(
    connection: Driver, hit: ClosedHit, response: Response
) -> dict[str, Any]:
    """Store the law's state and return the posteriors by the first criterion, as parameters of `UPDATE_POSTERIORS`.

    An answer of an excluded annotator changes nothing.

    Raises:
        LeaseExpired: There is a new revision, so posteriors of the earlier one may be gone.

    """
    first = hit.criteria[0]
    revision, law = Revision(hit.campaign_id, hit.revision), first.law
    if len(hit.numbers) < len(hit.hit_items) or (law.layout and not await is_current_revision(connection, revision)):
        raise LeaseExpired
    law_runner = LawRunner(connection, revision, law, dict(zip(hit.numbers, hit.states, strict=True)))
    if not hit.left_out:
        await law_runner.apply_hits(hits_of_judging_responses_for_law(first, [response]), first.law_parameters)
    return await law_runner.save()


async def update_other_criteria_posteriors(connection: Driver, hit: ClosedHit, responses: Sequence[Response]) -> None:
    """Update the posteriors by the criteria after the first, for an answer that was just stored."""
    if hit.left_out:
        return
    for criterion, response in list(zip(hit.criteria, responses, strict=True))[1:]:
        revision = Revision(hit.campaign_id, hit.revision, criterion.number)
        rows = await fetch_rows(
            connection, LOCK_ITEM_POSTERIORS, {**revision.sql_parameters, "numbers": hit.numbers}, LockedPosterior
        )
        law_runner = LawRunner(connection, revision, criterion.law, {row.subject: row.state for row in rows})
        await law_runner.apply_hits(hits_of_judging_responses_for_law(criterion, [response]), criterion.law_parameters)
        await execute_statement(connection, UPDATE_POSTERIORS, await law_runner.save())


async def record_unjudged_items(connection: Driver, hit: ClosedHit, seq: int, items: list[int]) -> bool:
    """Count that the annotator could not judge these items, and return whether one of them now leaves the pool.

    An annotator who could not judge an output gives no evidence about its system.
    """
    if hit.left_out or hit.segment is not None:
        return False
    return (
        await unjudged.add_unjudged_and_return_highest_count(connection, hit.campaign_id, hit.annotator_id, seq, items)
        >= hit.unjudged_people
    )


async def is_current_revision(connection: Driver, revision: Revision) -> bool:
    """Return whether the revision is its campaign's present one. It stays so while the right to store is shared."""
    key = {"campaign": revision.campaign, "revision": revision.revision}
    return await fetch_first_row(connection, SELECT_IF_CURRENT_REVISION, key, Record) is not None
