"""Form of rules as sentences on the page Quality."""

from fastapi import Response
from fastapi.responses import RedirectResponse

from app.accounts.guards import researcher_router
from app.campaigns import settings_edits
from app.campaigns.settings import CampaignSettings
from app.http.dependencies import FormFields, Transaction
from app.quality.rule_sentences import custom_rule_lines_of_form_or_refuse

router = researcher_router("/admin/campaigns/{slug}")


@router.post("/checks/rules")
async def submit_custom_quality_rules(values: FormFields, connection: Transaction, slug: str) -> Response:
    """Store actions and thresholds of rules as the campaign's custom rules."""

    def with_rules_of_form(settings: CampaignSettings) -> CampaignSettings:
        lines = custom_rule_lines_of_form_or_refuse(settings.quality_preset, values)
        return settings.model_copy(update={"quality_rules": lines})

    await settings_edits.store_changed_settings_or_refuse(connection, slug, with_rules_of_form)
    return RedirectResponse(f"/admin/campaigns/{slug}/checks?done=rules", status_code=303)
