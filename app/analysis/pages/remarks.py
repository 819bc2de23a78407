"""Page of comments and flags of annotators, for researchers."""

from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import HTMLResponse

from app.accounts.guards import require_researcher
from app.database.campaign import load_campaign_for_page
from app.http.dependencies import Transaction, render_page
from app.record import remarks
from app.record.remarks import RemarkFilter, RemarkKind

router = APIRouter(
    prefix="/admin/campaigns/{slug}", dependencies=[Depends(require_researcher)], include_in_schema=False
)


async def parse_remark_filter(
    *,
    kind: Annotated[RemarkKind, Query(description="Empty: both.")] = "",
    item: Annotated[str, Query(max_length=1000, description="Only this item, by your id.")] = "",
    annotator: Annotated[str, Query(max_length=40, description="Only this annotator, such as A7.")] = "",
    words: Annotated[str, Query(max_length=200, description="Words in the remark or in the item.")] = "",
) -> RemarkFilter:
    """Return the filter that a form or a program asks for."""
    return RemarkFilter(kind, item.strip(), annotator.strip(), words.strip())


RemarkFilterQuery = Annotated[RemarkFilter, Depends(parse_remark_filter)]
PageNumberQuery = Annotated[int, Query(alias="page", ge=1, le=1_000_000)]


@router.get("/remarks")
async def show_remarks(
    request: Request,
    connection: Transaction,
    slug: str,
    remark_filter: RemarkFilterQuery,
    page_number: PageNumberQuery = 1,
) -> HTMLResponse:
    campaign = await load_campaign_for_page(connection, slug)
    active_filters = [(name, value) for name, value in vars(remark_filter).items() if value]
    context: dict[str, Any] = {
        "campaign": campaign,
        "asked": remark_filter,
        "kinds": remarks.REMARK_KIND_TITLES,
        "found": await remarks.load_remarks_page(connection, campaign.id, remark_filter, page_number),
        "per_page": remarks.REMARKS_PER_PAGE,
        "flagged": [] if active_filters else await remarks.load_flagged_items(connection, campaign.id),
        "kept": active_filters,
        "query": urlencode(active_filters),
        "urlencode": urlencode,
    }
    return render_page(request, "admin/remarks.html", context)
