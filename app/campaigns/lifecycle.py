"""Create, edit, launch, pause, resume and finish campaigns; of two conflicting requests the database admits one."""

import re
import secrets
import unicodedata
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from pydantic import Field, StringConstraints
from sqlalchemy import insert, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection

from app.accounts import members
from app.accounts.access import Access, visible_campaigns_sql_condition
from app.alerts.settings import deliverable_addresses
from app.annotation.onboarding import visit_version
from app.campaigns.called_addresses import refuse_called_addresses_without_tls
from app.campaigns.launch import refuse_unusable_items_and_create_posteriors
from app.campaigns.question_settings import name_of_question
from app.campaigns.referenced_campaigns import refuse_campaigns_out_of_reach
from app.campaigns.setting_types import MAX_CAMPAIGN_NAME_CHARACTERS
from app.campaigns.settings import CampaignSettings
from app.database.audit_log import CURRENT_ACTOR, log_change
from app.database.campaign import try_to_finish_complete_campaign
from app.database.tables import campaigns
from app.designs.campaign import Campaign, pack_section_settings_into_columns
from app.designs.field_flags import RequestBody
from app.errors import Conflict, NotFound, shorten_echo
from app.media import media_store as media
from app.record.campaign import fetch_campaign_or_refuse, load_campaign_by_slug_or_refuse
from app.record.posterior_storage import PRESENT_POSTERIORS_CONDITION
from app.record.retired import IS_RETIRED_SQL

RESERVED_SLUGS = {"new"}  # /admin/campaigns/new is the form

COPY_CAMPAIGN_CONTENT = tuple(
    text(
        f"INSERT INTO {table} (campaign_id, {columns}) "
        f"SELECT :copy, {columns} FROM {table} WHERE campaign_id = :campaign"
    )
    for table, columns in (
        ("items", "number, external_id, shown, fields, prior"),
        ("segments", "number, external_id, source, reference"),
        ("outputs", "segment, item, shown"),
        ("check_items", "number, external_id, kind, shown, expected, fields, segment"),
    )
)
COPY_HAS_CHECKS = text("""
    UPDATE campaigns SET has_checks = original.has_checks FROM campaigns original
    WHERE campaigns.id = :copy AND original.id = :campaign
""")
COPY_SUFFIX = " (copy)"
COPY_SUFFIX_PATTERN = re.compile(r" \(copy(?: \d+)?\)$")
REHEARSAL_SUFFIX = "rehearsal"  # of its name and slug, and so of the names of its exports
MAX_SLUG_CHARACTERS = 60

LifecycleAction = Literal["launch", "pause", "resume", "finish", "reopen", "archive", "restore"]
STATUSES_AT_REST = ("draft", "paused", "finished")
# action -> (states it starts from, columns it sets; a time is that of the action). Running campaigns are in the list.
TRANSITIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "launch": (("draft",), {"status": "running", "launched_at": datetime, "archived_at": None}),
    "pause": (("running",), {"status": "paused"}),
    "resume": (("paused",), {"status": "running", "archived_at": None}),
    "finish": (("running", "paused"), {"status": "finished", "finished_at": datetime}),
    "reopen": (("finished",), {"status": "running", "finished_at": None, "archived_at": None}),
    "archive": (STATUSES_AT_REST, {"archived_at": datetime}),
    "restore": (STATUSES_AT_REST, {"archived_at": None}),
}
IMPOSSIBLE_ACTION_PHRASES = {
    "archive": "be archived; pause or finish it first",
    "restore": "be restored; it is not archived",
}


# What the row of a campaign has besides its settings, before it is stored.
UNSAVED_CAMPAIGN_COLUMNS = {
    "id": 0,
    "slug": "",
    "link_key": "",
    "status": "draft",
    "always_shown": [],
    "segment_count": 0,
    "goal_reached": None,
    "releases": 0,
    "visit_version": 0,
    "has_checks": False,
    "revision": 0,
    "decided": 0,
    "iteration": -1,
    "created_at": datetime.min.replace(tzinfo=UTC),
} | dict.fromkeys(("launched_at", "finished_at", "archived_at", "newest_plan", "rehearsal_of"))


def slugify_campaign_name(name: str) -> str:
    """Return a short address for a name: ASCII letters, digits and hyphens."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:MAX_SLUG_CHARACTERS].strip("-") or "campaign"


async def create_draft_campaign_or_refuse(
    connection: AsyncConnection,
    settings: CampaignSettings,
    *,
    now: datetime,
    original: Campaign | None = None,
    is_rehearsal: bool = False,
) -> Campaign:
    """Create a draft, perhaps as the copy of a campaign or as its rehearsal.

    Its slug is made from the name, with a number if another campaign has that slug. A name that is made of the question
    gets the same number. The acting researcher owns the draft; access to a rehearsal is as to its campaign. Raises what
    `refuse_campaigns_out_of_reach` and `refuse_called_addresses_without_tls` raise, unless it is a copy.
    """
    if original is None:
        await refuse_campaigns_out_of_reach(connection, settings)
        refuse_called_addresses_without_tls(settings)
    wanted_slug = slugify_campaign_name(settings.name)
    rehearsed_campaign_id = original.id if original is not None and is_rehearsal else None
    if is_rehearsal:
        rehearsed_slug = wanted_slug.removesuffix(f"-{REHEARSAL_SUFFIX}")
        wanted_slug = f"{rehearsed_slug[: MAX_SLUG_CHARACTERS - len(REHEARSAL_SUFFIX) - 1]}-{REHEARSAL_SUFFIX}"
    slug = await lock_creation_and_find_free_slug(connection, wanted_slug)
    values = campaign_column_values_of_settings(settings) | {"slug": slug, "link_key": secrets.token_urlsafe(9)}
    if original is None and slug != wanted_slug and settings.name == name_of_question(settings.question):
        values["name"] = f"{settings.name} ({slug.removeprefix(f'{wanted_slug}-')})"
    values |= {"created_at": now, "rehearsal_of": rehearsed_campaign_id}
    rows = await connection.execute(
        insert(campaigns).values(pack_section_settings_into_columns(values)).returning(campaigns)
    )
    campaign = Campaign.from_columns(rows.mappings().one())
    if (owner := CURRENT_ACTOR.get().user_id) and not is_rehearsal:
        await members.insert_campaign_owner(connection, campaign.id, owner, now=now)
    copy_facts = {} if original is None else {"copy_of": original.slug}
    await log_change(
        connection,
        f"campaign.{'copied' if copy_facts else 'created'}",
        campaign,
        new_values={"name": campaign.name} | copy_facts,
    )
    return campaign


class CampaignCopy(RequestBody):
    """How a copy differs from its campaign."""

    name: Annotated[str, StringConstraints(strip_whitespace=True, max_length=MAX_CAMPAIGN_NAME_CHARACTERS)] = Field(
        default="", description="Name of the copy. Empty: the name of the campaign, with “(copy)”."
    )
    items: bool = Field(default=True, description="Whether the items and their files are copied.")


async def create_copy_of_campaign(
    connection: AsyncConnection,
    slug: str,
    *,
    now: datetime,
    is_rehearsal: bool = False,
    access: Access | None = None,
    chosen: CampaignCopy = CampaignCopy(),
) -> Campaign:
    """Create a draft with the settings of a campaign, and its items and files unless `chosen` declines them, and none
    of its answers, perhaps as its rehearsal.

    The name must not reveal campaigns that the user cannot see.

    Raises `NotFound` (`campaign_not_found`).
    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    settings = unchecked_settings_with_deliverable_emails(campaign)
    # The launch stored the law's default prior. Drop it: the copy may get a law with another default.
    default_prior = list(campaign.law.family.default_prior)
    await lock_campaign_creation(connection)
    name = shortened_name_with_suffix(settings.name, f" ({REHEARSAL_SUFFIX})")
    if not is_rehearsal:
        name = chosen.name or await find_free_copy_name(connection, settings.name, access)
    changes = {"name": name, "prior": None if settings.prior == default_prior else settings.prior}
    copied_campaign = await create_draft_campaign_or_refuse(
        connection, settings.model_copy(update=changes), now=now, original=campaign, is_rehearsal=is_rehearsal
    )
    if not chosen.items:
        return copied_campaign
    for statement in (*COPY_CAMPAIGN_CONTENT, COPY_HAS_CHECKS):
        await connection.execute(statement, {"copy": copied_campaign.id, "campaign": campaign.id})
    await store_count_of_segments(connection, copied_campaign.id, campaign.segment_count)
    await media.copy_media_files(connection, campaign_id=campaign.id, copy_id=copied_campaign.id)
    return copied_campaign


async def store_count_of_segments(connection: AsyncConnection, campaign_id: int, count: int) -> None:
    """Store for how many segments there are outputs of systems; 0 if items are no systems."""
    await connection.execute(update(campaigns).where(campaigns.c.id == campaign_id).values(segment_count=count))


async def find_free_copy_name(connection: AsyncConnection, name: str, access: Access | None) -> str:
    """Return `name (copy)`, `name (copy 2)`, ...: the first one that no campaign visible to the user has."""
    original_name = COPY_SUFFIX_PATTERN.sub("", name)
    similar_names = select(campaigns.c.name).where(
        campaigns.c.name.startswith(original_name[:MAX_SLUG_CHARACTERS], autoescape=True)
    )
    used_names = set(await connection.scalars(similar_names.where(visible_campaigns_sql_condition(access))))
    suffixes = (COPY_SUFFIX, *(f" (copy {k})" for k in range(2, len(used_names) + 3)))
    return next(copy for end in suffixes if (copy := shortened_name_with_suffix(original_name, end)) not in used_names)


def shortened_name_with_suffix(name: str, suffix: str) -> str:
    """Return a name with a suffix, shortened to the length that names may have."""
    return name[: MAX_CAMPAIGN_NAME_CHARACTERS - len(suffix)] + suffix


def campaign_of_unsaved_settings(settings: CampaignSettings) -> Campaign:
    """Return a campaign of these settings that is stored nowhere."""
    return Campaign.from_columns(UNSAVED_CAMPAIGN_COLUMNS | campaign_column_values_of_settings(settings))


def campaign_column_values_of_settings(settings: CampaignSettings) -> dict[str, Any]:
    """Return the settings by name, and the columns of the campaign's row that follow from them."""
    design = settings.design_with_settings
    return settings.model_dump() | {
        "fewest_items": max(1, design.fewest_items - len(design.always_shown)),
        "asked_criterion": selecting_criterion_number_or_none(settings),
    }


def selecting_criterion_number_or_none(settings: CampaignSettings) -> int | None:
    """Return the number of the criterion that decides which items are asked; None where all do together."""
    if not settings.criteria:
        return 0
    names = [criterion["name"] for criterion in settings.criteria]
    return names.index(settings.asked_by) if settings.asked_by else None


async def lock_creation_and_find_free_slug(connection: AsyncConnection, wanted_slug: str) -> str:
    """Return `wanted_slug`, `wanted_slug-2`, `wanted_slug-3`, ...: the first free one."""
    await lock_campaign_creation(connection)
    similar_slugs = select(campaigns.c.slug).where(campaigns.c.slug.startswith(wanted_slug, autoescape=True))
    used_slugs = RESERVED_SLUGS | set(await connection.scalars(similar_slugs))
    return next(
        slug
        for slug in (wanted_slug, *(f"{wanted_slug}-{k}" for k in range(2, len(used_slugs) + 3)))
        if slug not in used_slugs
    )


async def lock_campaign_creation(connection: AsyncConnection) -> None:
    """Keep others from creating a campaign until this transaction ends."""
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('campaigns.slug'))"))


def unchecked_settings_with_deliverable_emails(campaign: Campaign) -> CampaignSettings:
    """Return the settings of a campaign, unchecked: they were checked when they were stored."""
    columns = campaign.column_values_of_campaign()
    values = {name: columns[name] for name in CampaignSettings.model_fields}
    return CampaignSettings.model_construct(**values | {"alert_emails": deliverable_addresses(campaign.alert_emails)})


async def lock_and_load_draft_or_refuse(connection: AsyncConnection, slug: str, message: str) -> Campaign:
    """Return the draft, locked by `lock_and_load_campaign_or_refuse`. Raises what that and `require_draft` raise."""
    campaign = await lock_and_load_campaign_or_refuse(connection, slug)
    require_draft(campaign, message)
    return campaign


async def lock_and_load_campaign_or_refuse(connection: AsyncConnection, slug: str) -> Campaign:
    """Return the campaign, locked until the transaction ends: launches, other edits and imports wait.

    Raises `NotFound` (`campaign_not_found`).
    """
    return await fetch_campaign_or_refuse(connection, select(campaigns).with_for_update(key_share=True), slug, Campaign)


def require_draft(campaign: Campaign, message: str) -> None:
    """Raise `Conflict` (`not_a_draft`) with this message if the campaign was launched."""
    if campaign.status != "draft":
        raise Conflict(
            f"“{campaign.name}” is {campaign.status}: {message}.", code="not_a_draft", status=campaign.status
        )


# In the order in which answers lock these rows, to avoid deadlocks. A statement of its own, so that the next one sees
# which items were retired while this one waited.
LOCK_SETTLED_POSTERIORS = text(f"""
    SELECT FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.settled
    ORDER BY p.subject FOR NO KEY UPDATE OF p
""")
UNSETTLE_ITEMS = text(f"""
    WITH settled AS (
        SELECT p.subject FROM posteriors p WHERE {PRESENT_POSTERIORS_CONDITION} AND p.settled
        AND NOT {IS_RETIRED_SQL} ORDER BY p.subject FOR NO KEY UPDATE OF p
    ), unsettled AS (
        UPDATE posteriors p SET settled = false FROM settled
        WHERE {PRESENT_POSTERIORS_CONDITION} AND p.subject = settled.subject RETURNING 1
    )
    SELECT count(*) FROM unsettled
""")
COUNT_RELEASE = text("UPDATE campaigns SET releases = releases + 1 WHERE id = :campaign")


async def change_campaign_status_or_refuse(
    connection: AsyncConnection, slug: str, action: str, *, now: datetime
) -> Campaign:
    """Launch, pause, resume, finish, reopen, archive or restore a campaign.

    If two actions exclude each other, the database admits one; the other gets `Conflict` (`wrong_status`).
    Reopening a campaign that wants no more judgments gets `nothing_wanted`.
    """
    if action not in TRANSITIONS:
        raise NotFound(
            f"A campaign cannot “{shorten_echo(action)}”.",
            code="unknown_action",
            action=shorten_echo(action),
        )
    allowed_statuses, changes = TRANSITIONS[action]
    # The next check of the goal marks settled items again.
    unsettled_count = await unsettle_items_of_finished_campaign_and_count(connection, slug) if action == "reopen" else 0
    statement = (
        update(campaigns)
        .where(campaigns.c.slug == slug, campaigns.c.status.in_(allowed_statuses))
        .values({name: now if value is datetime else value for name, value in changes.items()})
        .returning(campaigns)
    )
    columns = (await connection.execute(statement)).mappings().one_or_none()
    if columns is None:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        raise Conflict(
            f"“{campaign.name}” is {campaign.status}, so it cannot {IMPOSSIBLE_ACTION_PHRASES.get(action, action)}.",
            code="wrong_status",
            status=campaign.status,
            action=action,
        )
    row = Campaign.from_columns(columns)
    if action == "launch":
        await refuse_unusable_items_and_create_posteriors(connection, row)
        await visit_version.create_first_visit_version_if_needed(connection, row)
    if unsettled_count:
        await connection.execute(COUNT_RELEASE, {"campaign": row.id})
    if action == "reopen" and await try_to_finish_complete_campaign(connection, row.id, now=now):
        raise Conflict(
            f"“{row.name}” already has all its judgments, so nothing was changed. Ask for more judgments per item, "
            "or add items, then reopen it.",
            code="nothing_wanted",
        )
    await log_change(connection, f"campaign.{action}", row, new_values={"status": row.status})
    return row


async def unsettle_items_of_finished_campaign_and_count(connection: AsyncConnection, slug: str) -> int:
    """Let annotators be asked again about items that a goal had settled, and return how many there are.

    Call it before the campaign's row is locked: releases and retirements lock posteriors first and the row afterwards.
    """
    campaign = await load_campaign_by_slug_or_refuse(connection, slug)
    if campaign.status != "finished":
        return 0
    await connection.execute(LOCK_SETTLED_POSTERIORS, {"campaign": campaign.id})
    unsettled_count: int = (await connection.execute(UNSETTLE_ITEMS, {"campaign": campaign.id})).scalar_one()
    return unsettled_count
