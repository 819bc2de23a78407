"""Background scan for a campaign's goal, after new answers.

When the goal is reached, the scan does what the researcher chose, once per goal. Items that are released as they settle
are updated after each scan. If a campaign ended before its goal, its owner is alerted, unless the last answer reached
the goal.

A goal's probability may be checked after every answer: see `inference.ratings.goal_probabilities`.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.analysis import calibrated_intervals
from app.analysis.calibrated_intervals import CalibratedEvidence, load_goal_item_numbers_and_scores
from app.campaigns import lifecycle
from app.database.alerts import store_alert_unless_known, store_new_alerts_sql
from app.database.audit_log import CURRENT_ACTOR, SERVER_ACTOR
from app.database.bulk import open_snapshot
from app.database.campaign import try_to_finish_complete_campaign
from app.designs.campaign import Campaign
from app.errors import Conflict
from app.goal_monitor import release
from app.goals.estimates import GoalEstimates
from app.goals.progress import Progress, format_goal_progress, goal_progress_or_none, text_that_identifies_goal
from app.goals.settings import NO_GOAL
from app.quality.run_rules import scan_annotators_and_record_findings
from app.record.campaign import load_campaign

STOPPING_ACTIONS = ("pause", "finish")

# If several processes or scans find the goal reached, one acts.
MARK_GOAL_REACHED = text(f"""
    UPDATE campaigns SET goal_reached = :reached
    WHERE id = :campaign AND status IN ('running', 'finished') AND goal_reached IS DISTINCT FROM :reached
    AND {release.IS_SAME_GOAL_SQL}
    RETURNING id
""")

# Only for campaigns that ended by themselves: a person who finishes a campaign knows how near its goal is.
SELECT_MISSED_GOAL = f"""
    (SELECT ended.campaign_id, 'missed' AS kind, ended.occasion, CAST(:about AS text) AS about,
            CAST(:because AS text) AS because
    FROM alerts ended JOIN campaigns ON ended.campaign_id = campaigns.id
    WHERE ended.campaign_id = :campaign AND ended.kind = 'finished' AND campaigns.status = 'finished'
    AND ended.occasion = CAST(campaigns.finished_at AS text) AND goal_reached IS DISTINCT FROM :goal_words
    AND {release.IS_SAME_GOAL_SQL})
"""
RAISE_MISSED_GOAL_ALERT = text(f"WITH {store_new_alerts_sql(SELECT_MISSED_GOAL)} SELECT 1")


@dataclass(frozen=True)
class GoalScanState:
    """State for the next scan.

    Attributes:
        evidence_read: Evidence that the scan read; None without a goal.
        has_stopped_campaign: Whether the scan has paused or finished the campaign.

    """

    evidence_read: CalibratedEvidence | None
    has_stopped_campaign: bool = False


async def enforce_goal_and_return_state_or_none(
    engine: AsyncEngine, campaign_id: int, *, now: datetime, last_position: GoalScanState | None = None
) -> GoalScanState | None:
    """Check whether a campaign has reached its goal and which items are settled, and act on it. Return None if another
    process was faster, which may not have seen the last answers.
    """
    async with open_snapshot(engine) as connection:
        campaign = await load_campaign(connection, campaign_id)
        if not can_answers_change_goal_state(campaign):
            return GoalScanState(None)
        evidence = await calibrated_intervals.load_calibrated_evidence_extending_previous(
            connection, campaign.goal_criterion, last_position.evidence_read if last_position else None
        )
        progress = await load_goal_progress_or_none(
            connection, campaign, await evidence.estimate_goal_in_thread(campaign)
        )
        settled_change = await release.load_items_settled_or_unsettled_since_last_scan(connection, campaign, progress)
    has_stopped = False
    if progress is not None and progress.is_reached and campaign.goal_reached != text_that_identifies_goal(campaign):
        has_stopped = await store_goal_alert_and_stop_campaign_if_chosen(engine, campaign, progress, now=now)
    if len(settled_change.items):
        if not await release.try_to_store_settled_flags(engine, campaign, settled_change):
            return None
        async with engine.begin() as connection:
            is_finished = await try_to_finish_complete_campaign(connection, campaign_id, now=now)
        if is_finished:  # answers may have come meanwhile
            state = await enforce_goal_and_return_state_or_none(
                engine, campaign_id, now=now, last_position=GoalScanState(evidence)
            )
            return state and replace(state, has_stopped_campaign=True)
    if campaign.status == "finished" and progress is not None and not progress.is_reached:
        await store_missed_goal_alert(engine, campaign, progress)
    return GoalScanState(evidence, has_stopped)


def can_answers_change_goal_state(campaign: Campaign) -> bool:
    """Return whether answers can bring the campaign nearer to a goal or change its released items, or whether its last
    answers may have reached the goal.
    """
    if campaign.status == "finished":
        return bool(campaign.goal != NO_GOAL and campaign.goal_reached != text_that_identifies_goal(campaign))
    return bool(campaign.status == "running" and (campaign.goal != NO_GOAL or campaign.releases))


async def load_goal_progress_or_none(
    connection: AsyncConnection, campaign: Campaign, goal_estimates: GoalEstimates
) -> Progress | None:
    """Return the progress by the items that count for the goal, None without a goal. `goal_estimates` has all items."""
    if campaign.goal == NO_GOAL:
        return None
    items, scores = await load_goal_item_numbers_and_scores(connection, campaign)
    progress = await asyncio.to_thread(
        goal_progress_or_none, campaign, goal_estimates.estimates.select_items(items), scores, goal_estimates.source
    )
    return progress and progress.with_item_numbers(items)


async def store_goal_alert_and_stop_campaign_if_chosen(
    engine: AsyncEngine, campaign: Campaign, progress: Progress, *, now: datetime
) -> bool:
    """Alert the campaign owner, and stop the campaign if they chose that. Return whether it was to be stopped."""
    CURRENT_ACTOR.set(SERVER_ACTOR)
    async with engine.begin() as connection:
        reached_goal = text_that_identifies_goal(campaign)
        parameters = {"campaign": campaign.id, "reached": reached_goal} | release.same_goal_query_parameters(campaign)
        if not (await connection.execute(MARK_GOAL_REACHED, parameters)).all():
            return False
        await store_alert_unless_known(
            connection, campaign.id, "goal", reached_goal, about=lowercase_first(progress.goal_text)
        )
        if campaign.when_reached not in STOPPING_ACTIONS:
            return False
        with suppress(Conflict):  # a person was faster
            await lifecycle.change_campaign_status_or_refuse(connection, campaign.slug, campaign.when_reached, now=now)
        return True


async def store_missed_goal_alert(engine: AsyncEngine, campaign: Campaign, progress: Progress) -> None:
    """Alert that a campaign ended by itself before its goal, and how near it was."""
    advice = "To continue, ask for more judgments per item and reopen the campaign."
    parameters = {
        "campaign": campaign.id,
        "goal_words": text_that_identifies_goal(campaign),
        "about": lowercase_first(progress.goal_text),
        "because": f"At the end it was {format_goal_progress(campaign, progress)}. {advice}",
    }
    async with engine.begin() as connection:
        await connection.execute(RAISE_MISSED_GOAL_ALERT, parameters | release.same_goal_query_parameters(campaign))


def lowercase_first(sentence: str) -> str:
    """Return a sentence with a lower-case first letter, for use within another sentence."""
    return f"{sentence[0].lower()}{sentence[1:]}"


CAMPAIGN_SCANS = scan_annotators_and_record_findings, enforce_goal_and_return_state_or_none
