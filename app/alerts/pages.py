"""Researchers' pages about alerts of a campaign: the alerts, their deliveries, and marking one as seen."""

from fastapi import Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.accounts.guards import researcher_router
from app.alerts import listings
from app.alerts.outbox import MAX_TRIES_PER_MESSAGE, Outbox
from app.alerts.settings import undeliverable_addresses
from app.alerts.webhook import signing_key_of_campaign_webhook
from app.database.alerts import alert_sentence
from app.database.audit_log import CURRENT_ACTOR
from app.http.dependencies import AppSettings, Now, RowId, Transaction, render_page
from app.record.campaign import load_campaign_by_slug_or_refuse, load_campaign_for_page_or_refuse

router = researcher_router("/admin/campaigns/{slug}")


@router.get("/alerts")
async def alerts_page(request: Request, connection: Transaction, settings: AppSettings, slug: str) -> HTMLResponse:
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    outbox: Outbox = request.app.state.outbox
    context = {
        "campaign": campaign,
        "alerts": await listings.load_newest_seen_or_unseen_alerts(connection, campaign.id),
        "seen_alerts": await listings.load_newest_seen_or_unseen_alerts(connection, campaign.id, want_seen=True),
        "messages": await listings.load_newest_messages_with_alerts(connection, campaign.id),
        "describe_alert": alert_sentence,
        "max_tries": MAX_TRIES_PER_MESSAGE,
        "undeliverable": undeliverable_addresses(campaign.alert_emails),
        "can_send_mail": settings.smtp_url is not None,
        "key": signing_key_of_campaign_webhook(outbox.secret, campaign.id) if campaign.alert_webhook else None,
    }
    return render_page(request, "admin/alerts.html", context)


@router.post("/alerts/{alert}/seen")
async def submit_alert_seen(connection: Transaction, slug: str, alert: RowId, now: Now) -> Response:
    await listings.mark_alert_seen_or_refuse(
        connection,
        await load_campaign_by_slug_or_refuse(connection, slug),
        alert,
        user_name=CURRENT_ACTOR.get().name,
        now=now,
    )
    return RedirectResponse(f"/admin/campaigns/{slug}#alerts", status_code=303)
