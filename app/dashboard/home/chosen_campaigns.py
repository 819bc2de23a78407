"""Actions on several campaigns at once: archive, restore, tag or delete them, each as the role there allows."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Self, cast, get_args

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.accounts import members
from app.accounts.access import SHARING_CAMPAIGN_ID, Access, require_need, visible_campaigns_sql_condition
from app.accounts.roles import CHANGE_CAMPAIGN
from app.campaigns import empty_campaigns, lifecycle, settings_edits
from app.campaigns.tags import MAX_TAG_CHARACTERS, MAX_TAGS, TagSettings
from app.database.campaign import unknown_campaign_slug_error
from app.database.tables import campaigns
from app.designs.campaign import Campaign
from app.errors import Conflict, Invalid, NotFound, Refusal, shorten_echo
from app.record.deletion import count_failed_payments_and_calls
from app.simulation import rehearsals
from app.simulation.rehearsals import RehearsalCrowds

ChosenAction = Literal["archive", "restore", "add-tags", "remove-tags", "delete"]
MAX_CHOSEN_CAMPAIGNS = 100


def tags_or_refuse(tags: object) -> list[str]:
    """Return the tags of a list or of a text with commas. Raises `Invalid` (`tags_invalid`)."""
    try:
        return TagSettings.model_validate({"tags": tags}).tags
    except ValidationError as error:
        raise Invalid(
            f"A campaign has at most {MAX_TAGS} tags of at most {MAX_TAG_CHARACTERS} characters, each in one line. "
            "Nothing was changed.",
            code="tags_invalid",
        ) from error


@dataclass(frozen=True)
class ChosenChange:
    """An action on the chosen campaigns; `tags` are those to add or to remove."""

    action: ChosenAction
    tags: tuple[str, ...] = ()

    @classmethod
    def from_input_or_refuse(cls, action: ChosenAction, tags: str | list[str]) -> Self:
        """Return the change. Raises `Invalid` (`tags_invalid`) if the tags are impossible, or needed and missing."""
        valid_tags = tags_or_refuse(tags)
        if action in ("add-tags", "remove-tags") and not valid_tags:
            raise Invalid("Enter one tag at least. Nothing was changed.", code="tags_invalid")
        return cls(action, tuple(valid_tags))


@dataclass(frozen=True)
class RefusedCampaign:
    """A chosen campaign that was not changed, and why."""

    slug: str
    refusal: Refusal


@dataclass(frozen=True)
class ChosenOutcome:
    """The chosen campaigns that were changed, and those that were not."""

    changed: Sequence[Campaign]
    refused: Sequence[RefusedCampaign]


@dataclass(frozen=True)
class DeletableCampaign:
    """A chosen campaign that can be deleted, and how many failed payments its deletion would forget."""

    campaign: Campaign
    failed_payments: int


def distinct_slugs_or_refuse(slugs: Sequence[str]) -> list[str]:
    """Return each slug once. Raises `Invalid`: `no_campaigns_chosen`, `too_many_campaigns_chosen`."""
    distinct = list(dict.fromkeys(slugs))
    if not distinct:
        raise Invalid("Tick the campaigns first. Nothing was changed.", code="no_campaigns_chosen")
    if len(distinct) > MAX_CHOSEN_CAMPAIGNS:
        message = f"Choose at most {MAX_CHOSEN_CAMPAIGNS} campaigns at once. Nothing was changed."
        raise Invalid(message, code="too_many_campaigns_chosen", maximum=MAX_CHOSEN_CAMPAIGNS)
    return distinct


def chosen_action_or_refuse(action: str) -> ChosenAction:
    """Return the action. Raises `NotFound` (`unknown_action`)."""
    if action not in get_args(ChosenAction):
        message = f"Campaigns cannot “{shorten_echo(action)}”. Nothing was changed."
        raise NotFound(message, code="unknown_action", action=shorten_echo(action))
    return cast("ChosenAction", action)


async def change_chosen_campaigns(
    database: AsyncEngine,
    crowds: RehearsalCrowds,
    access: Access,
    slugs: Sequence[str],
    change: ChosenChange,
    *,
    now: datetime,
) -> ChosenOutcome:
    """Change each campaign in a transaction of its own, so that one refusal keeps no other campaign from changing.

    Raises what `distinct_slugs_or_refuse` raises.
    """
    changed: list[Campaign] = []
    refused: list[RefusedCampaign] = []
    for slug in distinct_slugs_or_refuse(slugs):
        try:
            changed.append(await change_chosen_campaign_or_refuse(database, crowds, access, slug, change, now=now))
        except Refusal as refusal:
            refused.append(RefusedCampaign(slug, refusal))
    return ChosenOutcome(changed, refused)


async def change_chosen_campaign_or_refuse(
    database: AsyncEngine, crowds: RehearsalCrowds, access: Access, slug: str, change: ChosenChange, *, now: datetime
) -> Campaign:
    """Change one campaign, and return it as it was.

    Raises what `load_changeable_campaign_or_refuse` raises, and what the action raises for a single campaign.
    """
    async with database.begin() as connection:
        campaign = await load_changeable_campaign_or_refuse(connection, access, slug)
        if campaign.rehearsal_of is None:
            await apply_to_campaign_or_refuse(connection, campaign, change, now=now)
            return campaign
    if change.action != "delete":
        raise Conflict(f"“{campaign.name}” is a rehearsal, which can only be deleted.", code="is_a_rehearsal")
    await crowds.end_crowd(campaign.id)
    async with database.begin() as connection:
        return await rehearsals.delete_and_return_rehearsal_or_refuse(connection, slug)


async def load_changeable_campaign_or_refuse(connection: AsyncConnection, access: Access, slug: str) -> Campaign:
    """Return a campaign that the researcher may change.

    Raises `NotFound` (`campaign_not_found`) if they cannot see it, and what `require_need` raises.
    """
    statement = select(campaigns, members.member_role_sql(SHARING_CAMPAIGN_ID, access)).where(
        campaigns.c.slug == slug, visible_campaigns_sql_condition(access)
    )
    row = (await connection.execute(statement)).mappings().one_or_none()
    if row is None:
        raise unknown_campaign_slug_error(slug)
    columns = dict(row)
    require_need(access.with_member_role(columns.pop("member")), CHANGE_CAMPAIGN)
    return Campaign.from_columns(columns)


async def apply_to_campaign_or_refuse(
    connection: AsyncConnection, campaign: Campaign, change: ChosenChange, *, now: datetime
) -> None:
    """Apply the change to a campaign that is no rehearsal."""
    is_archived = campaign.archived_at is not None
    if change.action == "delete":
        await empty_campaigns.delete_empty_campaign_or_refuse(connection, campaign.slug)
    elif change.action in ("add-tags", "remove-tags"):
        await change_tags_or_refuse(connection, campaign.slug, change)
    elif is_archived == (change.action == "archive"):
        raise Conflict(
            f"“{campaign.name}” is {'archived already' if is_archived else 'not archived'}.",
            code="wrong_status",
            status=campaign.status,
            action=change.action,
        )
    else:
        await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, change.action, now=now)


async def change_tags_or_refuse(connection: AsyncConnection, slug: str, change: ChosenChange) -> None:
    """Add tags to those of a campaign, or remove them, whatever their case. Raises `Invalid` (`tags_invalid`)."""

    def changed_tags(before: list[str]) -> list[str]:
        if change.action == "remove-tags":
            removed = {tag.casefold() for tag in change.tags}
            return [tag for tag in before if tag.casefold() not in removed]
        known = {tag.casefold() for tag in before}
        return tags_or_refuse([*before, *(tag for tag in change.tags if tag.casefold() not in known)])

    await settings_edits.store_changed_settings_or_refuse(
        connection, slug, lambda before: before.model_copy(update={"tags": changed_tags(before.tags)})
    )


async def load_deletable_and_refused_campaigns(
    connection: AsyncConnection, access: Access, slugs: Sequence[str]
) -> tuple[list[DeletableCampaign], list[RefusedCampaign]]:
    """Return which of the campaigns can be deleted now, and why the others cannot.

    Raises what `distinct_slugs_or_refuse` raises.
    """
    deletable: list[DeletableCampaign] = []
    refused: list[RefusedCampaign] = []
    for slug in distinct_slugs_or_refuse(slugs):
        try:
            campaign = await load_changeable_campaign_or_refuse(connection, access, slug)
            if campaign.rehearsal_of is None and (
                error := await empty_campaigns.load_cannot_delete_error_or_none(connection, campaign)
            ):
                raise error
        except Refusal as refusal:
            refused.append(RefusedCampaign(slug, refusal))
        else:
            failed_payments, _ = await count_failed_payments_and_calls(connection, campaign.id)
            deletable.append(DeletableCampaign(campaign, failed_payments))
    return deletable, refused


async def load_archived_campaigns(
    connection: AsyncConnection, access: Access, campaign_ids: Sequence[int]
) -> Sequence[Campaign]:
    """Return those of the campaigns that are archived and visible, by name."""
    statement = (
        select(campaigns)
        .where(campaigns.c.id.in_(campaign_ids), campaigns.c.archived_at.is_not(None))
        .where(visible_campaigns_sql_condition(access))
        .order_by(campaigns.c.name)
    )
    return [Campaign.from_columns(row) for row in (await connection.execute(statement)).mappings()]
