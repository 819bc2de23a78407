"""Page of comments and flags of annotators, for researchers."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from app.accounts.guards import researcher_router
from app.http.dependencies import Transaction, render_page
from app.record import remarks
from app.record.campaign import load_campaign_for_page_or_refuse
from app.record.remarks import RemarksQuery

router = researcher_router("/admin/campaigns/{slug}")


@router.get("/remarks")
async def show_remarks(
    request: Request, connection: Transaction, slug: str, query: Annotated[RemarksQuery, Query()]
) -> HTMLResponse:
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    active_filters = query.query_fields(page=1)
    context: dict[str, Any] = {
        "campaign": campaign,
        "filters": query,
        "kinds": remarks.REMARK_KIND_TITLES,
        "found": await remarks.load_remarks_page(connection, campaign.id, query),
        "flagged": [] if active_filters else await remarks.load_flagged_items(connection, campaign.id),
        "active_filters": active_filters,
        "query": urlencode(active_filters),
        "urlencode": urlencode,
    }
    return render_page(request, "admin/remarks.html", context)
