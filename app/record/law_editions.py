"""Editions of a campaign's update law: which one the campaign has, and the change to the newest one."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.background.process import run_in_process
from app.database.audit_log import log_change
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.errors import Conflict
from app.record import law_storage
from app.record.campaign import load_campaign_by_slug_or_refuse
from app.record.revisions import (
    LOCAL_REVISION_LOCK,
    PROCESS_REVISION_LOCK,
    is_revision_due_and_needs_process,
    make_revision_and_switch_to_it,
    open_engine_of_own_process,
)


@dataclass(frozen=True, slots=True)
class LawEdition:
    """The edition of the law by which a campaign's posteriors are computed.

    Attributes:
        law: The law's title for people.
        edition: The campaign's edition. Campaigns keep the one with which they began.
        newest: The newest edition, which new campaigns get.

    """

    law: str
    edition: int
    newest: int

    @property
    def is_newest(self) -> bool:
        return self.edition == self.newest


async def load_law_edition(connection: AsyncConnection, campaign: Campaign) -> LawEdition:
    """Return the edition of the campaign's law; the oldest one, should its criteria have several."""
    law, editions = campaign.law, []
    for criterion in campaign.criteria:
        state = await law_storage.load_present_campaign_law_state_or_refuse(
            await driver_of(connection), criterion, layout=criterion.law.layout
        )
        editions.append(criterion.law.law_edition_number(state.campaign))
    return LawEdition(law.short_title, min(editions), law.newest_edition)


async def move_to_newest_edition_and_return_former(engine: AsyncEngine, slug: str, *, now: datetime) -> LawEdition:
    """Recompute a campaign's posteriors under the newest edition of its law, and return the edition before.

    Annotation continues meanwhile. If interrupted, the campaign keeps its edition, and the call can be repeated.

    Raises:
        Conflict: `not_launched`, `newest_edition` or `not_replayable`.

    """
    campaign, before = await load_movable_campaign_and_edition_or_refuse(engine, slug)
    _, needs_process = await is_revision_due_and_needs_process(engine, campaign.id)
    async with PROCESS_REVISION_LOCK if needs_process else LOCAL_REVISION_LOCK:
        # Another request may have moved the campaign while this one waited for the lock.
        await load_movable_campaign_and_edition_or_refuse(engine, slug)
        await recompute_under_newest_edition(engine, campaign.id, in_other_process=needs_process, now=now)
    async with engine.begin() as connection:
        await log_change(
            connection,
            "answers.recomputed",
            campaign,
            old_values={"edition": before.edition},
            new_values={"edition": before.newest},
        )
    return before


async def load_movable_campaign_and_edition_or_refuse(engine: AsyncEngine, slug: str) -> tuple[Campaign, LawEdition]:
    """Return a campaign of an older edition, and that edition. Raises `Conflict` (`not_launched`, `newest_edition`)."""
    async with engine.begin() as connection:
        campaign = await load_campaign_by_slug_or_refuse(connection, slug)
        if campaign.status == "draft":
            raise Conflict(f"“{campaign.name}” is a draft: it has no answers yet.", code="not_launched")
        edition = await load_law_edition(connection, campaign)
    if edition.is_newest:
        raise Conflict(f"“{campaign.name}” already uses the newest edition of {edition.law}.", code="newest_edition")
    return campaign, edition


async def recompute_under_newest_edition(
    engine: AsyncEngine, campaign_id: int, *, in_other_process: bool, now: datetime
) -> None:
    """Make a revision from the same answers and decisions, under the newest edition of the campaign's law.

    Args:
        engine: The database.
        campaign_id: The campaign.
        in_other_process: Whether another process does it, because the replay takes long.
        now: Stored as the time of the finish if the revision finishes the campaign.

    """
    if in_other_process:
        url = engine.url.render_as_string(hide_password=False)
        await run_in_process(switch_to_newest_edition_revision_at_url, url, campaign_id, now)
    else:
        await switch_to_revision_under_newest_edition(engine, campaign_id, now=now)


async def switch_to_revision_under_newest_edition(engine: AsyncEngine, campaign_id: int, *, now: datetime) -> None:
    """Make a revision from the same answers under the newest edition of the law, in this process."""
    await make_revision_and_switch_to_it(engine, campaign_id, now=now, even_if_current=True, by_newest_edition=True)


async def switch_to_newest_edition_revision_at_url(url: str, campaign_id: int, now: datetime) -> None:
    """Run `switch_to_revision_under_newest_edition` in a process that has no engine."""
    async with open_engine_of_own_process(url) as engine:
        await switch_to_revision_under_newest_edition(engine, campaign_id, now=now)
