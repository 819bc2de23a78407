"""Where somebody stands on their way to the work, and what they do there: stored once, whoever sends it how often."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import text

from app.crowd.annotators import ARRIVED_THEN, AssignmentId
from app.crowd.platform import Platform
from app.crowd.registry import PLATFORMS
from app.database.session import Driver, Record, execute, fetch_one
from app.errors import NotFound
from app.visit.settings import VisitSettings
from app.visit.step import Step, Taken, VisitFacts
from app.visit.steps import STEPS, next_step

# What else of a campaign's settings steps read: how its sets are answered.
WAY_OF_ASKING = ("design", "design_settings", "criteria", "items_per_hit", "cannot_be_judged", "unjudged_reasons")
SETTINGS = ", ".join(f"c.{name}" for name in (*VisitSettings.model_fields, *WAY_OF_ASKING))

# What is read of a step that is done again and again: more than any set or test has parts. So whatever was done before,
# the next page costs the same.
ROWS_OF_STEP = 64

FIND = text(f"""
    SELECT c.id, c.visit_version, {SETTINGS}, a.id AS annotator_id, a.platform, a.admitted,
           EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = c.id AND r.annotator_id = a.id) AS answered,
           (SELECT jsonb_agg(jsonb_build_array(v.step, v.version, v.outcome, v.said) ORDER BY v.step, v.version)
            FROM unnest(CAST(ARRAY{[step.name for step in STEPS]} AS text[])) AS named (step), LATERAL (
                SELECT * FROM visits v WHERE v.campaign_id = c.id AND v.annotator_id = a.id AND v.step = named.step
                ORDER BY v.version DESC LIMIT {ROWS_OF_STEP}) AS v) AS taken
    FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    JOIN campaigns c ON c.id = s.campaign_id
    WHERE s.campaign_id = :campaign AND s.id = :assignment AND {ARRIVED_THEN}
""")  # noqa: S608  (made of the names of settings)

DOOR = text(f"""
    SELECT c.id, c.visit_version, {SETTINGS} FROM campaigns c WHERE link_key = :link_key AND rehearsal_of IS NULL
""")  # noqa: S608  (likewise)

# Who had said no may still say yes; all else stays as it was when it was first said.
KEEP = text("""
    INSERT INTO visits (campaign_id, annotator_id, step, version, outcome, said, taken_at)
    VALUES (:campaign, :annotator, :step, :version, :outcome, CAST(:said AS jsonb), :now)
    ON CONFLICT (campaign_id, annotator_id, step, version) DO UPDATE
    SET outcome = excluded.outcome, said = excluded.said, taken_at = excluded.taken_at
    WHERE visits.outcome = 'declined'
""")

ADMIT = text("""
    UPDATE annotators SET admitted = :version
    WHERE campaign_id = :campaign AND id = :annotator AND admitted < :version
""")


class VisitedSettings(VisitSettings):
    """What a campaign asks before the work, and how it asks in it."""

    design: str
    design_settings: dict[str, Any]
    criteria: list[dict[str, Any]]
    items_per_hit: int
    cannot_be_judged: bool
    unjudged_reasons: list[str]


class VisitedCampaign(Record):
    """A campaign, and what it asks before the work."""

    id: int
    visit_version: int

    @property
    def settings(self) -> VisitSettings:
        """As they were checked when they were stored, with those of `WAY_OF_ASKING`."""
        return VisitedSettings.model_construct(
            **{name: self[name] for name in (*VisitSettings.model_fields, *WAY_OF_ASKING)}
        )


class Visiting(VisitedCampaign):
    """Somebody on their way to the work. taken: step, version, outcome and what was said, of each; None of nothing."""

    annotator_id: int
    platform: str
    admitted: int
    answered: bool
    taken: list[tuple[str, int, str, dict[str, Any]]] | None

    @property
    def facts(self) -> VisitFacts:
        taken = [Taken(*one) for one in self.taken or ()]  # type: ignore[arg-type]  # the table has such outcomes alone
        return VisitFacts(self.visit_version, self.admitted > 0 or self.answered, taken)

    @property
    def step(self) -> Step | None:
        """The one that is theirs to pass; None where there is none."""
        return next_step(self.settings, PLATFORMS[self.platform], self.facts)


async def find(connection: Driver, assignment: AssignmentId) -> Visiting:
    """Raises `NotFound` (`assignment_not_found`)."""
    row = await fetch_one(connection, FIND, assignment.parameters, Visiting)
    if row is None:
        raise NotFound("This task no longer exists.", code="assignment_not_found")
    return row


async def find_or_admit(connection: Driver, assignment: AssignmentId) -> Visiting:
    """The same; whoever has no step before them is let in from now on."""
    here = await find(connection, assignment)
    if here.step is None:
        await admit(connection, here)
    return here


async def admit(connection: Driver, here: Visiting) -> None:
    """Under the version that was read: if there is another by now, they are asked again."""
    key = {"campaign": here.id, "annotator": here.annotator_id, "version": here.visit_version}
    await execute(connection, ADMIT, key)


async def take(connection: Driver, here: Visiting, name: str, sent: Mapping[str, str], *, now: datetime) -> None:
    """Keep what somebody did in the step before them; of any other step, or page of it, nothing is kept, since they
    are beyond it.

    Raises what the step's `take` raises.
    """
    if here.step is None or here.step.name != name:
        return
    done = here.step.take(sent, here.settings, here.facts)
    if done is None:
        return
    key = {"campaign": here.id, "annotator": here.annotator_id, "now": now}
    await execute(connection, KEEP, key | done._asdict() | {"said": json.dumps(done.said)})


async def door(connection: Driver, link_key: str) -> VisitedCampaign:
    """The campaign with this link key, for who is nobody yet. Raises `NotFound` (`campaign_not_found`)."""
    row = await fetch_one(connection, DOOR, {"link_key": link_key}, VisitedCampaign)
    if row is None:
        raise NotFound(
            "There is no task at this address. Please check that the link is complete.", code="campaign_not_found"
        )
    return row


def admitted_at_once(campaign: VisitedCampaign, platform: Platform) -> int:
    """Under which version of the visit a new annotator from a platform is let in at once; 0 if they have a step to
    pass.
    """
    due = next_step(campaign.settings, platform, VisitFacts(campaign.visit_version))
    return 0 if due else campaign.visit_version
