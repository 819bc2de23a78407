"""Researchers have seen an alert on a campaign's page."""

from fastapi import APIRouter, Depends, Response
from fastapi.responses import RedirectResponse

from app.alerts import shown
from app.auth.guards import researcher
from app.database.audit_log import ACTING
from app.database.campaign import campaign_by_slug
from app.web import Now, Transaction

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)


@router.post("/alerts/{alert}/seen")
async def seen(connection: Transaction, slug: str, alert: int, now: Now) -> Response:
    await shown.note_seen(connection, await campaign_by_slug(connection, slug), alert, by=ACTING.get().name, now=now)
    return RedirectResponse(f"/admin/campaigns/{slug}#alerts", status_code=303)
