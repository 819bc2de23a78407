"""Rewards of submissions as payments of the ledger: reserved while a submission waits for its review, and settled by
what the platform says of the submission.

1. A complete submission that waits for a review gets a prepared row within the budget.
2. Before the call that approves it, the row is `sending`; commit.
3. Its outcome is stored with the row: sent; unknown; or, if it certainly had no effect, the state from before the call,
   or failed.

Approving is idempotent at the platform: it pays once, however often it is asked for. So a reward whose approval is
unclear is settled by the submission's status: approved ones are sent, and those that still wait are prepared again and
may be approved again. Approvals that people make on the platform's own page are booked as sent.

If several campaigns read the same study, a submission has a reward in one of them: the first to reserve or book it. A
keyed hash of its id stays with the reward, so this also holds after an erasure, or when the campaign pays from another
workspace.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.annotation.platforms.service import CallOutcomeUnknown, ServiceFailure, Submission
from app.database.audit_log import CURRENT_ACTOR
from app.database.statistics import flush_table_statistics_at_commit
from app.errors import pluralize
from app.payments.connections import CANCEL_PREPARED_REWARDS_WITHOUT_TOKEN, STUDY_IS_READ
from app.payments.ledger import COUNTS_AGAINST_BUDGET, LOCK_ACCOUNT, STATES_WITHIN_BUDGET

# SQL of a submission u: the platform paid for it, an amount that is not known, or one that is.
HAS_UNKNOWN_PAY = "u.status IN ('approved', 'partially_approved', 'screened_out') AND u.reward IS NULL"
IS_PAID = "u.status IN ('approved', 'partially_approved', 'screened_out') AND u.reward > 0"

# An amount in whole units of the currency would be a hundredth of the study's reward, or a fiftieth after rounding.
MAX_STUDY_REWARD_PER_OWN_REWARD = 50

# SQL of a submission u and its reward p: the reserved amount is what the platform pays now.
AMOUNT_IS_CURRENT = "u.reward = p.amount"

# Rewards of a study are reserved and booked by one campaign after the other.
LOCK_REWARDS_OF_STUDIES = text("""
    SELECT pg_advisory_xact_lock(hashtextextended('rewards ' || platform || ' ' || study, 0)) FROM (
        SELECT DISTINCT platform, unnest(study || other_studies) AS study FROM payment_accounts
        WHERE campaign_id = :campaign ORDER BY study) AS studies
""")


def is_reward_elsewhere_sql(condition_sql: str) -> str:
    """Return SQL that is true if another campaign has a reward e of a submission u for which a condition holds.

    Two conditions, as each has an index: a single one with OR would compare each submission with each reward.
    """
    return f"""(EXISTS (
        SELECT 1 FROM payments e WHERE e.kind = 'reward' AND e.campaign_id <> :campaign
        AND e.submission = u.external_id AND {condition_sql}
    ) OR EXISTS (
        SELECT 1 FROM payments e WHERE e.kind = 'reward' AND e.campaign_id <> :campaign
        AND e.submission_hash = u.submission_hash AND {condition_sql}))"""


IS_REWARD_ELSEWHERE_SQL = is_reward_elsewhere_sql(f"e.state IN {STATES_WITHIN_BUDGET}")

# The campaign whose reward stays if there are several: one that paid or may have paid, else the earliest.
FIND_OTHER_CAMPAIGN_WITH_REWARD = text(f"""
    SELECT e.campaign_id FROM submissions u, payments e
    WHERE u.campaign_id = :campaign AND u.external_id = :submission AND e.kind = 'reward' AND e.campaign_id <> :campaign
    AND (e.submission = u.external_id OR e.submission_hash = u.submission_hash) AND e.state IN {STATES_WITHIN_BUDGET}
    ORDER BY e.state = 'prepared', e.state <> 'sent', e.id LIMIT 1
""")

# Rewards from before the column existed, or hashed with a key that the server had before.
STORE_HASHES_WITH_REWARDS = text("""
    UPDATE payments p SET submission_hash = u.submission_hash FROM submissions u
    WHERE p.campaign_id = :campaign AND p.kind = 'reward' AND u.campaign_id = :campaign
    AND u.external_id = p.submission AND u.submission_hash IS NOT NULL
    AND p.submission_hash IS DISTINCT FROM u.submission_hash
""")

# Rewards that were reserved twice before Easel compared campaigns: the first one stays. If both are unclear, because a
# person approved the submission in both campaigns, the one that is settled first stays: the platform paid once.
IS_EARLIER_REWARD = "(e.state IN ('sending', 'sent', 'unknown') OR (e.state = 'prepared' AND e.id < p.id))"
IS_BOOKED_ELSEWHERE = is_reward_elsewhere_sql("e.state = 'sent'")
IS_BOOKED = f"""({IS_BOOKED_ELSEWHERE} OR EXISTS (
        SELECT 1 FROM payments own WHERE own.campaign_id = :campaign AND own.kind = 'reward'
        AND own.submission = u.external_id AND own.state = 'sent'))"""
CANCEL_REWARDS_RESERVED_ELSEWHERE = text(f"""
    UPDATE payments p SET state = 'cancelled', settled_at = :now, batch = NULL,
        problem = 'Another campaign has this reward.'
    FROM submissions u
    WHERE p.campaign_id = :campaign AND p.kind = 'reward' AND p.state IN ('prepared', 'unknown')
    AND u.campaign_id = p.campaign_id AND u.external_id = p.submission
    AND CASE p.state WHEN 'prepared' THEN {is_reward_elsewhere_sql(IS_EARLIER_REWARD)} ELSE {IS_BOOKED_ELSEWHERE} END
""")

# The campaign of an unclear reward may no longer read the submission: it removed the study or its token, or erased the
# person. Then a campaign that does read it settles the reward. Rows that another transaction holds are left to the next
# turn, as that one may wait for this one's locks.
SETTLE_UNCLEAR_REWARDS_ELSEWHERE = text(f"""
    WITH unclear AS (
        SELECT e.campaign_id, e.id, e.submission, e.submission_hash, e.sending_at FROM payments e
        WHERE e.kind = 'reward' AND e.state = 'unknown' AND e.campaign_id <> :campaign
        AND EXISTS (
            SELECT 1 FROM payment_accounts own
            WHERE own.campaign_id = :campaign AND e.study = ANY(own.study || own.other_studies))
        AND (starts_with(e.submission, 'erased:') OR NOT EXISTS (
            SELECT 1 FROM payment_accounts c WHERE c.campaign_id = e.campaign_id
            AND e.study = ANY(c.study || c.other_studies) AND (c.token IS NOT NULL OR c.token_variable IS NOT NULL)))
        FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE payments p SET state = CASE WHEN {IS_PAID} AND NOT {IS_BOOKED} THEN 'sent' ELSE 'cancelled' END,
        amount = CASE WHEN {IS_PAID} AND NOT {IS_BOOKED} THEN u.reward ELSE p.amount END,
        settled_at = :now, batch = NULL,
        problem = CASE WHEN {IS_PAID} AND {IS_BOOKED} THEN 'Another campaign has this reward.'
            WHEN {IS_PAID} THEN '' ELSE 'It was not paid, and another campaign reads the submission now.' END
    FROM unclear e, submissions u
    WHERE p.campaign_id = e.campaign_id AND p.id = e.id AND u.campaign_id = :campaign
    AND (u.external_id = e.submission OR u.submission_hash = e.submission_hash)
    AND ({IS_PAID} OR u.status IN ('awaiting', 'returned', 'timed_out', 'rejected')) AND u.seen_at > e.sending_at
""")

# SQL of a submission u: its person came to this campaign with it. Another campaign may read the same study.
HAS_ASSIGNMENT = """EXISTS (SELECT 1 FROM assignments s WHERE s.campaign_id = u.campaign_id
    AND s.annotator_id = u.annotator_id AND s.external_id = u.external_id)"""

# The submissions whose rewards change, so that an erasure of a person is either seen or waits. LATERAL looks up each
# annotator by the primary key: a plan without statistics would compare each with all submissions.
LOCK_ANNOTATORS_OF_SUBMISSIONS = text("""
    SELECT count(*) FROM (
        SELECT DISTINCT annotator_id FROM submissions WHERE campaign_id = :campaign ORDER BY annotator_id
    ) AS known, LATERAL (
        SELECT FROM annotators a WHERE a.campaign_id = :campaign AND a.id = known.annotator_id FOR KEY SHARE
    ) AS locked
""")

# A submission that waits although its reward was taken for sent was not approved: approving it again pays it once.
SETTLE_REWARDS_BY_STATUS = text(f"""
    UPDATE payments p SET
        state = CASE WHEN {IS_PAID} THEN 'sent' WHEN u.status = 'awaiting' THEN 'prepared' ELSE 'cancelled' END,
        amount = CASE WHEN {IS_PAID} THEN u.reward ELSE p.amount END,
        settled_at = CASE WHEN u.status <> 'awaiting' THEN CAST(:now AS timestamptz) END, problem = '', batch = NULL
    FROM submissions u
    WHERE p.campaign_id = :campaign AND p.kind = 'reward' AND u.campaign_id = :campaign
    AND u.external_id = p.submission AND (
        ({IS_PAID} AND p.state <> 'sent'
            AND (p.state NOT IN ('cancelled', 'failed') OR NOT {IS_REWARD_ELSEWHERE_SQL}))
        OR (u.status = 'awaiting' AND p.state = 'unknown' AND u.seen_at > p.sending_at)
        OR (u.status = 'awaiting' AND p.state = 'sent' AND u.seen_at > p.settled_at)
        OR ((u.status IN ('returned', 'timed_out', 'rejected') OR {HAS_UNKNOWN_PAY})
            AND p.state IN ('prepared', 'failed', 'unknown')))
""")

CANCEL_REWARDS_OF_ABSENT_SUBMISSIONS = text("""
    UPDATE payments p SET state = 'cancelled', settled_at = :now, problem = :problem
    WHERE p.campaign_id = :campaign AND p.kind = 'reward' AND p.state = 'prepared' AND NOT EXISTS (
        SELECT 1 FROM submissions u WHERE u.campaign_id = :campaign AND u.external_id = p.submission
        AND u.status <> 'other')
""")
SUBMISSION_IS_ABSENT = "The submission is not among those that Easel reads."

# A submission that a person approves need not be complete, and may have been refused before. A reserved reward whose
# amount changed at the platform is reserved again; one that the budget has no room for keeps its old amount.
RESERVE_REWARDS_WITHIN_BUDGET = text(f"""
    WITH waiting AS (
        SELECT u.external_id, u.annotator_id, u.study, u.reward, u.submission_hash,
            u.reward - coalesce((
                SELECT p.amount FROM payments p WHERE p.campaign_id = u.campaign_id AND p.kind = 'reward'
                AND p.submission = u.external_id AND p.state IN ('prepared', 'unknown')), 0) AS needed
        FROM submissions u
        LEFT JOIN assignments s ON s.campaign_id = u.campaign_id AND s.annotator_id = u.annotator_id
            AND s.external_id = u.external_id
        WHERE u.campaign_id = :campaign AND u.status = 'awaiting' AND u.reward > 0 AND u.annotator_id IS NOT NULL
        AND NOT starts_with(u.external_id, 'erased:') AND {STUDY_IS_READ}
        AND NOT {IS_REWARD_ELSEWHERE_SQL}
        AND u.external_id = coalesce(CAST(:submission AS text), u.external_id)
        AND (s.completed_at IS NOT NULL OR CAST(:submission AS text) IS NOT NULL)
        AND NOT EXISTS (
            SELECT 1 FROM payments p WHERE p.campaign_id = :campaign AND p.kind = 'reward'
            AND p.submission = u.external_id AND p.state <> 'cancelled'
            AND (p.state NOT IN ('prepared', 'unknown') OR {AMOUNT_IS_CURRENT})
            AND (p.state <> 'failed' OR CAST(:submission AS text) IS NULL))
    ), added AS (
        INSERT INTO payments AS p (campaign_id, annotator_id, submission, study, amount, currency, reason, request_key,
            line, created_by, created_at, kind, submission_hash)
        SELECT account.campaign_id, given.annotator_id, given.external_id, given.study, given.reward, account.currency,
            '', 'reward ' || gen_random_uuid(), 1, :by, :now, 'reward', given.submission_hash
        FROM payment_accounts account, (
            SELECT waiting.*, sum(greatest(needed, 0)) OVER (ORDER BY external_id) AS amount_so_far
            FROM waiting) AS given
        WHERE account.campaign_id = :campaign AND (
            NOT account.budget_covers_rewards OR given.needed <= 0 OR account.budget >= given.amount_so_far + (
                SELECT coalesce(sum(amount), 0) FROM payments
                WHERE campaign_id = :campaign AND {COUNTS_AGAINST_BUDGET}))
        ON CONFLICT (campaign_id, submission) WHERE kind = 'reward' DO UPDATE SET
            state = CASE WHEN p.state = 'unknown' THEN 'unknown' ELSE 'prepared' END, amount = excluded.amount,
            submission_hash = excluded.submission_hash, settled_at = NULL,
            decided_by = CASE WHEN p.state = 'unknown' THEN p.decided_by END,
            problem = CASE WHEN p.state = 'unknown' THEN p.problem ELSE '' END,
            batch = CASE WHEN p.state = 'unknown' THEN p.batch END
        WHERE p.state IN ('cancelled', 'failed', 'prepared', 'unknown')
        RETURNING id
    )
    SELECT (SELECT count(*) FROM waiting) - (SELECT count(*) FROM added) AS beyond_budget
""")

BOOK_REWARDS_PAID_ELSEWHERE = text(f"""
    INSERT INTO payments (campaign_id, annotator_id, submission, study, amount, currency, reason, state, request_key,
        line, created_by, created_at, settled_at, kind, submission_hash)
    SELECT u.campaign_id, u.annotator_id, u.external_id, u.study, u.reward, account.currency, '', 'sent',
        'reward ' || gen_random_uuid(), 1, :by, :now, :now, 'reward', u.submission_hash
    FROM submissions u JOIN payment_accounts account ON account.campaign_id = u.campaign_id
    WHERE u.campaign_id = :campaign AND {IS_PAID} AND {HAS_ASSIGNMENT} AND {STUDY_IS_READ}
    AND NOT starts_with(u.external_id, 'erased:') AND NOT {IS_REWARD_ELSEWHERE_SQL}
    ORDER BY u.external_id
    ON CONFLICT (campaign_id, submission) WHERE kind = 'reward' DO NOTHING
""")

MARK_REWARD_AS_SENDING = text(f"""
    UPDATE payments p SET state = 'sending', batch = :batch, sending_at = :now, settled_at = NULL, problem = ''
    FROM submissions u
    WHERE p.campaign_id = :campaign AND p.submission = :submission AND p.kind = 'reward'
    AND u.campaign_id = p.campaign_id AND u.external_id = p.submission AND {AMOUNT_IS_CURRENT}
    AND p.state IN ('prepared', 'unknown') RETURNING p.id
""")
SETTLE_REWARD_OF_CALL = text("""
    UPDATE payments SET state = :state, problem = :problem, settled_at = :settled_at
    WHERE campaign_id = :campaign AND batch = :batch AND kind = 'reward' AND state IN ('sending', 'unknown')
""")

COUNT_WAITING_SUBMISSIONS_WITHOUT_REWARD = text(f"""
    SELECT count(*) FROM submissions u
    JOIN assignments s ON s.campaign_id = u.campaign_id AND s.annotator_id = u.annotator_id
        AND s.external_id = u.external_id AND s.completed_at IS NOT NULL
    WHERE u.campaign_id = :campaign AND u.status = 'awaiting' AND {STUDY_IS_READ} AND coalesce(u.reward, 0) <= 0
""")

COUNT_REWARDS_OUTSIDE_LEDGER = text(f"""
    SELECT count(*) FROM submissions u WHERE u.campaign_id = :campaign AND {STUDY_IS_READ}
    AND u.status IN ('approved', 'partially_approved', 'screened_out')
    AND (NOT {HAS_ASSIGNMENT} OR u.reward IS NULL OR (
        {IS_REWARD_ELSEWHERE_SQL} AND NOT EXISTS (
            SELECT 1 FROM payments p WHERE p.campaign_id = :campaign AND p.kind = 'reward'
            AND p.submission = u.external_id AND p.state = 'sent')))
""")


@dataclass(frozen=True)
class RewardCall:
    """A call that approves one submission.

    Attributes:
        batch: Mark by which its outcome finds the reward, even if the ids of the person were erased meanwhile.
        state_before: State of the reward before the call, which it has again if the call had no effect.

    """

    campaign_id: int
    batch: str
    state_before: str = "prepared"


def reward_of_submission_or_none(submission: Submission, study_reward: int | None) -> int | None:
    """Return what the approval of a submission pays or paid, in hundredths; None if the service does not say.

    A submission that was paid in part has a reward of its own, which is less than the study's. A reward above the
    study's, or one so far below it that it may be in another unit, is not believed.
    """
    own, is_paid_in_part = submission.reward, submission.status in ("partially_approved", "screened_out")
    if own is None:
        return None if is_paid_in_part else study_reward
    if study_reward is None or own > study_reward or own * MAX_STUDY_REWARD_PER_OWN_REWARD <= study_reward:
        return None
    return None if is_paid_in_part and own == study_reward else own


async def book_rewards_and_return_problems(database: AsyncEngine, campaign_id: int, *, now: datetime) -> list[str]:
    """Settle, reserve and book the rewards of all submissions as they were read.

    Returns:
        Problems: the budget has no room for the rewards of submissions that wait, or their rewards are not known.

    """
    async with database.begin() as connection:
        await connection.execute(LOCK_ACCOUNT, {"campaign": campaign_id})
        await connection.execute(LOCK_ANNOTATORS_OF_SUBMISSIONS, {"campaign": campaign_id})
        await update_rewards_to_submission_statuses(connection, campaign_id, now=now)
        parameters = {"campaign": campaign_id, "by": CURRENT_ACTOR.get().name, "now": now}
        await connection.execute(BOOK_REWARDS_PAID_ELSEWHERE, parameters)
        beyond_budget = await reserve_rewards_and_count_those_beyond_budget(connection, campaign_id, now=now)
        unknown = (await connection.execute(COUNT_WAITING_SUBMISSIONS_WITHOUT_REWARD, parameters)).scalar_one()
        await connection.execute(CANCEL_PREPARED_REWARDS_WITHOUT_TOKEN, {"campaign": campaign_id, "now": now})
        await flush_table_statistics_at_commit(connection)
    problems = []
    if beyond_budget:
        problems.append(
            f"The budget has no room for the reward of {pluralize(beyond_budget, 'submission')} waiting for review, so "
            "Easel does not approve them. Raise the budget on the Payments page."
        )
    if unknown:
        problems.append(
            f"Easel cannot read the reward of {pluralize(unknown, 'submission')} waiting for review, so it does not "
            "approve them. Approve them on the platform’s own page."
        )
    return problems


async def update_rewards_to_submission_statuses(
    connection: AsyncConnection, campaign_id: int, *, now: datetime
) -> None:
    """Settle rewards by the stored status of their submissions, and cancel those of submissions that are gone.

    Its caller holds the account, since several rewards are locked.
    """
    parameters = {"campaign": campaign_id, "now": now}
    await connection.execute(LOCK_REWARDS_OF_STUDIES, {"campaign": campaign_id})
    await connection.execute(STORE_HASHES_WITH_REWARDS, {"campaign": campaign_id})
    await connection.execute(SETTLE_UNCLEAR_REWARDS_ELSEWHERE, parameters)
    await connection.execute(CANCEL_REWARDS_RESERVED_ELSEWHERE, parameters)
    await connection.execute(SETTLE_REWARDS_BY_STATUS, parameters)
    await connection.execute(CANCEL_REWARDS_OF_ABSENT_SUBMISSIONS, parameters | {"problem": SUBMISSION_IS_ABSENT})


async def reserve_rewards_and_count_those_beyond_budget(
    connection: AsyncConnection, campaign_id: int, *, submission: str | None = None, now: datetime
) -> int:
    """Prepare the rewards of complete submissions that wait for a review, as far as the budget has room, and return how
    many it has no room for.

    Args:
        connection: A connection in a transaction that holds the account.
        campaign_id: The campaign.
        submission: Only of this one, also if it is not complete; None: of all.
        now: The time.

    """
    parameters = {
        "campaign": campaign_id,
        "submission": submission,
        "by": CURRENT_ACTOR.get().name,
        "now": now,
    }
    await connection.execute(LOCK_REWARDS_OF_STUDIES, {"campaign": campaign_id})
    return int((await connection.execute(RESERVE_REWARDS_WITHIN_BUDGET, parameters)).scalar_one())


async def find_other_campaign_with_reward_or_none(
    connection: AsyncConnection, campaign_id: int, submission: str
) -> int | None:
    """Return the id of another campaign that has reserved or booked the reward of a submission."""
    parameters = {"campaign": campaign_id, "submission": submission}
    return (await connection.execute(FIND_OTHER_CAMPAIGN_WITH_REWARD, parameters)).scalar_one_or_none()


async def try_to_mark_reward_as_sending(
    connection: AsyncConnection, call: RewardCall, submission: str, *, now: datetime
) -> bool:
    """Mark the reward of a submission as being sent, if it is prepared or unclear. Return whether it was."""
    parameters = {"campaign": call.campaign_id, "batch": call.batch, "submission": submission, "now": now}
    return (await connection.execute(MARK_REWARD_AS_SENDING, parameters)).one_or_none() is not None


async def store_outcome_of_failed_approval(
    database: AsyncEngine, call: RewardCall, failure: ServiceFailure, *, now: datetime
) -> None:
    """Store that it is unknown whether a reward was paid, or the state from before the call if it certainly was not."""
    state = "unknown" if isinstance(failure, CallOutcomeUnknown) else call.state_before
    async with database.begin() as connection:
        await connection.execute(LOCK_ACCOUNT, {"campaign": call.campaign_id})
        await store_reward_state_after_call(connection, call, state, problem=failure.message, now=now)


async def store_reward_state_after_call(
    connection: AsyncConnection, call: RewardCall, state: str, *, problem: str = "", now: datetime
) -> None:
    """Store what became of the reward of a call: no prepared one if the token was removed during the call.

    Its caller holds the account.
    """
    parameters = {
        "campaign": call.campaign_id,
        "batch": call.batch,
        "state": state,
        "problem": problem,
        "settled_at": None if state in ("prepared", "unknown") else now,
    }
    await connection.execute(SETTLE_REWARD_OF_CALL, parameters)
    await connection.execute(CANCEL_PREPARED_REWARDS_WITHOUT_TOKEN, {"campaign": call.campaign_id, "now": now})


async def count_rewards_outside_ledger(connection: AsyncConnection, campaign_id: int) -> int:
    """Return how many paid submissions have no row: their person never came here, another campaign has it, or the
    amount is not known.
    """
    return int((await connection.execute(COUNT_REWARDS_OUTSIDE_LEDGER, {"campaign": campaign_id})).scalar_one())
