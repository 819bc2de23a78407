"""An annotator changes the answer that they gave last, until they have answered the next HIT.

Nothing is taken out of the record: the new answer names the one that it replaces, and a decision withdraws that. Which
of the two counts, the revision of the posteriors says: before it knows the decision the old one, then the new one. So
no item has a judgment more or less meanwhile, nobody's limit is touched, and whoever thinks better of it has lost
nothing.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from app.crowd.annotators import ARRIVED_THEN, AssignmentId
from app.database.session import Driver, Record, columns, execute, fetch, fetch_one
from app.designs.answer import Answer, telemetry
from app.designs.beside import extra
from app.designs.criteria import Sent, criteria_of, prefix_of
from app.designs.item_names import ItemName
from app.designs.registry import design_of
from app.designs.remarks import EXTRA as REMARKS
from app.designs.remarks import form_of_remarks
from app.designs.unjudged import EXTRA, EXTRA_CHECKS, FIELD, YES
from app.errors import Conflict, NotFound
from app.quality import checks
from app.quality.mixed_in import MixedIn
from app.record.revisions import DECIDE, LOCK_CAMPAIGN
from app.selection.segments import shown_once
from app.serving import mixed, remarks
from app.serving.leases import ShownHit
from app.serving.races import (
    LOCK_HIT,
    LOCK_POSTERIORS,
    LOCKED_ANNOTATOR,
    SHOWN,
    SHOWN_OUTPUTS,
    ShownItems,
    lock_revision,
)
from app.serving.standing import ONE_HIT
from app.serving.submission import Answered, Receipt, apart, read_all

MAX_CHANGES = 20  # of one answer: each is kept for good
REASON, BY = "changed it", "the annotator"
GOING_ON = ("running", "paused")  # answers are still taken


class WayItAsks(Record):
    """What decides how an answer of a campaign reads."""

    design: str
    design_settings: dict[str, Any]
    criteria: list[dict[str, Any]]
    seed: int
    always_shown: list[int]
    cannot_be_judged: bool
    unjudged_reasons: list[str]
    has_checks: bool


class LastAnswer(WayItAsks):
    """The newest answer of an annotator, its HIT and its campaign, and how often it was changed."""

    id: int
    annotator_id: int
    hit_id: int
    hit_items: list[int]
    segment: int | None
    shown_as: list[int] | None
    seq: int
    said: list[float]
    beside: dict[str, Any] | None
    changes: int


# None is found of who gets no more HITs, nor of an answer that came from elsewhere, or that a researcher left out.
LAST = text(f"""
    SELECT c.id, {columns(WayItAsks, "c")}, a.id AS annotator_id, h.id AS hit_id, h.items AS hit_items, h.segment,
           h.shown_as, r.seq, r.values AS said, r.extra AS beside,
           (SELECT count(*) - 1 FROM responses o WHERE o.campaign_id = r.campaign_id AND o.hit_id = r.hit_id) AS changes
    FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    JOIN campaigns c ON c.id = s.campaign_id,
    LATERAL (SELECT * FROM responses r WHERE r.campaign_id = s.campaign_id AND r.annotator_id = a.id
             ORDER BY r.seq DESC LIMIT 1) AS r
    JOIN hits h ON h.campaign_id = r.campaign_id AND h.id = r.hit_id
    WHERE s.campaign_id = :campaign AND s.id = :assignment AND {ARRIVED_THEN} AND a.id = (
        SELECT annotator_id FROM assignments WHERE campaign_id = :campaign AND id = :assignment)
    AND c.undo AND c.status IN {GOING_ON} AND a.barred IS NULL AND NOT a.{ONE_HIT} AND r.source <> 'import'
    AND 'exclude' <> coalesce((
        SELECT d.kind FROM decisions d WHERE d.campaign_id = c.id AND d.response_seq = r.seq
        ORDER BY d.seq DESC LIMIT 1), '')
""")  # noqa: S608  (made of constants)

OF_HIT = {False: text(SHOWN), True: text(SHOWN_OUTPUTS)}  # by whether it shows outputs of systems

ITS_ANNOTATOR = text(f"""
    SELECT annotator_id AS annotator FROM hits WHERE campaign_id = :campaign AND id = :hit AND annotator_id = (
        SELECT annotator_id FROM assignments s
        WHERE s.campaign_id = :campaign AND s.id = :assignment AND {ARRIVED_THEN})
""")  # noqa: S608  (made of constants)

IN_PLACE = text("""
    SELECT seq FROM responses WHERE campaign_id = :campaign AND hit_id = :hit AND coalesce(replaces, 0) = :replaces
""")

REPLACE = text("""
    INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, values, segment, extra, telemetry,
                           received_at, replaces)
    VALUES (:campaign, :hit, :annotator, :source, :items, :values, :segment, CAST(:extra AS jsonb),
            CAST(:telemetry AS jsonb), :now, :replaces)
    RETURNING seq
""")

# Asked again under the campaign's lock, as it was when nobody can leave it out any more.
LEFT_OUT = text("""
    SELECT 1 FROM (
        SELECT kind FROM decisions WHERE campaign_id = :campaign AND response_seq = :replaces ORDER BY seq DESC LIMIT 1
    ) AS last WHERE kind = 'exclude'
""")

CHECKED = text("""
    SELECT check_number, coalesce(changed_to, value) AS value FROM check_answers
    WHERE campaign_id = :campaign AND hit_id = :hit
""")


@dataclass(frozen=True)
class Reopened:
    """An answered HIT as it was shown, the number of its answer, and the fields of the form as they were filled in."""

    hit: ShownHit
    seq: int
    form: Mapping[str, str]


class OfCheck(Record):
    """What was said of a check, by its number."""

    check_number: int
    value: float


class StatusOf(Record):
    """Of a campaign."""

    status: str


class HitOf(Record):
    """Whose it is."""

    annotator: int


async def reopen(connection: Driver, assignment: AssignmentId, *, now: datetime) -> Reopened:
    """What an annotator answered last, to be looked at and changed. Raises `Conflict` (`answer_final`,
    `answer_changed_often`).
    """
    last = await fetch_one(connection, LAST, assignment.parameters, LastAnswer)
    if last is None:
        raise final()
    refuse_more_changes(last)
    items = shown_once(last.hit_items, last.shown_as)
    parameters = {"campaign": last.id, "hit": last.hit_id, "items": items, "shown": items, "segment": last.segment}
    shown = await fetch_one(connection, OF_HIT[last.segment is not None], parameters, ShownItems)
    assert shown is not None  # noqa: S101  (an aggregate has a row)
    seen = items, shown.ids, shown.texts
    of_checks: dict[int, float] = {}
    among: Sequence[MixedIn] = ()
    if last.has_checks:
        among, known = await checks.of_hit(connection, last.id, last.hit_id)
        said = {row.check_number: row.value for row in await fetch(connection, CHECKED, parameters, OfCheck)}
        seen = mixed.shown(*seen, among, known)
        of_checks = {one.number: said[one.check] for one in among}
    hit = ShownHit(last.hit_id, *seen, {}, now, last.segment, shown.above)
    names = {item: ItemName(position) for position, item in enumerate(hit.items)}
    beside = form_of_remarks(remarks.as_shown((last.beside or {}).get(REMARKS, {}), among, names))
    unjudged = unjudged_fields(last.beside or {}, among, names)
    return Reopened(hit, last.seq, {**filled_in(last, names, of_checks), **unjudged, **beside, "hit": str(last.hit_id)})


def filled_in(last: LastAnswer, names: Mapping[int, ItemName], of_checks: Mapping[int, float]) -> dict[str, str]:
    """Return the fields of the form as they were when the answer was sent.

    Args:
        last: The answer.
        names: The names of all that the page shows, in its order, by item number.
        of_checks: The values of the checks among them, by the number under which each is shown.

    """
    fields: dict[str, str] = {}
    count = len(last.hit_items)
    for number, view in enumerate(criteria_of(last)):
        row = dict(zip(last.hit_items, last.said[number * count : (number + 1) * count], strict=True)) | {**of_checks}
        values: dict[int, float] = {names[item]: row[item] for item in names if not math.isnan(row[item])}
        told = design_of(view).form_of(values)
        fields.update({f"{prefix_of(view)}{name}": value for name, value in told.items()})
    return fields


def unjudged_fields(
    beside: Mapping[str, Any], among: Sequence[MixedIn], names: Mapping[int, ItemName]
) -> dict[str, str]:
    """Return the fields that say what cannot be judged, of items and of the checks among them."""
    of_items, of_checks = beside.get(EXTRA, {}), beside.get(EXTRA_CHECKS, {})
    reasons = {int(item): reason for item, reason in of_items.items()}
    reasons |= {one.number: of_checks[str(one.check)] for one in among if str(one.check) in of_checks}
    return {f"{FIELD}{names[item]}": reason or YES for item, reason in reasons.items() if item in names}


async def replace(
    connection: Driver, assignment: AssignmentId, hit: int, answer: int, sent: Sent, *, now: datetime
) -> Receipt:
    """Store what was sent in the place of an answer, by its number, to a HIT; committed when this returns. Posteriors
    follow with `revisions.revise`.

    Sent again, it changes nothing and gets the first one's receipt. Raises `NotFound` (`hit_not_found`), `Conflict`
    (`answer_final`, `answer_changed_often`) and `Invalid`, as `submission.submit` does. Of checks what was said first
    counts on.

    Locks are taken in the order of an answer, so that its number is higher than that of each other one to its items
    that is there already; the campaign's row comes last.
    """
    key = {**assignment.parameters, "hit": hit, "replaces": answer, "now": now}
    async with connection.transaction():
        await lock_revision(connection, key)
        await execute(connection, LOCK_HIT, key)
        owner = await fetch_one(connection, ITS_ANNOTATOR, key, HitOf)
        if owner is None:
            raise NotFound("This HIT is not yours or does not exist. Nothing was stored.", code="hit_not_found")
        if again := await fetch_one(connection, IN_PLACE, key, Answered):
            return Receipt(hit, again.seq, repeated=True)
        await execute(connection, LOCKED_ANNOTATOR, {**key, "annotator": owner.annotator})
        last = await fetch_one(connection, LAST, key, LastAnswer)
        if last is None or (last.hit_id, last.seq) != (hit, answer):
            raise final()
        refuse_more_changes(last)
        among = await checks.places(connection, last.id, hit) if last.has_checks else []
        own, of_all = apart(last, sent, among) if among else (sent, [])
        await execute(connection, LOCK_POSTERIORS, {**key, "capped": last.hit_items})
        seq = await store_instead(connection, key, last, own, among)
        if among:
            await checks.change(connection, key, among, of_all)
        await withdraw(connection, key)
    return Receipt(hit, seq)


async def store_instead(
    connection: Driver, key: Mapping[str, Any], last: LastAnswer, sent: Sent, among: Sequence[MixedIn]
) -> int:
    """The number of the new response. Raises `Invalid`."""
    said = read_all(last, sent)
    first = await remarks.taken(connection, last.id, said[0][0], among)
    answers = [first, *(answer for answer, _ in said[1:])]
    response = response_of(last, answers, [value for _, row in said for value in row])
    stored = await fetch_one(connection, REPLACE, {**key, **response}, Answered)
    assert stored is not None  # noqa: S101  (it is returned, or this raises)
    if first.remarks:
        await remarks.alert(connection, last.id, stored.seq)
    return stored.seq


async def withdraw(connection: Driver, key: Mapping[str, Any]) -> None:
    """Decide that the older answer counts no more. Raises `Conflict` (`answer_final`)."""
    campaign = await fetch_one(connection, LOCK_CAMPAIGN, key, StatusOf)
    left_out = await fetch_one(connection, LEFT_OUT, key, Record)
    if campaign is None or campaign.status not in GOING_ON or left_out:
        raise final()
    decision = {"kind": "withdraw", "annotator": None, "response": key["replaces"], "reason": REASON, "by": BY}
    await execute(connection, DECIDE, {**key, **decision})


def response_of(last: LastAnswer, answers: Sequence[Answer], values: Sequence[float]) -> dict[str, Any]:
    """The columns of the response, which is an answer by each criterion."""
    return {
        "annotator": last.annotator_id,
        "source": answers[0].source,
        "items": last.hit_items,
        "values": values,
        "segment": last.segment,
        "extra": extra(last, answers[0], last.annotator_id),
        "telemetry": telemetry(answers, last.hit_items),
    }


def final() -> Conflict:
    return Conflict(
        "These answers can be changed no more. They are stored as you gave them first.", code="answer_final"
    )


def refuse_more_changes(last: LastAnswer) -> None:
    """Raise `Conflict` (`answer_changed_often`) for an answer that was changed `MAX_CHANGES` times."""
    if last.changes >= MAX_CHANGES:
        raise Conflict(
            "You have changed these answers many times, so they can be changed no more. They are stored as you gave "
            "them last.",
            code="answer_changed_often",
        )
