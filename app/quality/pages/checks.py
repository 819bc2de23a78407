"""Researchers' page about the reliability of annotators: findings, rules, and gold and attention items."""

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse

from app.accounts.guards import require_researcher
from app.http.dependencies import Transaction, render_page
from app.quality import listings
from app.quality.rule_reach import load_rule_reaches, too_few_annotators_notice
from app.quality.settings import active_rules, resolve_rules
from app.record.campaign import load_campaign_for_page

router = APIRouter(
    prefix="/admin/campaigns/{slug}", dependencies=[Depends(require_researcher)], include_in_schema=False
)


@router.get("/checks")
async def checks_page(request: Request, connection: Transaction, slug: str) -> HTMLResponse:
    campaign = await load_campaign_for_page(connection, slug)
    silent = campaign.status == "draft" or not active_rules(campaign)
    context = {
        "campaign": campaign,
        "findings": await listings.list_findings(connection, campaign.id),
        "max_findings": listings.MAX_FINDINGS_SHOWN,
        "rule_title": listings.rule_title,
        "checks": await listings.list_check_lines(connection, campaign),
        "rules": resolve_rules(campaign.quality_preset, campaign.quality_rules),
        "reach_by_rule": await load_rule_reaches(connection, campaign, item_count=campaign.item_count),
        "too_few_annotators": "" if silent else await too_few_annotators_notice(connection, campaign.id),
    }
    return render_page(request, "admin/checks.html", context)
