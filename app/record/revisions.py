"""Decisions about the record, and new revisions of the posteriors that follow them while annotation continues.

1. The responses that count are replayed into a new revision, without a lock.
2. Responses that came meanwhile are added, until few are left.
3. One short transaction takes the right to store from all others, applies the last responses, and makes the new
   revision the present one. An answer that waited for that finds its revision gone, and is applied again.

For a long campaign all this happens in another process. Decisions made during a revision go into the next one together.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import datetime
from typing import Literal

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.background.metrics import PROCESS_METRICS
from app.background.process import run_in_process
from app.database.bulk import NumberColumn
from app.database.campaign import try_to_finish_complete_campaign
from app.database.exclusive_work import (
    ClaimLost,
    WorkClaim,
    WorkStillHeld,
    claim_work_until_transaction_ends,
    hold_work_during_block,
)
from app.database.session import LOCK_NOT_AVAILABLE_CODE, create_engine, sqlstate_of_error_or_empty
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.errors import Conflict, NotFound
from app.inference.online.law import LawBeliefs
from app.inference.online.laws import ONLINE_LAWS
from app.record import law_storage, unjudged
from app.record.campaign import load_campaign
from app.record.changes import poll_changes
from app.record.law_storage import Revision
from app.record.posterior_storage import store_revision_with_posteriors_and_law_state
from app.record.replay import replay_to_beliefs_counts_and_last_number
from app.record.retired import mark_retired_items_as_settled
from app.record.revision_draft import (
    SET_LOCK_TIMEOUT,
    RevisionDraft,
    apply_answers_to_draft,
    apply_new_answers_to_draft_and_count,
    key_of_next_revision,
    load_watermark_and_answers_missing_in_draft,
)

log = logging.getLogger(__name__)

DecisionKind = Literal["exclude", "include", "withdraw", "erased"]

# Replaying this many answers takes about as long as starting another process.
MIN_ANSWERS_FOR_PROCESS, MIN_ANSWERS_FOR_PROCESS_BY_SLOW_LAW = 2_000, 200

FIND_LAST_DECISION = text("SELECT max(seq) FROM decisions WHERE campaign_id = :campaign")

# True if the present revision misses a decision, and the number of answers, counted up to :most.
FIND_PENDING_REVISION_WORK = text("""
    SELECT update_law, coalesce((SELECT max(seq) FROM decisions WHERE campaign_id = :campaign), 0) > decided AS due,
           (SELECT count(*) FROM (SELECT FROM responses WHERE campaign_id = :campaign LIMIT :most) AS few) AS answers
    FROM campaigns WHERE id = :campaign
""")

FIND_CAMPAIGNS_DUE_FOR_REVISION = text("""
    SELECT DISTINCT c.id FROM campaigns c JOIN decisions d ON d.campaign_id = c.id AND d.seq > c.decided
    WHERE d.decided_at <= coalesce(CAST(:before AS timestamptz), 'infinity') ORDER BY c.id
""")

# Decisions are numbered under this lock, so a reader that sees one sees all earlier ones.
LOCK_CAMPAIGN_FOR_DECISION = text("SELECT status FROM campaigns WHERE id = :campaign FOR NO KEY UPDATE")

INSERT_DECISION = text("""
    INSERT INTO decisions (campaign_id, kind, annotator_id, response_seq, reason, decided_by, decided_at)
    VALUES (:campaign, :kind, :annotator, :response, :reason, :by, :now) RETURNING seq
""")

# Rows of interrupted attempts and of earlier revisions, which no query reads.
DELETE_OTHER_REVISIONS = tuple(
    text(f"DELETE FROM {table} WHERE campaign_id = :campaign AND revision <> :revision")
    for table in ("states", "posteriors")  # in the order in which answers lock them
)

# Blocks writers that do not take the right to store, such as a server of an earlier version. It takes FOR UPDATE,
# because the KEY SHARE lock of a foreign key does not conflict with less.
LOCK_CAMPAIGN_EXCLUSIVELY = text("SELECT 1 FROM campaigns WHERE id = :campaign FOR UPDATE")

SWITCH_REVISION = text("""
    UPDATE campaigns SET revision = :revision, decided = :decided WHERE id = :campaign AND revision = :revision - 1
""")

FIND_DECISION_TARGET = {
    "annotator": text("SELECT 1 FROM annotators WHERE campaign_id = :campaign AND id = :number"),
    "response": text("SELECT 1 FROM responses WHERE campaign_id = :campaign AND seq = :number"),
}

# This process makes one revision at a time, and starts at most one in another process: they must not take all of its
# connections.
LOCAL_REVISION_LOCK, PROCESS_REVISION_LOCK = asyncio.Lock(), asyncio.Lock()

DecisionTarget = Literal["annotator", "response"]


async def store_decision_and_return_number(
    connection: AsyncConnection,
    campaign: Campaign,
    kind: DecisionKind,
    target: DecisionTarget,
    target_number: int,
    *,
    reason: str,
    actor: str,
    now: datetime,
) -> int:
    """Store a decision about all answers of an annotator or about one response, and return its number.

    The posteriors follow with `switch_revision_if_it_misses_decisions`. Excluded annotators may still receive HITs;
    blocking them is a separate decision.

    Args:
        connection: A connection in a transaction.
        campaign: The campaign's row.
        kind: exclude: it no longer counts. withdraw: the annotator took it back. include: it counts again. erased: it
            was removed at the annotator's request, and never counts again.
        target: The kind of thing that `target_number` identifies.
        target_number: Row id of the annotator, or number of the response.
        reason: Why, in words.
        actor: Name of the person who decided.
        now: The present time.

    Raises:
        Conflict: `not_launched`.
        NotFound: `annotator_not_found` or `response_not_found`.

    """
    status = (await connection.execute(LOCK_CAMPAIGN_FOR_DECISION, {"campaign": campaign.id})).scalar_one()
    if status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: it has no answers yet.", code="not_launched")
    parameters = {"campaign": campaign.id, "kind": kind, "number": target_number, "annotator": None, "response": None}
    if (await connection.execute(FIND_DECISION_TARGET[target], parameters)).first() is None:
        raise NotFound(f"“{campaign.name}” has no {target} {target_number}.", code=f"{target}_not_found")
    decision = parameters | {target: target_number, "reason": reason, "by": actor, "now": now}
    seq: int = (await connection.execute(INSERT_DECISION, decision)).scalar_one()
    return seq


async def switch_revision_if_it_misses_decisions(engine: AsyncEngine, campaign_id: int, *, now: datetime) -> None:
    """Switch to a new revision that includes all decisions, if the present one misses any.

    `now` is stored as the time of the finish if the revision finishes the campaign. If interrupted at any point, the
    present revision stays as it is, and the call can be repeated. It works on one connection, and waits for other
    revisions of this process without any. Raises as `replay_to_beliefs_counts_and_last_number` and `run_in_process` do.
    """
    _, needs_process = await is_revision_due_and_needs_process(engine, campaign_id)
    async with PROCESS_REVISION_LOCK if needs_process else LOCAL_REVISION_LOCK:
        is_due, _ = await is_revision_due_and_needs_process(engine, campaign_id)
        if not is_due:
            return
        with PROCESS_METRICS.counting_and_timing("easel_revisions_running", "easel_revision_seconds"):
            if needs_process:
                url = engine.url.render_as_string(hide_password=False)
                await run_in_process(switch_to_new_revision_in_own_process, url, campaign_id, now)
            else:
                await make_revision_and_switch_to_it(engine, campaign_id, now=now)


async def is_revision_due_and_needs_process(engine: AsyncEngine, campaign_id: int) -> tuple[bool, bool]:
    """Return whether the present revision misses a decision, and whether a replay needs a process of its own."""
    async with engine.connect() as connection:
        row = (
            await connection.execute(
                FIND_PENDING_REVISION_WORK, {"campaign": campaign_id, "most": MIN_ANSWERS_FOR_PROCESS}
            )
        ).one()
    return row.due, row.answers >= (
        MIN_ANSWERS_FOR_PROCESS if ONLINE_LAWS[row.update_law].quick else MIN_ANSWERS_FOR_PROCESS_BY_SLOW_LAW
    )


async def switch_to_new_revision_in_own_process(url: str, campaign_id: int, now: datetime) -> None:
    """Run `make_revision_and_switch_to_it` in a process that has no engine."""
    async with open_engine_of_own_process(url) as engine:
        await make_revision_and_switch_to_it(engine, campaign_id, now=now)


@asynccontextmanager
async def open_engine_of_own_process(url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(url, pool_size=2)  # one to work, one to renew the right to do so
    try:
        yield engine
    finally:
        await engine.dispose()


async def switch_to_revision_from_same_answers(engine: AsyncEngine, campaign_id: int, *, now: datetime) -> None:
    """Make a revision from the same answers and decisions, for example after a change of the arithmetic.

    Annotation continues meanwhile, however long it takes.
    """
    await make_revision_and_switch_to_it(engine, campaign_id, now=now, even_if_current=True)


async def make_revision_and_switch_to_it(
    engine: AsyncEngine,
    campaign_id: int,
    *,
    now: datetime,
    even_if_current: bool = False,
    by_newest_edition: bool = False,
) -> None:
    """Make a revision in this process and switch to it.

    Args:
        engine: The database.
        campaign_id: The campaign.
        now: Stored as the time of the finish if the revision finishes the campaign.
        even_if_current: Whether to make it without a new decision, too.
        by_newest_edition: Whether to replay under the newest edition of the campaign's law.

    """
    while True:
        try:
            async with hold_revision_work_during_block(engine, campaign_id) as claim, engine.connect() as connection:
                draft = await create_revision_draft_or_none_if_not_needed(
                    connection,
                    claim,
                    campaign_id,
                    even_if_current=even_if_current,
                    by_newest_edition=by_newest_edition,
                )
                if draft is not None:
                    await finish_draft_and_switch_to_it(connection, draft, now=now)
                return
        except ClaimLost as problem:  # nothing was switched, or another process has made a revision since
            log.warning("A revision of campaign %s begins again: %s", campaign_id, problem)


async def finish_draft_and_switch_to_it(connection: AsyncConnection, draft: RevisionDraft, *, now: datetime) -> None:
    """Switch to a draft once it has all answers, and delete the earlier revision. Raises ClaimLost before the switch.

    `now` is stored as the time of the finish if the revision finishes the campaign.
    """
    while not await catch_up_and_try_to_switch_to_draft(connection, draft):
        pass
    async with connection.begin():
        await try_to_finish_complete_campaign(connection, draft.campaign.id, now=now)
    # Writers that began before the switch still use the rows of the old revision.
    while not await try_locking_work_with_timeout(wait_for_storing_transactions_to_end(connection, draft), draft):
        pass
    with suppress(ClaimLost):  # then the next revision deletes them
        async with connection.begin():
            await draft.claim.hold_until_transaction_ends_or_raise(connection)
            await delete_other_revisions(connection, draft.revision)


async def catch_up_and_try_to_switch_to_draft(connection: AsyncConnection, draft: RevisionDraft) -> bool:
    """Catch up, then try to make the draft the present revision; return whether it is."""
    answers_left = await apply_new_answers_to_draft_and_count(connection, draft)
    while answers_left > draft.max_answers_left:
        before, answers_left = answers_left, await apply_new_answers_to_draft_and_count(connection, draft)
        draft.failed_attempts += answers_left >= before
    return await try_locking_work_with_timeout(apply_last_answers_and_try_switch_to_draft(connection, draft), draft)


async def wait_for_storing_transactions_to_end(connection: AsyncConnection, draft: RevisionDraft) -> bool:
    """Wait until all transactions that were storing have ended, and return True."""
    async with connection.begin():
        await connection.execute(SET_LOCK_TIMEOUT, draft.lock_timeout_parameters)
        await connection.execute(law_storage.TAKE_STORE_LOCK, draft.revision.sql_parameters)
    return True


async def try_locking_work_with_timeout(locking_work: Awaitable[bool], draft: RevisionDraft) -> bool:
    """Return the result of the work, or False, after a pause, if it waited too long for a lock."""
    try:
        return await locking_work
    except DBAPIError as trouble:
        if sqlstate_of_error_or_empty(trouble) != LOCK_NOT_AVAILABLE_CODE:
            raise
        draft.failed_attempts += 1
        await asyncio.sleep(3 * draft.lock_timeout_parameters["milliseconds"] / 1000)
        return False


async def lock_revisions_or_refuse(connection: AsyncConnection, campaign_id: int) -> None:
    """Let no other transaction make a revision of a campaign until this one ends.

    Raises:
        Conflict: `revision_running`, if another process has been making one for long.

    """
    try:
        await claim_work_until_transaction_ends(connection, revision_work_name(campaign_id))
    except WorkStillHeld as problem:
        raise Conflict(
            "The scores of this campaign are being computed again. Nothing was changed; try again in a minute.",
            code="revision_running",
        ) from problem


async def block_answers_until_transaction_ends(connection: AsyncConnection, campaign_id: int) -> None:
    """Let no other transaction store answers, lease HITs or make a revision of a campaign until this one ends.

    Call it before you lock the campaign's row: a transaction that stores answers takes the right to store first and the
    row afterwards. Raises `Conflict` as `lock_revisions_or_refuse`.
    """
    await lock_revisions_or_refuse(connection, campaign_id)
    await connection.execute(law_storage.TAKE_STORE_LOCK, {"campaign": campaign_id})


async def block_writers_until_transaction_ends(connection: AsyncConnection, campaign_id: int) -> None:
    """Block answers, and writers that do not take the right to store, until this transaction ends.

    Raises `Conflict` as `block_answers_until_transaction_ends`.
    """
    await block_answers_until_transaction_ends(connection, campaign_id)
    await connection.execute(LOCK_CAMPAIGN_EXCLUSIVELY, {"campaign": campaign_id})


async def switch_to_new_revision_from_same_answers(connection: AsyncConnection, campaign_id: int) -> None:
    """Switch to a new revision from the same answers, for a campaign whose items have changed.

    All caches of the old revision become stale. The caller must hold `block_writers_until_transaction_ends`.
    """
    campaign = await load_campaign(connection, campaign_id)
    replays = [await replay_to_beliefs_counts_and_last_number(connection, criterion) for criterion in campaign.criteria]
    await delete_other_revisions(connection, Revision.present_revision_of_criterion(campaign.criteria[0]))
    await store_replayed_revision(connection, campaign.criteria, replays)
    await connection.execute(
        SWITCH_REVISION, {**key_of_next_revision(campaign.criteria[0]).sql_parameters, "decided": campaign.decided}
    )
    await mark_retired_items_as_settled(connection, campaign_id)


async def store_replayed_revision(
    connection: AsyncConnection,
    criteria: Sequence[Criterion[Campaign]],
    replays: Sequence[tuple[LawBeliefs, NumberColumn, int]],
) -> None:
    """Store the results of `replay_to_beliefs_counts_and_last_number` by each criterion as the next revision."""
    for criterion, (beliefs, judgments, _) in zip(criteria, replays, strict=True):
        await store_revision_with_posteriors_and_law_state(
            connection, key_of_next_revision(criterion), criterion.law, beliefs, judgments
        )


async def load_campaign_ids_due_for_revision(
    engine: AsyncEngine, *, decided_before: datetime | None = None
) -> Sequence[int]:
    """Return campaigns whose present revision misses a decision, for example because a server was killed.

    With `decided_before`, only decisions made until then are considered.
    """
    async with engine.connect() as connection:
        return (await connection.execute(FIND_CAMPAIGNS_DUE_FOR_REVISION, {"before": decided_before})).scalars().all()


def hold_revision_work_during_block(engine: AsyncEngine, campaign_id: int) -> AbstractAsyncContextManager[WorkClaim]:
    """Hold the right by which all processes together make one revision of a campaign at a time."""
    return hold_work_during_block(engine, revision_work_name(campaign_id))


def revision_work_name(campaign_id: int) -> str:
    return f"revision of campaign {campaign_id}"


async def create_revision_draft_or_none_if_not_needed(
    connection: AsyncConnection,
    claim: WorkClaim,
    campaign_id: int,
    *,
    even_if_current: bool,
    by_newest_edition: bool,
) -> RevisionDraft | None:
    """Store the next revision as of now, next to the present one, and return its draft.

    Return None if the present revision includes all decisions, unless `even_if_current`. The campaign keeps its edition
    of the law, unless `by_newest_edition`. Raises ClaimLost.
    """
    await connection.execution_options(isolation_level="REPEATABLE READ")
    async with connection.begin():
        campaign = await load_campaign(connection, campaign_id)
        decided = (await connection.execute(FIND_LAST_DECISION, {"campaign": campaign_id})).scalar_one() or 0
        if decided <= campaign.decided and not even_if_current:
            return None
        decided = max(decided, campaign.decided)
        unjudged_by = await unjudged.load_unable_annotators_by_item(connection, campaign, last_decision=decided)
        draft = RevisionDraft(
            claim, campaign, decided, (await poll_changes(connection, campaign_id)).watermark, unjudged_by
        )
        replays = [
            await replay_to_beliefs_counts_and_last_number(
                connection, criterion, last_decision=decided, by_newest_edition=by_newest_edition
            )
            for criterion in campaign.criteria
        ]
    await connection.execution_options(isolation_level="READ COMMITTED")
    async with connection.begin():
        await claim.hold_until_transaction_ends_or_raise(connection)
        await delete_other_revisions(connection, Revision.present_revision_of_criterion(campaign.criteria[0]))
    async with connection.begin():
        await claim.hold_until_transaction_ends_or_raise(connection)
        await store_replayed_revision(connection, campaign.criteria, replays)
        await unjudged.store_unjudged_counts(connection, draft.revision, draft.unjudged_by)
    return draft


async def apply_last_answers_and_try_switch_to_draft(connection: AsyncConnection, draft: RevisionDraft) -> bool:
    """Apply the last answers and make the draft the present revision; return whether it is.

    If too many answers are left, give up: no annotator can store an answer meanwhile.
    """
    parameters = draft.revision.sql_parameters
    async with connection.begin():
        await draft.claim.hold_until_transaction_ends_or_raise(connection)
        await connection.execute(SET_LOCK_TIMEOUT, draft.lock_timeout_parameters)
        await connection.execute(law_storage.TAKE_STORE_LOCK, parameters)
        await connection.execute(LOCK_CAMPAIGN_EXCLUSIVELY, parameters)
        _, answers = await load_watermark_and_answers_missing_in_draft(connection, draft)
        if len(answers[0]) > draft.max_answers_left:
            draft.failed_attempts += 1
            return False
        await apply_answers_to_draft(connection, draft, answers)
        if (await connection.execute(SWITCH_REVISION, {**parameters, "decided": draft.decided})).rowcount != 1:
            raise RuntimeError(
                f"another process has made revision {draft.revision.revision} of campaign {draft.revision.campaign}"
            )
        await mark_retired_items_as_settled(connection, draft.campaign.id)
    return True


async def delete_other_revisions(connection: AsyncConnection, present: Revision) -> None:
    """Delete all revisions but the present one: earlier ones, and those of interrupted attempts."""
    for statement in DELETE_OTHER_REVISIONS:
        await connection.execute(statement, present.sql_parameters)
