"""Researchers' pages of payments: what is owed, sent and unclear, and how the campaign pays."""

import secrets
from typing import Any

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts.guards import researcher_router
from app.annotation.platforms.registry import PLATFORMS
from app.annotation.platforms.service import Bonus
from app.database.audit_log import log_change
from app.errors import Refusal
from app.http.dependencies import (
    Database,
    FormFields,
    Now,
    RowId,
    Transaction,
    content_disposition_headers,
    render_page,
)
from app.payments import by_hand, ledger
from app.payments.bonus_list import BonusLine, parse_bonus_list_or_refuse, valid_bonus_line_or_refuse
from app.payments.connections import (
    ConnectionSettings,
    check_and_store_payment_settings_or_refuse,
    forget_token_and_submissions_of_strangers,
    has_token,
    load_account_or_none,
    load_account_or_refuse,
    platform_service_of_account,
    service_platform_name,
)
from app.payments.dependencies import REFUSE_ON_CLUSTER, Connector
from app.payments.money import hundredths_text, parse_amount_or_refuse
from app.payments.restored_payments import RESTORED_PROBLEM
from app.payments.rewards import count_rewards_outside_ledger
from app.payments.send_request import (
    ShownPayments,
    load_prepared_bonuses,
    request_sending_of_prepared_payments_or_refuse,
)
from app.payments.sending import TIME_FOR_CALL_THAT_PAYS, resolve_interrupted_payments
from app.record.campaign import load_campaign_by_slug_or_refuse, load_campaign_for_page_or_refuse
from app.text.table_formats import format_spreadsheet_rows

router = researcher_router("/admin/campaigns/{slug}", REFUSE_ON_CLUSTER)

CSV_COLUMNS = (
    *("id", "annotator", "kind", "amount", "currency", "state", "reason", "submission", "study", "created_at"),
    *("created_by", "sending_at", "settled_at", "call", "decided_by", "problem"),
)


@router.get("/payments")
async def show_payments(request: Request, connection: Transaction, slug: str, now: Now) -> HTMLResponse:
    return await render_ledger_page(request, connection, slug, now=now)


async def render_ledger_page(
    request: Request,
    connection: Transaction,
    slug: str,
    *,
    now: Any,
    refusal: Refusal | None = None,
    entered: dict[str, str] | None = None,
) -> HTMLResponse:
    """Show the ledger, with a refused form as it was entered, but for secrets."""
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    account = await load_account_or_none(connection, campaign.id)
    payments = await ledger.list_payments(connection, campaign.id)
    is_connected = account is not None and has_token(account)
    context = {
        "campaign": campaign,
        "account": account,
        "platform": PLATFORMS[service_platform_name()],
        "is_connected": is_connected,
        "totals": account and await ledger.load_ledger_totals(connection, campaign.id, account),
        "payments": payments,
        "restored_count": len([one for one in payments if one.state == "prepared" and one.problem == RESTORED_PROBLEM]),
        "rewards_outside": await count_rewards_outside_ledger(connection, campaign.id),
        "unclear": [payment for payment in payments if payment.state == "unknown"],
        "decidable": {
            payment.id
            for payment in payments
            if payment.state == "unknown" and ledger.is_time_to_decide(payment, is_connected=is_connected, now=now)
        },
        "repeatable": {payment.id for payment in payments if ledger.can_be_sent_again(payment)},
        "by_hand": ledger.MADE_BY_HAND,
        "prepared": await load_prepared_bonuses(connection, campaign.id),
        "studies_by_hand": await by_hand.list_studies_to_pay_by_hand(connection, campaign.id),
        "downloaded_lists": await by_hand.list_downloaded_payment_lists(connection, campaign.id),
        "decide_after": ledger.TIME_UNTIL_DECISION,
        "rows_shown": ledger.PAYMENTS_SHOWN,
        "hundredths_text": hundredths_text,
        "request_key": secrets.token_hex(16),
        "refusal": refusal,
        "entered": entered or {},
    }
    return render_page(request, "admin/payments.html", context, refusal=refusal, status=200)


@router.post("/payments/connection")
async def submit_payment_platform_settings(
    request: Request, form: FormFields, database: Database, connector: Connector, slug: str, *, now: Now
) -> Response:
    """Store the budget and, if they are entered, the token and its workspace."""
    try:
        chosen = ConnectionSettings(
            token=form.get("token", "").strip(),
            token_variable=form.get("token_variable", "").strip(),
            workspace=form.get("workspace", "").strip(),
            budget=parse_amount_or_refuse(form.get("budget", ""), where="The budget"),
        )
        async with database.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        await check_and_store_payment_settings_or_refuse(database, connector, campaign, chosen, now=now)
    except Refusal as refusal:
        entered = {name: value for name, value in form.items() if name not in ("token", "csrf")}
        async with database.begin() as connection:
            return await render_ledger_page(request, connection, slug, now=now, refusal=refusal, entered=entered)
    subpage = "study" if form.get("from") == "study" else "payments"
    return RedirectResponse(f"/admin/campaigns/{slug}/{subpage}?done=payments-connected", status_code=303)


@router.post("/payments/disconnect")
async def submit_payment_platform_disconnection(database: Database, slug: str, now: Now) -> Response:
    """Forget the token, and settle what is being sent, since no later turn does.

    The outcome of a call that is under way is stored all the same.
    """
    async with database.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        await forget_token_and_submissions_of_strangers(connection, campaign, now=now)
    await resolve_interrupted_payments(database, campaign.id, now=now + TIME_FOR_CALL_THAT_PAYS)
    return RedirectResponse(f"/admin/campaigns/{slug}/payments", status_code=303)


@router.post("/payments/bonuses")
async def submit_bonus_list(request: Request, form: FormFields, database: Database, slug: str, now: Now) -> Response:
    """Prepare the bonuses of a list."""
    try:
        lines = parse_bonus_list_or_refuse(form.get("bonuses", ""))
        async with database.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
            key = f"{form.get('request', '') or secrets.token_hex(16)} {ledger.hash_content(lines)}"
            added = await ledger.add_prepared_bonuses_and_count_new(
                connection, campaign, lines, request_key=key, now=now
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_ledger_page(request, connection, slug, now=now, refusal=refusal, entered=form)
    return redirect_after_adding_bonuses(slug, added)


def redirect_after_adding_bonuses(slug: str, added_count: int) -> Response:
    notice = "bonuses-added" if added_count else "bonuses-added-before"
    return RedirectResponse(f"/admin/campaigns/{slug}/payments?done={notice}", status_code=303)


@router.post("/payments/everyone")
async def submit_bonus_for_everyone_payable(
    request: Request, form: FormFields, database: Database, slug: str, now: Now
) -> Response:
    """Prepare the same bonus for everyone who finished and is neither held nor excluded."""
    try:
        amount = parse_amount_or_refuse(form.get("amount", ""))
        reason = valid_bonus_line_or_refuse(BonusLine("everyone", amount, form.get("reason", "").strip()), 1).reason
        key = f"{form.get('request', '') or secrets.token_hex(16)} {ledger.hash_content([amount, reason])}"
        async with database.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
            added = await ledger.add_bonus_for_all_finished_and_count_new(
                connection, campaign, amount, reason, request_key=key, now=now
            )
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_ledger_page(request, connection, slug, now=now, refusal=refusal, entered=form)
    return redirect_after_adding_bonuses(slug, added)


@router.post("/payments/send")
async def submit_sending_of_payments(
    request: Request, form: FormFields, database: Database, slug: str, now: Now
) -> Response:
    """Let the background work send the prepared payments that the page showed."""
    try:
        shown = ShownPayments(number_in_form_or_zero(form, "through"), number_in_form_or_zero(form, "total"))
        async with database.begin() as connection:
            campaign = await load_campaign_by_slug_or_refuse(connection, slug)
            await request_sending_of_prepared_payments_or_refuse(connection, campaign, shown_payments=shown, now=now)
    except Refusal as refusal:
        async with database.begin() as connection:
            return await render_ledger_page(request, connection, slug, now=now, refusal=refusal)
    return RedirectResponse(f"/admin/campaigns/{slug}/payments?done=payments-sending", status_code=303)


def number_in_form_or_zero(form: FormFields, name: str) -> int:
    """Return a number that the page put into its form; 0 if it is none."""
    entered = form.get(name, "")
    return int(entered) if entered.isascii() and entered.isdigit() and len(entered) < 19 else 0


@router.post("/payments/retry")
async def submit_retry_of_failed_payments(connection: Transaction, slug: str, now: Now) -> Response:
    """Prepare all failed payments once more."""
    await ledger.retry_failed_payments_and_count_them(
        connection, await load_campaign_by_slug_or_refuse(connection, slug), now=now
    )
    return RedirectResponse(f"/admin/campaigns/{slug}/payments", status_code=303)


@router.post("/payments/by-hand")
async def download_payments_by_hand_csv(connection: Transaction, form: FormFields, slug: str, now: Now) -> Response:
    """Download the prepared payments of a study as the platform's own page takes them, or an earlier list again."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    if batch := form.get("batch"):
        rows = await by_hand.load_payments_of_downloaded_list_or_refuse(connection, campaign, batch)
    else:
        rows = await by_hand.claim_payments_to_make_by_hand(connection, campaign, form.get("study", ""), now=now)
    account = await load_account_or_refuse(connection, campaign)
    text = platform_service_of_account(account).format_bonus_list([Bonus(row.submission, row.amount) for row in rows])
    headers = content_disposition_headers(slug, "bonuses", "csv", now=now) | {"Cache-Control": "no-store"}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


@router.post("/payments/{payment}/decision")
async def submit_payment_decision(
    connection: Transaction, form: FormFields, slug: str, payment: RowId, now: Now
) -> Response:
    """Store what a person decided about a payment."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    await ledger.store_decision_on_payment_or_refuse(connection, campaign, payment, form.get("decision", ""), now=now)
    return RedirectResponse(f"/admin/campaigns/{slug}/payments", status_code=303)


@router.get("/payments.csv")
async def download_payments_csv(connection: Transaction, slug: str, now: Now) -> Response:
    """Download all payments, for the books."""
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    rows = [
        (
            *(payment.id, payment.name, payment.kind, hundredths_text(payment.amount), payment.currency, payment.state),
            payment.reason,
            *(payment.submission, payment.study, payment.created_at, payment.created_by, payment.sending_at),
            *(payment.settled_at, payment.bulk_id, payment.decided_by, payment.problem),
        )
        for payment in await ledger.list_payments(connection, campaign.id, limit=None)
    ]
    await log_change(connection, "people.downloaded", campaign, about="payments.csv")
    text = format_spreadsheet_rows(CSV_COLUMNS, [CSV_COLUMNS, *rows])
    headers = content_disposition_headers(slug, "payments", "csv", now=now) | {"Cache-Control": "no-store"}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)
