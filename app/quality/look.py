"""A look at the annotators of a campaign: what its rules find is stored once, and what they do is done.

It reads the record beside everything else, computes in a thread, and writes each finding in a transaction of its own.
Two looks at once, also on two machines, find the same; the database lets one of them act.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.alerts import raise_alert
from app.database.audit_log import Actor
from app.designs.criteria import criteria_of, number_of
from app.designs.registry import design_of
from app.errors import Conflict
from app.quality import gather, who_counts
from app.quality.conduct import Conduct
from app.quality.rule import RuleFinding
from app.quality.settings import Chosen, chosen_of
from app.record import revisions
from app.record.news import Watermark
from app.record.news import look as news

STOPS: dict[str, Callable[..., Awaitable[Any]]] = {"hold": who_counts.hold, "exclude": who_counts.exclude}

CAMPAIGN = text("SELECT * FROM campaigns WHERE id = :campaign")

# One look of a campaign at a time: a second one would find the same.
TURN = text("SELECT pg_try_advisory_xact_lock(hashtext('campaign.look'), CAST(:campaign AS int))")

NOTE = text("""
    INSERT INTO findings (campaign_id, annotator_id, rule, action, seen, said, found_at)
    VALUES (:campaign, :annotator, :rule, :action, CAST(:seen AS jsonb), :said, :now)
    ON CONFLICT (campaign_id, annotator_id, rule, action) DO NOTHING RETURNING id
""")

FOUND = text("SELECT annotator_id, rule, action FROM findings WHERE campaign_id = :campaign")


class Sighting(NamedTuple):
    """What a rule found of an annotator, by their row's id."""

    annotator: int
    rule: str
    chosen: Chosen
    finding: RuleFinding


class LookedAt(NamedTuple):
    """Up to where a look knew the record, by which settings, and how many findings were new. A look that another one
    was before knows nothing.
    """

    watermark: Watermark | None
    settings: tuple[Any, ...]
    new: int = 0


async def look(
    engine: AsyncEngine, campaign_id: int, *, now: datetime, last: LookedAt | None = None
) -> LookedAt | None:
    """Look at all annotators who have answered since the last look; at all where there was none, or by other settings.
    None where another look is under way.
    """
    await revisions.revise(engine, campaign_id, now=now)  # where annotators have changed answers
    async with engine.begin() as connection:
        if not (await connection.execute(TURN, {"campaign": campaign_id})).scalar_one():
            return None
        campaign = (await connection.execute(CAMPAIGN, {"campaign": campaign_id})).one()
        settings = (campaign.quality_preset, campaign.quality_rules, campaign.false_alarms)
        since = last.watermark if last and last.settings == settings else None
        found, watermark = await found_in(connection, campaign, since)
    new = 0
    for one in found:
        new += await act(engine, campaign, one, now=now)
    return LookedAt(watermark, settings, new)


async def found_in(
    connection: AsyncConnection, campaign: Row[Any], since: Watermark | None
) -> tuple[list[Sighting], Watermark | None]:
    """What the rules find that they have not found before, and up to where the record is known."""
    chosen = chosen_of(campaign)
    told = await news(connection, campaign.id, since)
    if not chosen or told.first is None:
        return [], told.watermark
    those = None if told.since is None else await gather.annotators_since(connection, campaign.id, told.first)
    known = {tuple(row) for row in await connection.execute(FOUND, {"campaign": campaign.id})}
    found: list[Sighting] = []
    for view in criteria_of(campaign):
        record = await gather.read(connection, view)
        found += await asyncio.to_thread(judged, view, record, chosen, those)
    return [one for one in found if (one.annotator, one.rule, one.chosen.action) not in known], told.watermark


def judged(
    view: Any, record: gather.RecordRead, chosen: Mapping[str, Chosen], those: set[int] | None
) -> list[Sighting]:
    """What the rules find of `those` annotators, of all if None, in a campaign by one of its criteria. The criteria
    share the false alarms of a rule; what is no matter of values is looked at once.
    """
    conducts, criteria = gather.conducts(design_of(view), record), max(1, len(view.criteria))
    rules = {name: one for name, one in chosen.items() if one.rule.of_values or not number_of(view)}
    found: list[Sighting] = []
    for name, one in rules.items():
        alarm = view.false_alarms / 1000 / (criteria if one.rule.of_values else 1)
        sightings = found_by(name, one, conducts, those, alarm)
        found += [named_by(view, one) for one in sightings] if view.criteria and one.rule.of_values else sightings
    return found


def named_by(view: Any, found: Sighting) -> Sighting:
    """With the criterion in its words."""
    return found._replace(finding=found.finding._replace(said=f"{view.criterion_name}: {found.finding.said}"))


def found_by(
    name: str, chosen: Chosen, conducts: Mapping[int, Conduct], those: set[int] | None, alarm: float
) -> list[Sighting]:
    """What one rule finds."""
    numbers, rule = list(conducts), chosen.rule
    measures = np.array([rule.measure(conducts[number]) for number in numbers])
    looks = [
        (number, rule.look(conducts[number], np.delete(measures, place), alarm))
        for place, number in enumerate(numbers)
        if those is None or number in those
    ]
    return [Sighting(number, name, chosen, finding) for number, finding in looks if finding is not None]


async def act(engine: AsyncEngine, campaign: Row[Any], found: Sighting, *, now: datetime) -> bool:
    """Store a finding and do what the rule does; whether it is new."""
    said = f"{found.chosen.rule.title}: {found.finding.said}"
    parameters = {
        "campaign": campaign.id,
        "annotator": found.annotator,
        "rule": found.rule,
        "action": found.chosen.action,
        "seen": json.dumps(found.finding.seen),
        "said": found.finding.said,
        "now": now,
    }
    async with engine.begin() as connection:
        number = (await connection.execute(NOTE, parameters)).scalar()
        if number is None:
            return False
        if found.chosen.action in STOPS:
            await stop(connection, campaign, found, f"finding {number}", said, now=now)
    if found.chosen.action == "exclude":
        await revisions.revise(engine, campaign.id, now=now)
    return True


async def stop(
    connection: AsyncConnection, campaign: Row[Any], found: Sighting, occasion: str, said: str, *, now: datetime
) -> None:
    """Hold or exclude an annotator, if nobody has yet, and let whoever runs the campaign know."""
    by, reason = Actor(f"rule {found.rule}", "server"), said[: who_counts.LONGEST_REASON]
    with suppress(Conflict):
        await STOPS[found.chosen.action](connection, campaign, found.annotator, reason=reason, now=now, by=by)
        name = (await who_counts.standing_of(connection, campaign, found.annotator)).name
        await raise_alert(connection, campaign.id, "held", occasion, about=name, because=said)
