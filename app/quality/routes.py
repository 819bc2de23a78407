"""Who can be relied on: what rules found, the rules themselves, and gold and attention items."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from app.auth.guards import researcher
from app.database.campaign import campaign_of_page
from app.quality import shown
from app.quality.reach import reach_of_rules, too_few_to_compare
from app.quality.settings import chosen_in, chosen_of
from app.web import Transaction, page

router = APIRouter(prefix="/admin/campaigns/{slug}", dependencies=[Depends(researcher)], include_in_schema=False)


@router.get("/checks")
async def checks_page(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    campaign = await campaign_of_page(connection, slug)
    silent = campaign.status == "draft" or not chosen_of(campaign)
    context = {
        "campaign": campaign,
        "findings": await shown.findings(connection, campaign.id),
        "most": shown.MOST_SHOWN,
        "title_of": shown.title_of,
        "checks": await shown.checks(connection, campaign),
        "rules": chosen_in(campaign.quality_preset, campaign.quality_rules),
        "reach": await reach_of_rules(connection, campaign.id, campaign, items=campaign.item_count),
        "too_few": "" if silent else await too_few_to_compare(connection, campaign.id),
    }
    return page(request, "admin/checks.html", context)
