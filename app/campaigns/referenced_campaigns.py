"""Check of the campaigns that settings name: only those whose people the acting researcher may see."""

from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts import users
from app.accounts.access import Access, visible_campaigns_sql_condition
from app.accounts.roles import SEE_PEOPLE
from app.campaigns.settings import CampaignSettings
from app.database.audit_log import CURRENT_ACTOR
from app.database.tables import campaigns
from app.errors import Invalid, shorten_echo

SETTINGS_NAMING_CAMPAIGNS = ("exclude_campaigns", "only_campaigns")


async def refuse_campaigns_out_of_reach(
    connection: AsyncConnection, settings: CampaignSettings, former_settings: CampaignSettings | None = None
) -> None:
    """Raise `Invalid` (`other_campaign_unknown`) for a campaign that a setting newly names, unless the acting
    researcher may see its people. Commands may name every campaign.

    Args:
        connection: The transaction of the change.
        settings: The new settings.
        former_settings: The settings before the change; None for a new campaign.

    """
    for setting in SETTINGS_NAMING_CAMPAIGNS:
        former_names = getattr(former_settings, setting) if former_settings else []
        new_names = [name for name in getattr(settings, setting) if name not in former_names]
        reachable = await load_reachable_slugs(connection, new_names) if new_names else set()
        for name in new_names:
            if name not in reachable:
                raise Invalid(
                    f"There is no campaign “{shorten_echo(name)}” whose annotators you may see. Write its name as in "
                    "its address. Nothing was changed.",
                    code="other_campaign_unknown",
                    setting=setting,
                    campaign=shorten_echo(name),
                )


async def load_reachable_slugs(connection: AsyncConnection, slugs: Iterable[str]) -> set[str]:
    """Return those of the slugs whose campaigns' people the acting researcher may see."""
    actor, access = CURRENT_ACTOR.get(), None
    if actor.user_id is not None:
        user = await users.load_user_or_refuse(connection, actor.user_id)
        access = Access(user.id, user.role, only_campaign_id=actor.only_campaign_id)
    statement = select(campaigns.c.slug).where(
        campaigns.c.slug.in_([*slugs]),
        campaigns.c.rehearsal_of.is_(None),
        visible_campaigns_sql_condition(access, SEE_PEOPLE),
    )
    return {*await connection.scalars(statement)}
