"""Alerts of a campaign for researchers: all of them, how they were sent, and that somebody has seen one."""

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from app.alerts import shown
from app.alerts.outbox import TRIES, Outbox
from app.alerts.settings import undeliverable
from app.alerts.webhook import key_of
from app.auth.guards import researcher
from app.database.alerts import said
from app.database.audit_log import ACTING
from app.database.campaign import campaign_by_slug, campaign_of_page
from app.web import AppSettings, Now, RowId, Transaction, page

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)


@router.get("/alerts")
async def alerts_page(request: Request, connection: Transaction, settings: AppSettings, slug: str) -> HTMLResponse:
    campaign = await campaign_of_page(connection, slug)
    outbox: Outbox = request.app.state.outbox
    context = {
        "campaign": campaign,
        "alerts": await shown.listed(connection, campaign.id),
        "seen": await shown.listed(connection, campaign.id, seen=True),
        "messages": await shown.on_their_way(connection, campaign.id),
        "alert_said": said,
        "tries": TRIES,
        "undeliverable": undeliverable(campaign.alert_emails),
        "mails": settings.smtp_url is not None,
        "key": key_of(outbox.secret, campaign.id) if campaign.alert_webhook else None,
    }
    return page(request, "admin/alerts.html", context)


@router.post("/alerts/{alert}/seen")
async def seen(connection: Transaction, slug: str, alert: RowId, now: Now) -> Response:
    await shown.note_seen(connection, await campaign_by_slug(connection, slug), alert, by=ACTING.get().name, now=now)
    return RedirectResponse(f"/admin/campaigns/{slug}#alerts", status_code=303)
