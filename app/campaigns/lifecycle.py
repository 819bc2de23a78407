"""Create, edit, launch, pause, resume, finish: of two at once the database lets one through."""

import re
import secrets
import unicodedata
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import (
    Row,
    delete,
    exists,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from app.alerts.settings import deliverable
from app.auth import members
from app.auth.access import Access, visible
from app.campaigns.settings import LONGEST_NAME, CampaignSettings
from app.campaigns.start import refuse_all_best, start_posteriors
from app.database.audit_log import ACTING, differences, note
from app.database.campaign import campaign_by_slug, campaign_of_page, finish_if_complete, item_count, only
from app.database.tables import campaigns, items
from app.designs.criteria import asked_criterion
from app.designs.registry import design_of
from app.errors import Conflict, NotFound, shortened
from app.errors import listed as listed_names
from app.fields import after_launch, is_private
from app.media import store as media
from app.record.law import law_of
from app.record.states import LOCK_OUT_HOLDERS
from app.record.store import PRESENT
from app.visit import launch

find = campaign_by_slug
find_for_page = campaign_of_page

RESERVED_SLUGS = {"new"}  # /admin/campaigns/new is the form

COPY_ITEMS = tuple(
    text(
        f"INSERT INTO {table} (campaign_id, {columns}) "  # noqa: S608  (constants)
        f"SELECT :copy, {columns} FROM {table} WHERE campaign_id = :campaign"
    )
    for table, columns in (
        ("items", "number, external_id, shown, fields, prior"),
        ("segments", "number, external_id, source, reference"),
        ("outputs", "segment, item, shown"),
        ("check_items", "number, external_id, kind, shown, expected, fields"),
    )
)
HAS_CHECKS = text("""
    UPDATE campaigns SET has_checks = EXISTS (SELECT FROM check_items WHERE campaign_id = :copy) WHERE id = :copy
""")
OF_COPY = " (copy)"
COPIES = re.compile(r" \(copy(?: \d+)?\)$")
REHEARSAL = "rehearsal"  # ends the name and the address of one, and so the names of its exports
LONGEST_SLUG = 60
HIDDEN = "•••"  # stands in the log for what nobody is to read there

Action = Literal["launch", "pause", "resume", "finish", "reopen", "archive", "restore"]
AT_REST = ("draft", "paused", "finished")
# action -> (states it starts from, what it sets: a time is that of the action). Whoever runs is in the list.
TRANSITIONS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "launch": (("draft",), {"status": "running", "launched_at": datetime, "archived_at": None}),
    "pause": (("running",), {"status": "paused"}),
    "resume": (("paused",), {"status": "running", "archived_at": None}),
    "finish": (("running", "paused"), {"status": "finished", "finished_at": datetime}),
    "reopen": (("finished",), {"status": "running", "finished_at": None, "archived_at": None}),
    "archive": (AT_REST, {"archived_at": datetime}),
    "restore": (AT_REST, {"archived_at": None}),
}
CANNOT = {"archive": "be archived; pause or finish it first", "restore": "be brought back; it is in the list"}


def slug_of(name: str) -> str:
    """A short address for a name: ASCII letters, digits and hyphens."""
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", ascii_name).strip("-")[:LONGEST_SLUG].strip("-") or "campaign"


async def create(
    connection: AsyncConnection,
    settings: CampaignSettings,
    *,
    now: datetime,
    copy_of: Row[Any] | None = None,
    rehearsal: bool = False,
) -> Row[Any]:
    """A new draft, perhaps the copy of a campaign, or its rehearsal. Its slug is made from the name, with a number if
    another campaign has it already. The researcher who acts owns it; a rehearsal is reached as its campaign is.
    """
    wanted = slug_of(settings.name)
    rehearsal_of = copy_of.id if copy_of is not None and rehearsal else None
    if rehearsal:
        wanted = f"{wanted.removesuffix(f'-{REHEARSAL}')[: LONGEST_SLUG - len(REHEARSAL) - 1]}-{REHEARSAL}"
    values = row_of(settings) | {"slug": await free_slug(connection, wanted), "link_key": secrets.token_urlsafe(9)}
    values |= {"created_at": now, "rehearsal_of": rehearsal_of}
    row: Row[Any] = (await connection.execute(insert(campaigns).values(values).returning(campaigns))).one()
    if (owner := ACTING.get().user_id) and not rehearsal:
        await members.begin(connection, row.id, owner, now=now)
    copied = {} if copy_of is None else {"copy_of": copy_of.slug}
    await note(connection, f"campaign.{'copied' if copied else 'created'}", row, after={"name": row.name} | copied)
    return row


async def copy(
    connection: AsyncConnection, slug: str, *, now: datetime, rehearsal: bool = False, seen_by: Access | None = None
) -> Row[Any]:
    """A new draft with the settings, the items and their files of a campaign, and none of its answers; perhaps to
    rehearse it. Its name tells of no campaign that is not there for whom it is made.

    Raises `NotFound` (`campaign_not_found`).
    """
    campaign = await find(connection, slug)
    settings = settings_of(campaign)
    usual = list(law_of(campaign).family.default_prior)  # which the launch wrote down: another law has another
    await wait_in_line(connection)
    name = with_end(settings.name, f" ({REHEARSAL})")
    if not rehearsal:
        name = await name_of_copy(connection, settings.name, seen_by)
    changes = {"name": name, "prior": None if settings.prior == usual else settings.prior}
    copied = await create(
        connection, settings.model_copy(update=changes), now=now, copy_of=campaign, rehearsal=rehearsal
    )
    for statement in (*COPY_ITEMS, HAS_CHECKS):
        await connection.execute(statement, {"copy": copied.id, "campaign": campaign.id})
    await note_segments(connection, copied.id, campaign.segment_count)
    await media.copy_all(connection, campaign=campaign.id, copied=copied.id)
    return copied


async def note_segments(connection: AsyncConnection, campaign_id: int, count: int) -> None:
    """For how many segments there are outputs of systems; 0 where items are shown as they are."""
    await connection.execute(update(campaigns).where(campaigns.c.id == campaign_id).values(segment_count=count))


async def name_of_copy(connection: AsyncConnection, name: str, seen_by: Access | None) -> str:
    """`name (copy)`, or `name (copy 2)`, ...: one that no campaign has of those that they see."""
    original = COPIES.sub("", name)
    alike = select(campaigns.c.name).where(campaigns.c.name.startswith(original[:LONGEST_SLUG], autoescape=True))
    taken = set(await connection.scalars(alike.where(visible(seen_by))))
    ends = (OF_COPY, *(f" (copy {k})" for k in range(2, len(taken) + 3)))
    return next(copy for end in ends if (copy := with_end(original, end)) not in taken)


def with_end(name: str, end: str) -> str:
    """As long as a name may be."""
    return name[: LONGEST_NAME - len(end)] + end


def row_of(settings: CampaignSettings) -> dict[str, Any]:
    """The columns of the campaign's row that follow from its settings."""
    design = design_of(settings)
    return settings.model_dump() | {
        "fewest_items": max(1, design.fewest_items - len(design.always_shown)),
        "asked_criterion": asked_criterion(settings),
    }


async def free_slug(connection: AsyncConnection, wanted: str) -> str:
    """`wanted`, or `wanted-2`, `wanted-3`, ..."""
    await wait_in_line(connection)
    alike = select(campaigns.c.slug).where(campaigns.c.slug.startswith(wanted, autoescape=True))
    taken = RESERVED_SLUGS | set(await connection.scalars(alike))
    return next(slug for slug in (wanted, *(f"{wanted}-{k}" for k in range(2, len(taken) + 3))) if slug not in taken)


async def wait_in_line(connection: AsyncConnection) -> None:
    """Until this transaction ends, nobody else creates a campaign."""
    await connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('campaigns.slug'))"))


def settings_of(campaign: Row[Any]) -> CampaignSettings:
    """The settings part of a campaign's row; they were checked when they were stored, by the rules of that day."""
    values = {name: getattr(campaign, name) for name in CampaignSettings.model_fields}
    return CampaignSettings.model_construct(**values | {"alert_emails": deliverable(campaign.alert_emails)})


async def edit(
    connection: AsyncConnection, slug: str, change: Callable[[CampaignSettings], CampaignSettings]
) -> Row[Any]:
    """Change a draft's settings, or those that a launch leaves open, read under a lock, so that two edits of different
    settings both stay.

    The slug stays, so links that were noted down keep working. Of a launched campaign a change holds for HITs that are
    handed out from then on. Raises what `locked` and `refuse_another_meaning` raise.
    """
    campaign = await locked(connection, slug)
    before = settings_of(campaign)
    settings = change(before)
    if campaign.status != "draft":
        refuse_another_meaning(campaign, before, settings)
    await keep_items_priors(connection, campaign, settings)
    same = settings.model_dump() == before.model_dump()
    of_before = {"tried_at": campaign.tried_at, "newest_plan": campaign.newest_plan}
    changes = row_of(settings) | {name: value if same else None for name, value in of_before.items()}
    statement = update(campaigns).where(campaigns.c.id == campaign.id).values(changes)
    row: Row[Any] = (await connection.execute(statement.returning(campaigns))).one()
    if row.status != "draft" and row.goal != before.goal:
        refuse_all_best(row, await connection.scalar(select(item_count(row.id))) or 0)
    await launch.renew_changed_consent(connection, before, row)
    was, is_now = (with_nothing_private(facts) for facts in differences(before.model_dump(), settings.model_dump()))
    if is_now:
        await note(connection, "settings.changed", row, before=was, after=is_now)
    return row


def with_nothing_private(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the log has them, which researchers of all campaigns read."""
    fields = CampaignSettings.model_fields
    return {name: HIDDEN if is_private(fields[name]) and value else value for name, value in facts.items()}


def refuse_another_meaning(campaign: Row[Any], before: CampaignSettings, after: CampaignSettings) -> None:
    """Raises `Conflict`: `not_a_draft` for what changes what the answers of a launched campaign mean, `only_more` for
    fewer of what can only grow.
    """
    fields = CampaignSettings.model_fields
    changed = {name: after_launch(fields[name]) for name, value in before if getattr(after, name) != value}
    if fixed := [str(fields[name].title) for name, left in changed.items() if left is None]:
        rule = f"{listed_names(fixed)} would change what its answers mean, and stays as it is. Nothing was changed. "
        require_draft(campaign, f"{rule}Copy the campaign to ask in another way")
    for name, left in changed.items():
        if left == "only more" and getattr(after, name) < getattr(before, name):
            raise Conflict(
                f"“{campaign.name}” is {campaign.status}: {fields[name].title} is {getattr(before, name)} and can only "
                "grow. Nothing was changed.",
                code="only_more",
                setting=name,
                least=getattr(before, name),
            )


async def locked_draft(connection: AsyncConnection, slug: str, rule: str) -> Row[Any]:
    """The draft as `locked` gives it. Raises what that and `require_draft` raise."""
    campaign = await locked(connection, slug)
    require_draft(campaign, rule)
    return campaign


async def locked(connection: AsyncConnection, slug: str) -> Row[Any]:
    """The campaign, held until the transaction ends: a launch waits, another edit and an import too.

    Raises `NotFound` (`campaign_not_found`).
    """
    return await only(connection, select(campaigns).with_for_update(key_share=True), slug)


def require_draft(campaign: Row[Any], rule: str) -> None:
    """Raises `Conflict` (`not_a_draft`) with the `rule` that forbids what is done to a draft only."""
    if campaign.status != "draft":
        raise Conflict(f"“{campaign.name}” is {campaign.status}: {rule}.", code="not_a_draft", status=campaign.status)


async def keep_items_priors(connection: AsyncConnection, campaign: Row[Any], settings: CampaignSettings) -> None:
    """Refuse a law that would misread the priors that items came with: alpha and beta are not mu and sigma2."""
    before, after = (law_of(of).family.parameter_names for of in (campaign, settings))
    mine = exists().where(items.c.campaign_id == campaign.id, items.c.prior.is_not(None))
    if before != after and await connection.scalar(select(mine)):
        raise Conflict(
            f"The items were imported with {' and '.join(before)}, which the update law {settings.update_law} "
            "cannot use. Nothing was changed. Import the items again without these columns, or keep the law.",
            code="prior_of_another_law",
            setting="update_law",
        )


async def remove(connection: AsyncConnection, slug: str) -> None:
    """Delete a draft with its items. A launched campaign holds people's answers and is never deleted from here."""
    campaign = await removable(connection, slug)
    await erase(connection, campaign.id)
    await note(connection, "campaign.deleted", campaign, before={"name": campaign.name})


async def erase(connection: AsyncConnection, campaign_id: int) -> None:
    """Delete a campaign and its rehearsal, with all that belongs to them. Answers under way are waited for."""
    both = campaigns.c.id == campaign_id, campaigns.c.rehearsal_of == campaign_id
    for each in list(await connection.scalars(select(campaigns.c.id).where(or_(*both)).order_by(campaigns.c.id))):
        await connection.execute(LOCK_OUT_HOLDERS, {"campaign": each})
    await connection.execute(delete(campaigns).where(campaigns.c.id == campaign_id))


async def removable(connection: AsyncConnection, slug: str) -> Row[Any]:
    """The draft that may be deleted. Raises what `locked_draft` raises."""
    return await locked_draft(connection, slug, "only a draft can be deleted")


# Locked in the order in which answers lock them.
ASK_AGAIN = text(f"""
    WITH settled AS (
        SELECT p.subject FROM posteriors p WHERE {PRESENT} AND p.settled ORDER BY p.subject FOR NO KEY UPDATE OF p
    ), again AS (
        UPDATE posteriors p SET settled = false FROM settled WHERE {PRESENT} AND p.subject = settled.subject RETURNING 1
    )
    UPDATE campaigns SET releases = releases + 1 WHERE id = :campaign AND EXISTS (SELECT FROM again)
""")  # noqa: S608  (made of constants)


async def transition(connection: AsyncConnection, slug: str, action: str, *, now: datetime) -> Row[Any]:
    """Launch, pause, resume, finish, reopen, archive or restore. Of two that exclude each other the database lets one
    through; the other gets `Conflict` (`wrong_status`). Who reopens what wants nothing more gets `nothing_wanted`.
    """
    if action not in TRANSITIONS:
        raise NotFound(f"A campaign cannot “{shortened(action)}”.", code="unknown_action", action=shortened(action))
    sources, changes = TRANSITIONS[action]
    statement = (
        update(campaigns)
        .where(campaigns.c.slug == slug, campaigns.c.status.in_(sources))
        .values({name: now if value is datetime else value for name, value in changes.items()})
        .returning(campaigns)
    )
    row: Row[Any] | None = (await connection.execute(statement)).one_or_none()
    if row is None:
        campaign = await find(connection, slug)
        raise Conflict(
            f"“{campaign.name}” is {campaign.status}, so it cannot {CANNOT.get(action, action)}.",
            code="wrong_status",
            status=campaign.status,
            action=action,
        )
    if action == "launch":
        await start_posteriors(connection, row)
        await launch.create_first_visit_version(connection, row)
    if action == "reopen":  # a look at the goal says again which items are settled
        await connection.execute(ASK_AGAIN, {"campaign": row.id})
    if action == "reopen" and await finish_if_complete(connection, row.id, now=now):
        raise Conflict(
            f"“{row.name}” has all the judgments that it wants, so nothing was changed. Ask for more per item, or add "
            "items, then reopen it.",
            code="nothing_wanted",
        )
    await note(connection, f"campaign.{action}", row, after={"status": row.status})
    return row
