"""Scan of a campaign's annotators: apply its rules, store each finding once, and do what the rules are set to do.

A scan reads the record without blocking anyone, computes in a thread, and writes each finding in a transaction of its
own. Two concurrent scans, also on two machines, find the same; the database lets one of them act.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.database.alerts import store_alert_unless_known
from app.database.audit_log import Actor
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.errors import Conflict
from app.quality import decisions, inputs
from app.quality.rule import RuleFinding
from app.quality.rule_assessments import assess_annotators_by_rules
from app.quality.settings import RuleChoice, active_rule_choices_by_name, settings_of_rules
from app.record import revisions
from app.record.campaign import load_campaign
from app.record.changes import Watermark, poll_changes

SANCTIONS: dict[str, Callable[..., Awaitable[Any]]] = {
    "hold": decisions.hold_annotator,
    "exclude": decisions.exclude_annotator,
}

# One scan of a campaign at a time: a second one would find the same.
TRY_LOCK_RULE_SCAN = text("SELECT pg_try_advisory_xact_lock(hashtext('campaign.look'), CAST(:campaign AS int))")

STORE_FINDING = text("""
    INSERT INTO findings (campaign_id, annotator_id, rule, action, seen, said, found_at)
    VALUES (:campaign, :annotator, :rule, :action, CAST(:seen AS jsonb), :said, :now)
    ON CONFLICT (campaign_id, annotator_id, rule, action) DO NOTHING RETURNING id
""")

LIST_FINDING_KEYS = text("SELECT annotator_id, rule, action FROM findings WHERE campaign_id = :campaign")


class AnnotatorFinding(NamedTuple):
    """Finding of a rule about an annotator, with the rule's settings."""

    annotator_id: int
    rule_name: str
    rule_choice: RuleChoice
    details: RuleFinding


class RuleScanPosition(NamedTuple):
    """Position of a scan in the record, the settings it used, and the number of its new findings. After another process
    has scanned, the position is empty.
    """

    watermark: Watermark | None
    settings: tuple[Any, ...]
    new_findings: int = 0


async def scan_annotators_and_record_findings(
    engine: AsyncEngine, campaign_id: int, *, now: datetime, last_position: RuleScanPosition | None = None
) -> RuleScanPosition | None:
    """Scan all annotators if anyone has answered since the last scan, there was none, or the settings were others.
    Return None if another scan is running.
    """
    await revisions.switch_revision_if_it_misses_decisions(
        engine, campaign_id, now=now
    )  # where annotators have changed answers
    async with engine.begin() as connection:
        if not (await connection.execute(TRY_LOCK_RULE_SCAN, {"campaign": campaign_id})).scalar_one():
            return None
        campaign = await load_campaign(connection, campaign_id)
        settings = settings_of_rules(campaign)
        since = last_position.watermark if last_position and last_position.settings == settings else None
        findings, watermark = await load_new_findings_and_watermark(connection, campaign, since)
    new_findings = 0
    for finding in findings:
        new_findings += await record_finding_and_apply_action_if_new(engine, campaign, finding, now=now)
    return RuleScanPosition(watermark, settings, new_findings)


async def load_new_findings_and_watermark(
    connection: AsyncConnection, campaign: Campaign, since: Watermark | None
) -> tuple[list[AnnotatorFinding], Watermark | None]:
    """Return the findings that are not stored yet, and the watermark up to which the record was read."""
    rule_choices = active_rule_choices_by_name(campaign)
    changes = await poll_changes(connection, campaign.id, since)
    if not rule_choices or changes.first_new_seq is None:
        return [], changes.watermark
    known = {
        (row.annotator_id, row.rule)
        for row in await connection.execute(LIST_FINDING_KEYS, {"campaign": campaign.id})
        if row.rule in rule_choices and row.action == rule_choices[row.rule].action
    }
    findings: list[AnnotatorFinding] = []
    for criterion in campaign.criteria:
        rule_inputs = await inputs.load_rule_inputs(connection, criterion)
        findings += await asyncio.to_thread(find_annotators_by_rules, criterion, rule_inputs, rule_choices, known)
    return findings, changes.watermark


def find_annotators_by_rules(
    criterion: Criterion[Campaign],
    rule_inputs: inputs.RuleInputs,
    rule_choices: Mapping[str, RuleChoice],
    known: Collection[tuple[int, str]] = (),
) -> list[AnnotatorFinding]:
    """Return the findings about all annotators for one criterion; the arguments are those of
    `assess_annotators_by_rules`.
    """
    return [
        AnnotatorFinding(number, name, rule_choices[name], RuleFinding(dict(assessment.measures), assessment.sentence))
        for number, name, assessment in assess_annotators_by_rules(criterion, rule_inputs, rule_choices, known)
        if assessment.state == "flagged"
    ]


async def record_finding_and_apply_action_if_new(
    engine: AsyncEngine, campaign: Campaign, finding: AnnotatorFinding, *, now: datetime
) -> bool:
    """Store a finding and apply its action. Return whether it is new."""
    sentence = f"{finding.rule_choice.rule.title}: {finding.details.sentence}"
    parameters = {
        "campaign": campaign.id,
        "annotator": finding.annotator_id,
        "rule": finding.rule_name,
        "action": finding.rule_choice.action,
        "seen": json.dumps(finding.details.measures),
        "said": finding.details.sentence,
        "now": now,
    }
    async with engine.begin() as connection:
        finding_id = (await connection.execute(STORE_FINDING, parameters)).scalar()
        if finding_id is None:
            return False
        if finding.rule_choice.action in SANCTIONS:
            await apply_sanction_and_alert_owner(
                connection, campaign, finding, f"finding {finding_id}", sentence, now=now
            )
    if finding.rule_choice.action == "exclude":
        await revisions.switch_revision_if_it_misses_decisions(engine, campaign.id, now=now)
    return True


async def apply_sanction_and_alert_owner(
    connection: AsyncConnection,
    campaign: Campaign,
    finding: AnnotatorFinding,
    occasion: str,
    sentence: str,
    *,
    now: datetime,
) -> None:
    """Hold or exclude an annotator, unless someone already has, and alert the campaign owner."""
    actor, reason = Actor(f"rule {finding.rule_name}", "server"), sentence[: decisions.MAX_REASON_CHARACTERS]
    with suppress(Conflict):
        await SANCTIONS[finding.rule_choice.action](
            connection, campaign, finding.annotator_id, reason=reason, now=now, actor=actor
        )
        name = (
            await decisions.load_annotator_name_and_blocked_state_or_refuse(connection, campaign, finding.annotator_id)
        ).name
        await store_alert_unless_known(connection, campaign.id, "held", occasion, about=name, because=sentence)
