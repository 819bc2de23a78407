"""The ledger: payments as rows, added within the campaign's budget, and decisions of people about them.

Whether a payment fits into the budget is decided by the statement that stores it, while the campaign's account is
locked.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.database.audit_log import CURRENT_ACTOR, log_change
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, NotFound, pluralize, shorten_echo
from app.payments.bonus_list import BonusLine
from app.payments.connections import MAKE_ACCOUNT_DUE, has_token, load_account, service_of_account
from app.payments.money import amount_text

TIME_UNTIL_DECISION = timedelta(minutes=30)  # a payment is made minutes after the call
TIME_UNTIL_DECISION_WITHOUT_LOOK = timedelta(hours=24)  # if the service does not show the submission until then
PAYMENTS_SHOWN = 500
MADE_BY_HAND = "by hand"  # instead of the service's id of a call

DecisionOnPayment = Literal["sent", "again", "cancel"]

# SQL: states in which money is spent or may be.
COUNTS_AGAINST_BUDGET = "state IN ('prepared', 'sending', 'sent', 'unknown')"

# Holds the account until the end of the transaction, so that the next statement sees all payments before it.
LOCK_ACCOUNT = text("SELECT 1 FROM payment_accounts WHERE campaign_id = :campaign FOR NO KEY UPDATE")
COUNT_PAYMENTS_OF_REQUEST = text(
    "SELECT count(*) FROM payments WHERE campaign_id = :campaign AND request_key = :request"
)

# The person's last submission by each name that people use for one: A7, a pseudonym, the platform's ids.
FIND_RECIPIENTS = text("""
    SELECT DISTINCT ON (given.line) given.line, s.annotator_id, s.external_id, s.arrival, a.platform, a.barred
    FROM unnest(CAST(:recipients AS text[])) WITH ORDINALITY AS given (recipient, line)
    JOIN LATERAL (
        SELECT n.id, CAST(NULL AS text) AS external_id FROM named_annotators n
        WHERE n.campaign_id = :campaign AND given.recipient IN (n.name, n.pseudonym)
        UNION ALL
        SELECT a.id, NULL FROM annotators a
        WHERE a.campaign_id = :campaign AND a.platform = :platform AND a.worker_id = given.recipient
        UNION ALL
        SELECT s.annotator_id, s.external_id FROM assignments s
        WHERE s.campaign_id = :campaign AND s.external_id = given.recipient
    ) AS person ON true
    JOIN assignments s ON s.campaign_id = :campaign AND s.annotator_id = person.id
        AND s.external_id = coalesce(person.external_id, s.external_id)
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    ORDER BY given.line, s.completed_at DESC NULLS LAST, s.id DESC
""")

LIST_COMPLETED_PEOPLE = text("""
    SELECT n.name FROM annotators a JOIN named_annotators n ON n.campaign_id = a.campaign_id AND n.id = a.id
    WHERE a.campaign_id = :campaign AND a.platform = :platform AND a.barred IS NULL
    AND EXISTS (SELECT 1 FROM assignments s
                WHERE s.campaign_id = a.campaign_id AND s.annotator_id = a.id AND s.completed_at IS NOT NULL)
    ORDER BY a.id
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
    SELECT state, count(*) AS number, sum(amount) AS amount FROM payments WHERE campaign_id = :campaign GROUP BY state
""")

LIST_PAYMENTS = text("""
    SELECT p.*, n.name FROM payments p
    JOIN named_annotators n ON n.campaign_id = p.campaign_id AND n.id = p.annotator_id
    WHERE p.campaign_id = :campaign
    ORDER BY array_position(ARRAY['unknown', 'sending', 'failed', 'prepared', 'sent', 'cancelled'], p.state), p.id DESC
    LIMIT :limit
""")

TELL_TO_SEND = text("""
    UPDATE payment_accounts SET due_at = :now, send_through = coalesce(
        (SELECT max(id) FROM payments WHERE campaign_id = :campaign AND state = 'prepared'), send_through)
    WHERE campaign_id = :campaign
""")

# Whether the money went is unknown until the researcher has uploaded the list.
TAKE_PREPARED_PAYMENTS_BY_HAND = text("""
    UPDATE payments SET state = 'unknown', bulk_id = :by_hand, batch = :batch, sending_at = :now, problem = ''
    WHERE campaign_id = :campaign AND state = 'prepared' AND NOT starts_with(submission, 'erased:')
    RETURNING id, submission, amount
""")

LOAD_PAYMENT = text("SELECT * FROM payments WHERE campaign_id = :campaign AND id = :id FOR NO KEY UPDATE")
SETTLE_PAYMENT_BY_PERSON = text("""
    UPDATE payments SET state = :state, settled_at = :settled_at, decided_by = :by, problem = '', batch = NULL,
        bulk_id = CASE WHEN CAST(:state AS text) = 'sent' THEN bulk_id END
    WHERE campaign_id = :campaign AND id = :id
""")
FITS_INTO_BUDGET = text(f"""
    SELECT budget >= :amount + (
        SELECT coalesce(sum(amount), 0) FROM payments WHERE campaign_id = :campaign AND {COUNTS_AGAINST_BUDGET})
    FROM payment_accounts WHERE campaign_id = :campaign
""")


@dataclass(frozen=True)
class LedgerTotals:
    """Money in hundredths, and numbers of payments."""

    amounts: dict[str, int]
    counts: dict[str, int]
    budget: int

    @property
    def committed(self) -> int:
        return sum(self.amounts.get(state, 0) for state in ("prepared", "sending", "sent", "unknown"))

    @property
    def left(self) -> int:
        return max(0, self.budget - self.committed)


async def add_bonuses(
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
        Conflict: `no_budget`, `over_budget`.
        Invalid: `recipient_unknown`, `recipient_erased`, `recipient_elsewhere`.

    """
    account = await load_account(connection, campaign)
    await connection.execute(LOCK_ACCOUNT, {"campaign": campaign.id})
    key = {"campaign": campaign.id, "request": request_key}
    if (await connection.execute(COUNT_PAYMENTS_OF_REQUEST, key)).scalar_one():
        return 0
    people = await find_recipients_or_refuse(connection, campaign, account, lines)
    total = sum(line.amount for line in lines)
    study_of_arrival = service_of_account(account).study_of_arrival
    parameters = {
        **key,
        "annotators": [person.annotator_id for person in people],
        "submissions": [person.external_id for person in people],
        "studies": [study_of_arrival(person.arrival) or account.study for person in people],
        "amounts": [line.amount for line in lines],
        "reasons": [line.reason for line in lines],
        "total": total,
        "by": CURRENT_ACTOR.get().name,
        "now": now,
    }
    if not (await connection.execute(INSERT_PAYMENTS_WITHIN_BUDGET, parameters)).all():
        raise over_budget_error(account, total, await load_totals(connection, campaign.id, account.budget))
    await log_change(
        connection,
        "payments.added",
        campaign,
        about=pluralize(len(lines), "bonus") if len(lines) == 1 else f"{len(lines):,} bonuses",
        after={"amount": f"{amount_text(total)} {account.currency}"},
    )
    return len(lines)


def over_budget_error(account: Row[Any], amount: int, totals: LedgerTotals) -> Conflict:
    return Conflict(
        f"{amount_text(amount)} {account.currency} is more than what is left of the budget: {amount_text(totals.left)} "
        f"of {amount_text(account.budget)}. Nothing was stored. Raise the budget, or pay less.",
        code="over_budget",
        left=totals.left,
        budget=account.budget,
    )


async def find_recipients_or_refuse(
    connection: AsyncConnection, campaign: Campaign, account: Row[Any], lines: Sequence[BonusLine]
) -> list[Row[Any]]:
    """Return the submission of each line's person. Raises `Invalid` (`recipient_unknown`, `recipient_erased`,
    `recipient_elsewhere`).
    """
    names = [line.recipient for line in lines]
    parameters = {"campaign": campaign.id, "platform": account.platform, "recipients": names}
    found = {row.line: row for row in await connection.execute(FIND_RECIPIENTS, parameters)}
    for number, name in enumerate(names, 1):
        row = found.get(number)
        if row is None:
            raise Invalid(
                f"Bonus {number} is for “{shorten_echo(name)}”, but no annotator of this campaign has this name or id. "
                "Nothing was stored.",
                code="recipient_unknown",
                bonus=number,
            )
        if row.platform != account.platform:
            raise Invalid(
                f"Bonus {number} is for “{shorten_echo(name)}”, who came from elsewhere and cannot be paid there. "
                "Nothing was stored.",
                code="recipient_elsewhere",
                bonus=number,
            )
        if row.barred == "erased" and row.external_id.startswith("erased:"):
            raise Invalid(
                f"Bonus {number} is for “{shorten_echo(name)}”, whose ids were erased. Nothing was stored.",
                code="recipient_erased",
                bonus=number,
            )
    return [found[number] for number in range(1, len(names) + 1)]


async def list_completed_people(connection: AsyncConnection, campaign: Campaign) -> list[str]:
    """Return the names of annotators from the platform who finished and are neither held nor excluded."""
    account = await load_account(connection, campaign)
    parameters = {"campaign": campaign.id, "platform": account.platform}
    return [*(await connection.execute(LIST_COMPLETED_PEOPLE, parameters)).scalars()]


async def load_totals(connection: AsyncConnection, campaign_id: int, budget: int) -> LedgerTotals:
    rows = (await connection.execute(LOAD_TOTALS, {"campaign": campaign_id})).all()
    return LedgerTotals(
        {row.state: int(row.amount) for row in rows}, {row.state: int(row.number) for row in rows}, budget
    )


async def list_payments(
    connection: AsyncConnection, campaign_id: int, limit: int | None = PAYMENTS_SHOWN
) -> Sequence[Row[Any]]:
    """Return payments with the names of annotators: unclear ones first. None: all of them."""
    return (await connection.execute(LIST_PAYMENTS, {"campaign": campaign_id, "limit": limit})).all()


async def tell_to_send(connection: AsyncConnection, campaign: Campaign, *, now: datetime) -> None:
    """Let the background work send all payments that are prepared now. Raises `Conflict` (`no_token`)."""
    account = await load_account(connection, campaign)
    if not has_token(account):
        raise Conflict(
            "Easel has no token to send payments with. Enter one, or pay by hand. Nothing was sent.", code="no_token"
        )
    totals = await load_totals(connection, campaign.id, account.budget)
    await connection.execute(TELL_TO_SEND, {"campaign": campaign.id, "now": now})
    await log_change(
        connection,
        "payments.send",
        campaign,
        about=str(totals.counts.get("prepared", 0)),
        after={"amount": f"{amount_text(totals.amounts.get('prepared', 0))} {account.currency}"},
    )


async def take_payments_by_hand(
    connection: AsyncConnection, campaign: Campaign, *, now: datetime
) -> Sequence[Row[Any]]:
    """Return all prepared payments for the platform's own page. From now on Easel does not send them.

    Raises:
        Conflict: `no_budget`, `nothing_to_pay`.

    """
    await load_account(connection, campaign)
    parameters = {"campaign": campaign.id, "by_hand": MADE_BY_HAND, "batch": secrets.token_hex(8), "now": now}
    rows = sorted((await connection.execute(TAKE_PREPARED_PAYMENTS_BY_HAND, parameters)).all())
    if not rows:
        raise Conflict("No payment is prepared. Nothing was changed.", code="nothing_to_pay")
    await log_change(connection, "payments.by_hand", campaign, about=str(len(rows)))
    return rows


async def decide_on_payment(
    connection: AsyncConnection, campaign: Campaign, payment_id: int, decision: str, *, now: datetime
) -> None:
    """Store what a person decided: an unclear payment was made (`sent`), is sent once more (`again`), or is dropped
    (`cancel`), as a prepared or failed one can be.

    Raises:
        NotFound: `payment_not_found`.
        Conflict: `payment_decided`, `too_early`, `over_budget`.
        Invalid: `invalid`.

    """
    await connection.execute(LOCK_ACCOUNT, {"campaign": campaign.id})
    key = {"campaign": campaign.id, "id": payment_id}
    payment = (await connection.execute(LOAD_PAYMENT, key)).one_or_none()
    if payment is None:
        raise NotFound(f"“{campaign.name}” has no payment {payment_id}.", code="payment_not_found")
    account = await load_account(connection, campaign)
    refuse_decision_unless_possible(payment, decision, is_connected=has_token(account), now=now)
    if decision == "again" and payment.state == "failed":
        fits = await connection.execute(FITS_INTO_BUDGET, {"campaign": campaign.id, "amount": payment.amount})
        if not fits.scalar_one():
            totals = await load_totals(connection, campaign.id, account.budget)
            raise over_budget_error(account, payment.amount, totals)
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
        before={"state": payment.state},
        after={"state": state},
    )


STATES_BY_DECISION = {"sent": ("unknown",), "again": ("unknown", "failed"), "cancel": ("prepared", "failed", "unknown")}


def refuse_decision_unless_possible(payment: Row[Any], decision: str, *, is_connected: bool, now: datetime) -> None:
    """Raise a refusal if the decision is not possible, or not yet."""
    if decision not in STATES_BY_DECISION:
        raise Invalid(f"“{shorten_echo(decision)}” is no decision: sent, again or cancel.", code="invalid")
    if payment.state not in STATES_BY_DECISION[decision]:
        raise Conflict(
            f"Payment {payment.id} is {payment.state} now, so this is not possible. Nothing was changed.",
            code="payment_decided",
        )
    if payment.state != "unknown":
        return
    if not is_time_to_decide(payment, is_connected=is_connected, now=now):
        raise Conflict(
            "Easel still asks the platform what became of this payment. Decide 30 minutes after the call, when it has "
            "been answered once more, or 24 hours after it. Nothing was changed.",
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
