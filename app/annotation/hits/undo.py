"""Change of an annotator's last answer, possible until they answer the next HIT.

The record keeps both answers: the new one names the one that it replaces, and a decision withdraws that one. The
revision of the posteriors determines which of the two counts: the old one until a revision includes the decision, then
the new one. So the number of judgments per item and the annotator's limit do not change meanwhile.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from app.annotation.hits import check_placement, remarks
from app.annotation.hits.answer_parameters import AnswerKey, build_response_parameters
from app.annotation.hits.answer_parsing import ParsedAnswers, parse_answers_or_refuse
from app.annotation.hits.answer_storage import AnswerReceipt
from app.annotation.hits.assignment_sql import IS_ONE_HIT_PLATFORM
from app.annotation.hits.lease_sql import (
    LOCK_ANNOTATOR_ROW,
    LOCK_HIT,
    LOCK_HIT_POSTERIORS,
    take_shared_store_lock_and_lock_law_state,
)
from app.annotation.hits.next_hit import HitOnPage
from app.annotation.hits.served_campaign import COMMENT_SETTING_SOURCES
from app.annotation.hits.shown_items_sql import SELECT_SHOWN_ITEMS_OF_HIT, SELECT_SHOWN_OUTPUTS_OF_HIT, ShownItems
from app.annotation.platforms.assignments import ARRIVED_THEN, AssignmentId
from app.database.session import (
    Driver,
    Record,
    columns_of_row_class_sql,
    execute_statement,
    fetch_first_row_or_none,
    fetch_first_value_or_none,
    fetch_rows,
)
from app.designs.criteria import CommentAskingCampaign, Submission
from app.designs.criteria_settings import CriterionSettings
from app.designs.item_names import ItemName
from app.designs.remarks import REMARKS_KEY as REMARKS
from app.designs.remarks import CommentRequest, RemarkTarget, form_fields_of_stored_remarks
from app.designs.unjudged import UNJUDGED_CHECKS_KEY, UNJUDGED_KEY, UNJUDGED_PREFIX, UNJUDGED_WITHOUT_REASON
from app.errors import Conflict, NotFound
from app.quality import checks
from app.quality.check_positions import PlacedCheck
from app.record.revisions import INSERT_DECISION, LOCK_CAMPAIGN_FOR_DECISION
from app.selection.segments import items_of_hit_with_distinct_outputs

MAX_ANSWER_CHANGES = 20  # per answer, because the record keeps every one
WITHDRAWAL_REASON, WITHDRAWAL_ACTOR = "changed it", "the annotator"
ANSWERABLE_STATUSES = ("running", "paused")  # of campaigns that accept answers


class AnswerFormatColumns(CommentAskingCampaign, Record):
    """Columns of a campaign that determine the format of an answer."""

    design_name: str
    design_settings: dict[str, Any]
    criteria_settings: list[CriterionSettings]
    seed: int
    always_shown: list[int]
    cannot_be_judged: bool
    unjudged_reasons: list[str]
    has_checks: bool
    comment_on: RemarkTarget
    comment_request: CommentRequest | None
    comment_question: str | None


class LastAnswer(AnswerFormatColumns):
    """Newest answer of an annotator, with its HIT and campaign, and the number of changes so far."""

    id: int
    annotator_id: int
    hit_id: int
    hit_items: list[int]
    segment: int | None
    shown_as: list[int] | None
    seq: int
    answer_values: list[float]
    extra: dict[str, Any] | None
    changes: int


ANSWER_FORMAT_COLUMNS = columns_of_row_class_sql(
    AnswerFormatColumns, "c", design_name="design", criteria_settings="criteria", **COMMENT_SETTING_SOURCES
)

# No row if the annotator is blocked, the answer was imported, or a researcher excluded it.
SELECT_LAST_ANSWER = text(f"""
    SELECT c.id, {ANSWER_FORMAT_COLUMNS}, a.id AS annotator_id, h.id AS hit_id,
           h.items AS hit_items, h.segment, h.shown_as, r.seq, r.values AS answer_values, r.extra,
           (SELECT count(*) - 1 FROM responses o WHERE o.campaign_id = :campaign AND o.hit_id = r.hit_id) AS changes
    FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    JOIN campaigns c ON c.id = s.campaign_id,
    LATERAL (SELECT * FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id
             ORDER BY r.seq DESC LIMIT 1) AS r
    JOIN hits h ON h.campaign_id = :campaign AND h.id = r.hit_id
    WHERE s.campaign_id = :campaign AND s.id = :assignment AND {ARRIVED_THEN} AND a.id = (
        SELECT annotator_id FROM assignments WHERE campaign_id = :campaign AND id = :assignment)
    AND c.undo AND c.status IN {ANSWERABLE_STATUSES} AND a.barred IS NULL AND NOT a.{IS_ONE_HIT_PLATFORM}
    AND r.source <> 'import' AND 'exclude' <> coalesce((
        SELECT d.kind FROM decisions d WHERE d.campaign_id = :campaign AND d.response_seq = r.seq
        ORDER BY d.seq DESC LIMIT 1), '')
""")

SELECT_SHOWN_ITEM_TEXTS, SELECT_SHOWN_OUTPUT_TEXTS = text(SELECT_SHOWN_ITEMS_OF_HIT), text(SELECT_SHOWN_OUTPUTS_OF_HIT)

SELECT_HIT_OWNER = text(f"""
    SELECT annotator_id AS annotator FROM hits WHERE campaign_id = :campaign AND id = :hit AND annotator_id = (
        SELECT annotator_id FROM assignments s
        WHERE s.campaign_id = :campaign AND s.id = :assignment AND {ARRIVED_THEN})
""")

SELECT_REPLACEMENT = text("""
    SELECT seq FROM responses WHERE campaign_id = :campaign AND hit_id = :hit AND coalesce(replaces, 0) = :replaces
""")

STORE_REPLACEMENT = text("""
    INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, segment, extra, telemetry,
                           received_at, replaces)
    VALUES (:campaign, :hit, :annotator, :source, :items, :values, :segment, CAST(:extra AS jsonb),
            CAST(:telemetry AS jsonb), :now, :replaces)
    RETURNING seq
""")

# Checked again under the campaign's lock, when researchers can no longer exclude the answer.
SELECT_ANSWER_EXCLUSION = text("""
    SELECT 1 FROM (
        SELECT kind FROM decisions WHERE campaign_id = :campaign AND response_seq = :replaces ORDER BY seq DESC LIMIT 1
    ) AS last WHERE kind = 'exclude'
""")

SELECT_CHECK_VALUES = text("""
    SELECT check_number, array_prepend(coalesce(changed_to, value), coalesce(other_changed_to, other_values))
        AS given_values
    FROM check_answers
    WHERE campaign_id = :campaign AND hit_id = :hit
""")


@dataclass(frozen=True)
class ReopenedAnswer:
    """An answered HIT as it was shown, the number of its answer, and the form as the annotator filled it in."""

    hit: HitOnPage
    seq: int
    form: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ReplacementKey(AnswerKey):
    """The parameters of an answer, and the number of the answer that it replaces."""

    replaces: int


class CheckValueRow(Record):
    """Number of a check and its values in the answer, by each criterion."""

    check_number: int
    given_values: list[float]


async def load_last_answer_for_change_or_refuse(
    connection: Driver, assignment: AssignmentId, *, now: datetime
) -> ReopenedAnswer:
    """Return the annotator's last answer so that they can change it.

    Raises:
        Conflict: `answer_final`, `answer_changed_often`.

    """
    last_answer = await fetch_first_row_or_none(connection, SELECT_LAST_ANSWER, assignment.parameters, LastAnswer)
    if last_answer is None:
        raise answer_final_error()
    refuse_too_many_changes_of_answer(last_answer)
    items = items_of_hit_with_distinct_outputs(last_answer.hit_items, last_answer.shown_as)
    if last_answer.segment is None:
        statement = SELECT_SHOWN_ITEM_TEXTS
        parameters = {"campaign": last_answer.id, "items": items, "hit": last_answer.hit_id}
    else:
        statement = SELECT_SHOWN_OUTPUT_TEXTS
        parameters = {"campaign": last_answer.id, "shown": items, "segment": last_answer.segment}
        parameters["hit"] = last_answer.hit_id
    shown_items = await fetch_first_row_or_none(connection, statement, parameters, ShownItems)
    assert shown_items is not None  # noqa: S101  (an aggregate has a row)
    shown, ids, texts = items, shown_items.ids, shown_items.texts
    check_values: dict[int, list[float]] = {}
    placed_checks: Sequence[PlacedCheck] = ()
    if last_answer.has_checks:
        placed_checks, checks_by_number = await checks.load_placed_checks_and_check_items(
            connection, last_answer.id, last_answer.hit_id
        )
        values_by_check = {
            row.check_number: row.given_values
            for row in await fetch_rows(
                connection, SELECT_CHECK_VALUES, {"campaign": last_answer.id, "hit": last_answer.hit_id}, CheckValueRow
            )
        }
        shown, ids, texts = check_placement.presented_numbers_ids_and_texts(
            items, ids, texts, placed_checks, checks_by_number
        )
        check_values = {check.shown_number: values_by_check[check.check_number] for check in placed_checks}
    hit = HitOnPage(
        id=last_answer.hit_id,
        items=shown,
        ids=ids,
        texts=texts,
        draft={},
        expires_at=now,
        segment=last_answer.segment,
        source_and_reference=shown_items.source_and_reference,
    )
    names = {item: ItemName(position) for position, item in enumerate(hit.items)}
    extra = last_answer.extra or {}
    remark_fields = form_fields_of_stored_remarks(
        remarks.remarks_by_page_name(extra.get(REMARKS, {}), placed_checks, names)
    )
    unjudged_form = unjudged_form_fields(extra, placed_checks, names)
    return ReopenedAnswer(
        hit,
        last_answer.seq,
        {
            **answer_form_fields(last_answer, names, check_values),
            **unjudged_form,
            **remark_fields,
            "hit": str(last_answer.hit_id),
        },
    )


def answer_form_fields(
    last_answer: LastAnswer, names: Mapping[int, ItemName], check_values: Mapping[int, Sequence[float]]
) -> dict[str, str]:
    """Return the fields of the form as they were when the answer was sent.

    Args:
        last_answer: The answer.
        names: Names of all items and checks on the page, in its order, by item number.
        check_values: Values of each check by the criteria, by the number under which it is shown.

    """
    fields: dict[str, str] = {}
    count = len(last_answer.hit_items)
    for criterion in last_answer.criteria:
        start = criterion.number * count
        criterion_values = last_answer.answer_values[start : start + count]
        shown_values = dict(zip(last_answer.hit_items, criterion_values, strict=True))
        shown_values |= {number: by_criterion[criterion.number] for number, by_criterion in check_values.items()}
        values: dict[int, float] = {
            names[item]: shown_values[item] for item in names if not math.isnan(shown_values[item])
        }
        criterion_fields = criterion.design.form_fields(values)
        fields.update({f"{criterion.field_prefix}{name}": value for name, value in criterion_fields.items()})
    return fields


def unjudged_form_fields(
    extra_json: Mapping[str, Any], placed_checks: Sequence[PlacedCheck], names: Mapping[int, ItemName]
) -> dict[str, str]:
    """Return the form fields of the items and checks that the annotator could not judge."""
    item_reasons, check_reasons = extra_json.get(UNJUDGED_KEY, {}), extra_json.get(UNJUDGED_CHECKS_KEY, {})
    reasons = {int(item): reason for item, reason in item_reasons.items()}
    reasons |= {
        check.shown_number: check_reasons[str(check.check_number)]
        for check in placed_checks
        if str(check.check_number) in check_reasons
    }
    return {
        f"{UNJUDGED_PREFIX}{names[item]}": reason or UNJUDGED_WITHOUT_REASON
        for item, reason in reasons.items()
        if item in names
    }


async def replace_answer_and_return_receipt_or_refuse(
    connection: Driver,
    assignment: AssignmentId,
    hit_id: int,
    replaced_seq: int,
    submitted: Submission,
    *,
    now: datetime,
) -> AnswerReceipt:
    """Store an answer that replaces an earlier one; it is committed when this returns. The next revision updates the
    posteriors.

    A repeated request changes nothing and gets the receipt of the first. The values of checks in the first answer still
    count. Locks are taken in the same order as for an answer, so that the new number is higher than those of all stored
    answers to its items; the campaign's row is locked last.

    Args:
        connection: Connection of the request, in no transaction.
        assignment: The annotator's assignment.
        hit_id: Id of the HIT.
        replaced_seq: Number of the earlier answer.
        submitted: The new answer, or a form with it.
        now: Time to store.

    Raises:
        NotFound: `hit_not_found`.
        Conflict: `answer_final`, `answer_changed_often`.
        Invalid: The design refuses the answer, as in `store_answer_of_hit_and_return_receipt`.

    """
    key = ReplacementKey(**assignment.parameters, hit=hit_id, now=now, replaces=replaced_seq)
    async with connection.transaction():
        await take_shared_store_lock_and_lock_law_state(connection, key.campaign)
        await execute_statement(connection, LOCK_HIT, key)
        annotator_id: int | None = await fetch_first_value_or_none(connection, SELECT_HIT_OWNER, key)
        if annotator_id is None:
            raise NotFound("This HIT is not yours or does not exist. Nothing was stored.", code="hit_not_found")
        if earlier_seq := await fetch_first_value_or_none(connection, SELECT_REPLACEMENT, key):
            return AnswerReceipt(hit_id, earlier_seq, repeated=True)
        await execute_statement(connection, LOCK_ANNOTATOR_ROW, {"campaign": key.campaign, "annotator": annotator_id})
        last_answer = await fetch_first_row_or_none(connection, SELECT_LAST_ANSWER, key, LastAnswer)
        if last_answer is None or (last_answer.hit_id, last_answer.seq) != (hit_id, replaced_seq):
            raise answer_final_error()
        refuse_too_many_changes_of_answer(last_answer)
        placed_checks = (
            await checks.load_placed_checks(connection, last_answer.id, hit_id) if last_answer.has_checks else []
        )
        parsed = parse_answers_or_refuse(last_answer, last_answer, submitted, placed_checks)
        await execute_statement(
            connection, LOCK_HIT_POSTERIORS, {"campaign": key.campaign, "items": last_answer.hit_items}
        )
        seq = await store_replacing_response_and_return_its_number(connection, key, last_answer, parsed, placed_checks)
        if placed_checks:
            await checks.replace_stored_check_answers(
                connection, key.campaign, hit_id, placed_checks, parsed.shown_values
            )
        await withdraw_replaced_answer_or_refuse(connection, key)
    return AnswerReceipt(hit_id, seq)


async def store_replacing_response_and_return_its_number(
    connection: Driver,
    key: ReplacementKey,
    last_answer: LastAnswer,
    parsed: ParsedAnswers,
    placed_checks: Sequence[PlacedCheck],
) -> int:
    """Store the new response and return its number. Raises `Invalid`."""
    first = await remarks.drop_or_refuse_unoffered_remarks(connection, last_answer.id, parsed.answers[0], placed_checks)
    answers = [first, *parsed.answers[1:]]
    response = build_response_parameters(key, last_answer, last_answer, answers, parsed.stored_values)
    parameters = vars(response) | {"replaces": key.replaces}
    seq: int = await fetch_first_value_or_none(connection, STORE_REPLACEMENT, parameters)
    if first.remarks:
        await remarks.store_alert_of_each_item_that_reaches_flag_limit(connection, last_answer.id, seq)
    return seq


async def withdraw_replaced_answer_or_refuse(connection: Driver, key: ReplacementKey) -> None:
    """Store the decision that withdraws the older answer. Raises `Conflict` (`answer_final`)."""
    status: str | None = await fetch_first_value_or_none(connection, LOCK_CAMPAIGN_FOR_DECISION, key)
    exclusion = await fetch_first_row_or_none(connection, SELECT_ANSWER_EXCLUSION, key, Record)
    if status not in ANSWERABLE_STATUSES or exclusion:
        raise answer_final_error()
    decision = {
        "campaign": key.campaign,
        "kind": "withdraw",
        "annotator": None,
        "response": key.replaces,
        "reason": WITHDRAWAL_REASON,
        "by": WITHDRAWAL_ACTOR,
        "now": key.now,
    }
    await execute_statement(connection, INSERT_DECISION, decision)


def answer_final_error() -> Conflict:
    return Conflict("These answers can no longer be changed. Your first answers are stored.", code="answer_final")


def refuse_too_many_changes_of_answer(last_answer: LastAnswer) -> None:
    """Raise `Conflict` (`answer_changed_often`) for an answer that was changed `MAX_ANSWER_CHANGES` times."""
    if last_answer.changes >= MAX_ANSWER_CHANGES:
        raise Conflict(
            "You have changed these answers many times, so they can no longer be changed. Your latest answers are "
            "stored.",
            code="answer_changed_often",
        )
