"""Comments and flags of annotators, for researchers."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from app.auth.guards import researcher
from app.database.campaign import campaign_of_page
from app.record import remarks
from app.record.remarks import RemarkKind, WantedRemarks
from app.web import Transaction, page

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)


async def wanted(
    *,
    kind: Annotated[RemarkKind, Query(description="Empty: both.")] = "",
    item: Annotated[str, Query(max_length=1000, description="Of this item, by your id.")] = "",
    annotator: Annotated[str, Query(max_length=40, description="Of this one, such as A7.")] = "",
    words: Annotated[str, Query(max_length=200, description="Somewhere in what was said, or in the item.")] = "",
) -> WantedRemarks:
    """What a form or a program asks for."""
    return WantedRemarks(kind, item.strip(), annotator.strip(), words.strip())


Asked = Annotated[WantedRemarks, Depends(wanted)]
Number = Annotated[int, Query(alias="page", ge=1, le=1_000_000)]


@router.get("/remarks")
async def remarks_page(
    request: Request, connection: Transaction, slug: str, asked: Asked, number: Number = 1
) -> HTMLResponse:
    campaign = await campaign_of_page(connection, slug)
    kept = [(name, value) for name, value in vars(asked).items() if value]
    context: dict[str, Any] = {
        "campaign": campaign,
        "asked": asked,
        "kinds": remarks.KINDS,
        "found": await remarks.page_of(connection, campaign.id, asked, number),
        "per_page": remarks.LINES_PER_PAGE,
        "flagged": [] if kept else await remarks.flagged(connection, campaign.id),
        "kept": kept,
        "query": urlencode(kept),
        "urlencode": urlencode,
    }
    return page(request, "admin/remarks.html", context)
