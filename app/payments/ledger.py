"""The ledger: bonuses and rewards as rows, added within the campaign's budget, and decisions of people about them.

Whether a payment fits into the budget is decided by the statement that stores it, while the campaign's account is
locked.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.audit_log import CURRENT_ACTOR, log_change
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, NotFound, pluralize, shorten_echo
from app.payments.bonus_list import BonusLine, refuse_too_many_bonuses
from app.payments.connections import MAKE_ACCOUNT_DUE, has_token, load_account_or_refuse, study_id_of_bonus
from app.payments.money import money_text
from app.payments.recipients import find_submissions_of_recipients_or_refuse, list_last_submissions_of_completed_people

TIME_UNTIL_DECISION = timedelta(minutes=30)  # a payment is made minutes after the call
TIME_UNTIL_DECISION_WITHOUT_LOOK = timedelta(hours=24)  # if the service does not show the submission until then
PAYMENTS_SHOWN = 500
MADE_BY_HAND = "by hand"  # instead of the service's id of a call


STATES_WITHIN_BUDGET = ("prepared", "sending", "sent", "unknown")  # in which money is spent or may be

# SQL of a payment: it counts against the campaign's budget. A budget from before rewards were counted is for bonuses.
COUNTS_AGAINST_BUDGET = f"""state IN {STATES_WITHIN_BUDGET} AND (kind = 'bonus' OR (
            SELECT c.budget_covers_rewards FROM payment_accounts c WHERE c.campaign_id = :campaign))"""

# Holds the account until the end of the transaction, so that the next statement sees all payments before it.
LOCK_ACCOUNT = text("SELECT 1 FROM payment_accounts WHERE campaign_id = :campaign FOR NO KEY UPDATE")
# A request key ends in a blank and the hash of the request's bonuses.
HASH_CHARACTERS = 64
FIND_REQUEST = text(f"""
    SELECT request_key FROM payments
    WHERE campaign_id = :campaign AND left(request_key, -{HASH_CHARACTERS + 1}) = :key LIMIT 1
""")

INSERT_PAYMENTS_WITHIN_BUDGET = text(f"""
    INSERT INTO payments (campaign_id, annotator_id, submission, study, amount, currency, reason, request_key, line,
        created_by, created_at)
    SELECT account.campaign_id, given.annotator, given.submission, given.study, given.amount, account.currency,
           given.reason, :request, given.line, :by, :now
    FROM payment_accounts account, unnest(CAST(:annotators AS bigint[]), CAST(:submissions AS text[]),
        CAST(:studies AS text[]), CAST(:amounts AS int[]), CAST(:reasons AS text[]))
        WITH ORDINALITY AS given (annotator, submission, study, amount, reason, line)
    WHERE account.campaign_id = :campaign AND account.budget >= CAST(:total AS bigint) + (
        SELECT coalesce(sum(amount), 0) FROM payments WHERE campaign_id = :campaign AND {COUNTS_AGAINST_BUDGET})
    RETURNING id
""")

LOAD_TOTALS = text("""
    SELECT kind, state, count(*) AS number, sum(amount) AS amount FROM payments WHERE campaign_id = :campaign
    GROUP BY kind, state
""")

LIST_PAYMENTS = text("""
    SELECT p.*, n.name FROM payments p
    JOIN named_annotators n ON n.campaign_id = p.campaign_id AND n.id = p.annotator_id
    WHERE p.campaign_id = :campaign
    ORDER BY array_position(ARRAY['unknown', 'sending', 'failed', 'prepared', 'sent', 'cancelled'], p.state), p.id DESC
    LIMIT :limit
""")

LOAD_PAYMENT = text("SELECT * FROM payments WHERE campaign_id = :campaign AND id = :id FOR NO KEY UPDATE")
SETTLE_PAYMENT_BY_PERSON = text("""
    UPDATE payments SET state = :state, settled_at = :settled_at, decided_by = :by, problem = '', batch = NULL,
        bulk_id = CASE WHEN CAST(:state AS text) = 'sent' THEN bulk_id END
    WHERE campaign_id = :campaign AND id = :id
""")
RETRY_FAILED_PAYMENTS = text("""
    UPDATE payments SET state = 'prepared', settled_at = NULL, decided_by = :by, problem = '', batch = NULL,
        bulk_id = NULL
    WHERE campaign_id = :campaign AND kind = 'bonus' AND state = 'failed' AND NOT starts_with(submission, 'erased:')
    RETURNING amount
""")
FITS_INTO_BUDGET = text(f"""
    SELECT budget >= :amount + (
        SELECT coalesce(sum(amount), 0) FROM payments WHERE campaign_id = :campaign AND {COUNTS_AGAINST_BUDGET})
    FROM payment_accounts WHERE campaign_id = :campaign
""")


@dataclass(frozen=True)
class LedgerTotals:
    """Money in hundredths, and numbers of bonuses.

    Attributes:
        bonuses: Money for bonuses, by state.
        rewards: Money for rewards, by state.
        bonus_counts: Number of bonuses, by state.
        budget_covers_rewards: Whether rewards count against the budget, too.

    """

    bonuses: dict[str, int]
    rewards: dict[str, int]
    bonus_counts: dict[str, int]
    budget: int
    budget_covers_rewards: bool

    @property
    def amounts(self) -> dict[str, int]:
        """Money for bonuses and rewards together, by state."""
        states = [*dict.fromkeys([*self.bonuses, *self.rewards])]
        return {state: self.bonuses.get(state, 0) + self.rewards.get(state, 0) for state in states}

    @property
    def amount_counted_against_budget(self) -> int:
        counted = self.amounts if self.budget_covers_rewards else self.bonuses
        return sum(counted.get(state, 0) for state in STATES_WITHIN_BUDGET)

    @property
    def left(self) -> int:
        return max(0, self.budget - self.amount_counted_against_budget)


async def add_prepared_bonuses_and_count_new(
    connection: AsyncConnection, campaign: Campaign, lines: Sequence[BonusLine], *, request_key: str, now: datetime
) -> int:
    """Prepare bonuses, all or none, and return their number; 0 if the same request was stored before.

    Args:
        connection: A connection in a transaction.
        campaign: The campaign.
        lines: The bonuses.
        request_key: Key of this request. A repeated one, such as a form that is sent twice, adds nothing.
        now: The time.

    Raises:
        Conflict: `no_budget`, `over_budget`, `request_key_used`: with other bonuses.
        Invalid: `recipient_unknown`, `recipient_ambiguous`, `recipient_erased`, `recipient_elsewhere`.

    """
    account = await load_account_or_refuse(connection, campaign)
    await connection.execute(LOCK_ACCOUNT, {"campaign": campaign.id})
    key = f"{request_key} {hash_content(lines)}"
    if await is_request_stored_or_refuse_other_content(connection, campaign, key):
        return 0
    people = await find_submissions_of_recipients_or_refuse(connection, campaign, account, lines)
    await insert_bonuses_and_log_or_refuse(
        connection,
        campaign,
        account,
        people,
        amounts=[line.amount for line in lines],
        reasons=[line.reason for line in lines],
        key=key,
        now=now,
    )
    return len(lines)


async def add_bonus_for_all_finished_and_count_new(
    connection: AsyncConnection, campaign: Campaign, amount: int, reason: str, *, request_key: str, now: datetime
) -> int:
    """Prepare the same bonus for everyone who finished and is neither held nor excluded; 0 if the same request was
    stored before, even if others have finished since.

    Raises:
        Conflict: `no_budget`, `over_budget`, `nobody_finished`, `request_key_used`: with another bonus.
        Invalid: `too_many_bonuses`.

    """
    account = await load_account_or_refuse(connection, campaign)
    await connection.execute(LOCK_ACCOUNT, {"campaign": campaign.id})
    key = f"{request_key} {hash_content([amount, reason])}"
    if await is_request_stored_or_refuse_other_content(connection, campaign, key):
        return 0
    people = await list_last_submissions_of_completed_people(connection, campaign, account)
    if not people:
        raise Conflict("Nobody has finished yet. Nothing was stored.", code="nobody_finished")
    refuse_too_many_bonuses(len(people))
    await insert_bonuses_and_log_or_refuse(
        connection,
        campaign,
        account,
        people,
        amounts=[amount] * len(people),
        reasons=[reason] * len(people),
        key=key,
        now=now,
    )
    return len(people)


def hash_content(content: Sequence[object]) -> str:
    """Return a hash of what a request says, so that a repeated request can be told from another one with its key."""
    return hashlib.sha256(repr([*content]).encode()).hexdigest()


async def is_request_stored_or_refuse_other_content(connection: AsyncConnection, campaign: Campaign, key: str) -> bool:
    """Return whether this request was stored before. Raises `Conflict` (`request_key_used`)."""
    parameters = {"campaign": campaign.id, "key": key[: -HASH_CHARACTERS - 1]}
    stored = (await connection.execute(FIND_REQUEST, parameters)).scalar_one_or_none()
    if stored not in (None, key):
        raise Conflict(
            "Other bonuses were added with this key or form before. Nothing was stored. Use a new key, or load the "
            "page again and enter only the new bonuses.",
            code="request_key_used",
        )
    return stored is not None


async def insert_bonuses_and_log_or_refuse(
    connection: AsyncConnection,
    campaign: Campaign,
    account: Row[Any],
    people: Sequence[Row[Any]],
    *,
    amounts: Sequence[int],
    reasons: Sequence[str],
    key: str,
    now: datetime,
) -> None:
    """Store bonuses for the submissions of people, and log them. Raises `Conflict` (`over_budget`)."""
    parameters = {
        "campaign": campaign.id,
        "request": key,
        "annotators": [person.annotator_id for person in people],
        "submissions": [person.external_id for person in people],
        "studies": [study_id_of_bonus(account, person.arrival) for person in people],
        "amounts": [*amounts],
        "reasons": [*reasons],
        "total": sum(amounts),
        "by": CURRENT_ACTOR.get().name,
        "now": now,
    }
    if not (await connection.execute(INSERT_PAYMENTS_WITHIN_BUDGET, parameters)).all():
        raise over_budget_error(
            account, sum(amounts), (await load_ledger_totals(connection, campaign.id, account)).left
        )
    await log_change(
        connection,
        "payments.added",
        campaign,
        about=pluralize(len(people), "bonus") if len(people) == 1 else f"{len(people):,} bonuses",
        new_values={"amount": money_text(sum(amounts), account.currency)},
    )


def over_budget_error(account: Row[Any], amount: int, left: int) -> Conflict:
    return Conflict(
        f"{money_text(amount, account.currency)} is more than what is left of the budget: "
        f"{money_text(left, account.currency)} of {money_text(account.budget, account.currency)}. Nothing was stored. "
        "Raise the budget, or pay less.",
        code="over_budget",
        left=left,
        budget=account.budget,
    )


async def load_ledger_totals(connection: AsyncConnection, campaign_id: int, account: Row[Any]) -> LedgerTotals:
    rows = (await connection.execute(LOAD_TOTALS, {"campaign": campaign_id})).all()
    return LedgerTotals(
        bonuses={row.state: int(row.amount) for row in rows if row.kind == "bonus"},
        rewards={row.state: int(row.amount) for row in rows if row.kind == "reward"},
        bonus_counts={row.state: int(row.number) for row in rows if row.kind == "bonus"},
        budget=account.budget,
        budget_covers_rewards=account.budget_covers_rewards,
    )


async def list_payments(
    connection: AsyncConnection, campaign_id: int, limit: int | None = PAYMENTS_SHOWN
) -> Sequence[Row[Any]]:
    """Return payments with the names of annotators: unclear ones first. None: all of them."""
    return (await connection.execute(LIST_PAYMENTS, {"campaign": campaign_id, "limit": limit})).all()


async def store_decision_on_payment_or_refuse(
    connection: AsyncConnection, campaign: Campaign, payment_id: int, decision: str, *, now: datetime
) -> None:
    """Store what a person decided: an unclear payment was made (`sent`), is sent once more (`again`), or is dropped
    (`cancel`), as a prepared or failed one can be.

    Raises:
        NotFound: `payment_not_found`.
        Conflict: `payment_decided`, `payment_is_reward`, `too_early`, `over_budget`, `recipient_erased`.
        Invalid: `invalid`.

    """
    await connection.execute(LOCK_ACCOUNT, {"campaign": campaign.id})
    key = {"campaign": campaign.id, "id": payment_id}
    payment = (await connection.execute(LOAD_PAYMENT, key)).one_or_none()
    if payment is None:
        raise NotFound(f"“{campaign.name}” has no payment {payment_id}.", code="payment_not_found")
    account = await load_account_or_refuse(connection, campaign)
    refuse_decision_unless_possible(payment, decision, is_connected=has_token(account), now=now)
    if decision == "again" and payment.state == "failed":
        fits = await connection.execute(FITS_INTO_BUDGET, {"campaign": campaign.id, "amount": payment.amount})
        if not fits.scalar_one():
            totals = await load_ledger_totals(connection, campaign.id, account)
            raise over_budget_error(account, payment.amount, totals.left)
    state = {"sent": "sent", "again": "prepared", "cancel": "cancelled"}[decision]
    parameters = {
        **key,
        "state": state,
        "settled_at": None if state == "prepared" else now,
        "by": CURRENT_ACTOR.get().name,
    }
    await connection.execute(SETTLE_PAYMENT_BY_PERSON, parameters)
    if decision == "again":
        await connection.execute(MAKE_ACCOUNT_DUE, {"campaign": campaign.id, "now": now})
    await log_change(
        connection,
        "payments.decided",
        campaign,
        about=str(payment_id),
        old_values={"state": payment.state},
        new_values={"state": state},
    )


async def retry_failed_payments_and_count_them(
    connection: AsyncConnection, campaign: Campaign, *, now: datetime
) -> int:
    """Prepare all failed payments once more, but those of people whose ids were erased, and return their number.

    Raises:
        Conflict: `no_budget`, `over_budget`, `nothing_to_pay`.

    """
    account = await load_account_or_refuse(connection, campaign)
    await connection.execute(LOCK_ACCOUNT, {"campaign": campaign.id})
    by = CURRENT_ACTOR.get().name
    rows = (await connection.execute(RETRY_FAILED_PAYMENTS, {"campaign": campaign.id, "by": by})).all()
    if not rows:
        raise Conflict("There is no failed payment to send. Nothing was changed.", code="nothing_to_pay")
    totals = await load_ledger_totals(connection, campaign.id, account)
    if totals.amount_counted_against_budget > account.budget:
        amount = sum(row.amount for row in rows)
        left = account.budget - (totals.amount_counted_against_budget - amount)
        raise over_budget_error(account, amount, left)  # which ends the transaction
    await connection.execute(MAKE_ACCOUNT_DUE, {"campaign": campaign.id, "now": now})
    await log_change(connection, "payments.retried", campaign, about=str(len(rows)))
    return len(rows)


STATES_BY_DECISION = {"sent": ("unknown",), "again": ("unknown", "failed"), "cancel": ("prepared", "failed", "unknown")}


def refuse_decision_unless_possible(payment: Row[Any], decision: str, *, is_connected: bool, now: datetime) -> None:
    """Raise a refusal if the decision is not possible, or not yet."""
    if decision not in STATES_BY_DECISION:
        raise Invalid(f"Choose sent, again or cancel, not “{shorten_echo(decision)}”.", code="invalid")
    if payment.kind == "reward" and (decision == "again" or payment.state != "unknown"):
        raise Conflict(
            f"Payment {payment.id} is the reward of a submission. Approve or reject the submission instead. Nothing "
            "was changed.",
            code="payment_is_reward",
        )
    if payment.state not in STATES_BY_DECISION[decision]:
        raise Conflict(
            f"Payment {payment.id} is {payment.state} now, so this is not possible. Nothing was changed.",
            code="payment_decided",
        )
    if decision == "again" and payment.submission.startswith("erased:"):
        raise Conflict(
            f"The ids of the person of payment {payment.id} were erased, so it cannot be sent. Nothing was changed.",
            code="recipient_erased",
        )
    if payment.state != "unknown":
        return
    if not is_time_to_decide(payment, is_connected=is_connected, now=now):
        raise Conflict(
            "Easel is still asking the platform what became of this payment. You can decide 30 minutes after the "
            "call if the platform has answered again, and otherwise after 24 hours. Nothing was changed.",
            code="too_early",
        )
    if decision == "again" and not can_be_sent_again(payment):
        raise Conflict(
            "Easel could not see which bonuses the platform shows for this payment, so it does not send it again. "
            "Compare on the platform’s own page: then say that it was paid, or cancel it and add a new bonus. Nothing "
            "was changed.",
            code="too_early",
        )


def is_time_to_decide(payment: Row[Any], *, is_connected: bool, now: datetime) -> bool:
    """Return whether a person may decide about an unclear payment.

    A list that is paid by hand can be decided about at once. Otherwise the service must have had 30 minutes, and must
    have shown the submission after them, if there is a token to ask it with, or not have shown it for 24 hours.
    """
    if payment.bulk_id == MADE_BY_HAND:
        return True
    can_be_asked = is_connected and not payment.submission.startswith("erased:")
    time = now - payment.sending_at
    return bool(
        time >= TIME_UNTIL_DECISION_WITHOUT_LOOK
        or (time >= TIME_UNTIL_DECISION and (not can_be_asked or can_be_sent_again(payment)))
    )


def can_be_sent_again(payment: Row[Any]) -> bool:
    """Return whether an unclear payment may be one that was not made: a person paid by hand, or the service showed the
    submission 30 minutes after the call or later. Absence of evidence is none.
    """
    if payment.submission.startswith("erased:"):
        return False
    return payment.bulk_id == MADE_BY_HAND or (
        payment.looked_at is not None and payment.looked_at >= payment.sending_at + TIME_UNTIL_DECISION
    )
