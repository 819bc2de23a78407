"""An answer and the posteriors it changes: stored together or not at all.

Locks are taken in one order everywhere: what the campaign has learned (a row that only `easl-aware` has), the HIT's
row, then the posterior rows by item number. So two answers that share items, two posts of one HIT, and a lease that is
renewed meanwhile wait for each other instead of deadlocking.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from app.database.campaign import FINISH
from app.database.session import Driver, Record, fetch, fetch_one
from app.designs import slider
from app.errors import Gone, NotFound
from app.inference.online import ONLINE
from app.serving.learning import learn
from app.serving.races import LOCK_POSTERIORS, STILL_WANTED

LOCK_LEARNED = """
    SELECT 1 FROM learned l WHERE l.kind = 'campaign' AND l.campaign_id = (SELECT campaign_id FROM hits WHERE id = :hit)
    FOR NO KEY UPDATE
"""


def closing(condition: str) -> str:
    """Close the HIT if `condition` holds and read its posteriors, locked; ORDER BY is applied before the locks.

    The subselects make the item numbers known before the join, so that it uses the index whatever the statistics say.
    """
    return f"""
    WITH crowd AS MATERIALIZED ({LOCK_LEARNED}), closed AS (
        UPDATE hits SET closed_at = :now, assignment_id = :assignment, untouched_by = NULL
        FROM (SELECT count(*) FROM crowd) AS locked
        WHERE id = :hit AND {condition} RETURNING campaign_id, annotator_id, items
    )
    SELECT p.number, p.a, p.b, closed.items AS hit_items, closed.annotator_id, c.id AS campaign_id, c.update_law,
           c.gamma, c.epsilon, c.tie_margin_points, c.judgments_per_item
    FROM closed JOIN campaigns c ON c.id = closed.campaign_id
    JOIN posteriors p ON p.campaign_id = (SELECT campaign_id FROM closed)
                     AND p.number = ANY(CAST((SELECT items FROM closed) AS int[]))
    ORDER BY p.number FOR NO KEY UPDATE OF p
    """  # noqa: S608  (made of constants)


# The annotator may have gone on with the HIT in another visit; it counts for the visit that answers.
THEIRS = "annotator_id = (SELECT annotator_id FROM assignments WHERE id = :assignment)"

LONGEST_WAIT_SECONDS = 10  # for a lock; only an import holds one for seconds

# First post wins: only one can find the lease open. In its last seconds it may end while the answer waits for a lock,
# and another HIT take its items: such an answer is dealt with as if it came late.
CLOSE = text(
    closing(
        f"{THEIRS} AND closed_at IS NULL "
        f"AND expires_at > CAST(:now AS timestamptz) + interval '{LONGEST_WAIT_SECONDS} seconds'"
    )
)
CLOSE_LATE = text(closing(STILL_WANTED))

LOCKED_LEARNED = text(LOCK_LEARNED)

FIND_AND_LOCK_HIT = text(f"""
    SELECT h.campaign_id, h.items AS hit_items, c.judgments_per_item, c.status,
           h.closed_at IS NULL AND h.expires_at > :now AS in_time
    FROM hits h JOIN campaigns c ON c.id = h.campaign_id
    WHERE h.id = :hit AND h.{THEIRS} FOR NO KEY UPDATE OF h
""")  # noqa: S608  (made of constants)

ANSWERED = text("SELECT seq FROM responses WHERE hit_id = :hit")

STORE = text("""
    WITH response AS (
        INSERT INTO responses (campaign_id, hit_id, annotator_id, source, items, scores, first_touch_ms, changes,
                               input_kinds, viewport, received_at)
        VALUES (:campaign, :hit, CAST(:annotator AS bigint), :source, CAST(:items AS int[]), :scores, :first_touch_ms,
                :changes, :input_kinds, :viewport, :now)
        RETURNING seq
    ), changed AS (
        UPDATE posteriors p
        SET a = new.a, b = new.b, score = new.score, variance = new.variance, judgments = p.judgments + 1
        FROM unnest(CAST(:items AS int[]), CAST(:a AS float8[]), CAST(:b AS float8[]), CAST(:score AS float8[]),
                    CAST(:variance AS float8[])) AS new (number, a, b, score, variance)
        WHERE p.campaign_id = :campaign AND p.number = new.number
        RETURNING p.judgments
    )
    SELECT (SELECT seq FROM response), bool_and(judgments >= :wanted) FROM changed
""")


@dataclass(frozen=True)
class Receipt:
    """What we owe the annotator: the answer's number, and whether it had been there already."""

    hit_id: int
    seq: int
    repeated: bool = False


async def submit(
    connection: Driver, assignment_id: int, hit_id: int, answer: slider.Answer, *, now: datetime
) -> Receipt:
    """Close the lease, store the answer, update the n posteriors. The caller commits before it replies.

    An answer to a HIT that has one already changes nothing and gets the first one's receipt. Raises `NotFound`
    (`hit_not_found`), `Gone` (`lease_expired`: others have answered meanwhile), `Invalid` (see `designs.slider`).
    """
    key = {"hit": hit_id, "assignment": assignment_id, "now": now}
    rows: Sequence[Record] = await fetch(connection, CLOSE, key)
    if not rows:
        await fetch(connection, LOCKED_LEARNED, key)
        hit = await fetch_one(connection, FIND_AND_LOCK_HIT, key)
        if hit is None:
            raise NotFound("This HIT is not yours or does not exist. Nothing was stored.", code="hit_not_found")
        if answered := await fetch_one(connection, ANSWERED, key):
            return Receipt(hit_id, answered.seq, repeated=True)
        rows = await close_late(connection, assignment_id, hit_id, hit, now=now)
    return await store(connection, hit_id, rows, answer, now=now)


async def close_late(
    connection: Driver, assignment_id: int, hit_id: int, hit: Record, *, now: datetime
) -> Sequence[Record]:
    """Close a HIT whose lease ran out, or is about to, if all its items are still wanted.

    Raises `Gone` (`lease_expired`) if not.
    """
    rows: Sequence[Record] = []
    if hit.in_time or hit.status in ("running", "paused"):
        items = {"campaign": hit.campaign_id, "items": hit.hit_items}
        await fetch(connection, LOCK_POSTERIORS, items)
        parameters = items | {"hit": hit_id, "assignment": assignment_id, "wanted": hit.judgments_per_item, "now": now}
        rows = await fetch(connection, CLOSE_LATE, parameters)
    if not rows:
        raise Gone(
            "Your time for these items had run out, and others have answered them meanwhile, so your answer was not "
            "stored. Your earlier answers are safe.",
            code="lease_expired",
        )
    return rows


async def store(
    connection: Driver,
    hit_id: int,
    rows: Sequence[Record],
    answer: slider.Answer,
    *,
    now: datetime,
) -> Receipt:
    """Write the response and the posteriors that follow from it; `rows` are the locked posteriors of a closed HIT."""
    hit = rows[0]
    scores = slider.ordered_scores(answer, hit.hit_items)
    touches = [answer.touches.get(item, slider.Touch()) for item in hit.hit_items]
    parameters = {
        "campaign": hit.campaign_id,
        "hit": hit_id,
        "annotator": hit.annotator_id,
        "source": answer.source,
        "items": hit.hit_items,
        "scores": scores,
        "first_touch_ms": [touch.first_touch_ms for touch in touches],
        "changes": [touch.changes for touch in touches],
        "input_kinds": [touch.input_kind for touch in touches],
        "viewport": answer.viewport,
        "now": now,
        "wanted": hit.judgments_per_item,
    } | await posteriors_after(connection, rows, scores)
    ((seq, all_reached),) = await fetch(connection, STORE, parameters)
    if all_reached:
        await fetch(connection, FINISH, parameters)
    return Receipt(hit_id, seq)


async def posteriors_after(
    connection: Driver, rows: Sequence[Record], scores: Sequence[float]
) -> dict[str, list[float]]:
    """What one answer makes of its items' posteriors, column by column in the order of the HIT; scores 0 to 100."""
    hit = rows[0]
    law = ONLINE[hit.update_law]
    shares = [score / slider.POINTS for score in scores]
    if law.update is None:
        a, b = await learn(connection, hit, shares)
    else:
        before = {row.number: (row.a, row.b) for row in rows}
        a, b = law.update(
            [before[item][0] for item in hit.hit_items],
            [before[item][1] for item in hit.hit_items],
            shares,
            slider.parameters(hit),
        )
    score, variance = law.estimates(a, b)
    return {"a": a, "b": b, "score": score, "variance": variance}
