"""Rules for annotators that fit the work of one person, stored at one press."""

from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.item_list import count_checks_by_kind
from app.campaigns.lifecycle import lock_and_load_campaign_or_refuse
from app.campaigns.settings_edits import store_changed_settings_or_refuse
from app.quality.check_remedies import unfit_check_rules
from app.quality.fitting_rules import propose_fitting_rules_or_none
from app.record.campaign import load_campaign_for_page_or_refuse


async def turn_off_or_relax_rules_that_can_flag_no_one(connection: AsyncConnection, slug: str) -> None:
    """Turn off the rules that can flag no one, and raise false alarms if no rule can otherwise; nothing if all can.

    The settings are read under the lock of other changes, so what someone else stores at the same time is kept.
    """
    await lock_and_load_campaign_or_refuse(connection, slug)
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    check_counts = await count_checks_by_kind(connection, campaign.id)
    proposal = propose_fitting_rules_or_none(campaign, campaign.item_count, check_counts)
    if proposal:
        values = {"quality_rules": [*proposal.quality_rules], "false_alarms": proposal.false_alarms}
        await store_changed_settings_or_refuse(connection, slug, lambda before: before.model_copy(update=values))


async def store_check_remedy_and_return_notice(
    connection: AsyncConnection, slug: str, kind: str, remedy_name: str, *, otherwise: str = ""
) -> str:
    """Store the settings of a remedy for the rule about a kind of checks; nothing if it is not needed any more.

    Args:
        connection: A transaction.
        slug: Slug of the campaign.
        kind: The kind of checks.
        remedy_name: Name of the `CheckRemedy`.
        otherwise: The notice to return if nothing was stored.

    Returns:
        The name of the notice that says what was stored, for the parameter `done` of a page.

    """
    await lock_and_load_campaign_or_refuse(connection, slug)
    campaign = await load_campaign_for_page_or_refuse(connection, slug)
    check_counts = await count_checks_by_kind(connection, campaign.id)
    remedies = {
        f"{unfit.kind} {remedy.name}": dict(remedy.settings)
        for unfit in unfit_check_rules(campaign, campaign.item_count, check_counts)
        for remedy in unfit.remedies
    }
    values = remedies.get(f"{kind} {remedy_name}")
    if not values:
        return otherwise
    await store_changed_settings_or_refuse(connection, slug, lambda before: before.model_copy(update=values))
    return f"remedy-{remedy_name}"
