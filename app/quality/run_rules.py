"""Scan of a campaign's annotators: apply its rules, store each finding once, and do what the rules are set to do.

A scan reads the record without blocking anyone, computes in a thread, and writes each finding in a transaction of its
own. Two concurrent scans, also on two machines, find the same; the database lets one of them act.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
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

MAX_ANNOTATORS_ALWAYS_ASSESSED = 200  # a second or less
FULL_SCAN_GROWTH = 1.1  # of the judgments, from one assessment of everyone to the next

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
    """Position of a scan in the record. After another process has scanned, the position is empty.

    Attributes:
        watermark: The watermark up to which the record was read.
        settings: Settings of the rules that were applied.
        assessed_judgments: Number of judgments when all annotators were assessed the last time.
        new_findings: Number of findings that were new.
        is_complete: Whether all annotators were assessed with all judgments up to the watermark.

    """

    watermark: Watermark | None
    settings: tuple[Any, ...]
    assessed_judgments: int = 0
    new_findings: int = 0
    is_complete: bool = True


class NewFindings(NamedTuple):
    """Findings that are not stored yet, and the position of the scan that made them, without its settings."""

    findings: Sequence[AnnotatorFinding]
    watermark: Watermark | None
    assessed_judgments: int
    is_complete: bool


async def scan_annotators_and_record_findings(
    engine: AsyncEngine, campaign_id: int, *, now: datetime, last_position: RuleScanPosition | None = None
) -> RuleScanPosition | None:
    """Scan annotators if anyone has answered since the last scan, there was none, or the settings were others; also if
    the campaign has stopped since a scan that was not complete. Return None if another scan is running.

    Everyone is assessed again, also those who finished early, since what is usual changes with the others' answers. If
    there are many, the others are assessed again as judgments grow by `FULL_SCAN_GROWTH`, and when the campaign does
    not run any more; until then, only those with new answers.
    """
    await revisions.switch_revision_if_it_misses_decisions(
        engine, campaign_id, now=now
    )  # where annotators have changed answers
    async with engine.begin() as connection:
        if not (await connection.execute(TRY_LOCK_RULE_SCAN, {"campaign": campaign_id})).scalar_one():
            return None
        campaign = await load_campaign(connection, campaign_id)
        settings = settings_of_rules(campaign)
        last = last_position if last_position and last_position.settings == settings else None
        found = await load_new_findings(connection, campaign, last or RuleScanPosition(None, settings))
    new_findings = 0
    for finding in found.findings:
        new_findings += await record_finding_and_apply_action_if_new(engine, campaign, finding, now=now)
    return RuleScanPosition(
        found.watermark, settings, found.assessed_judgments, new_findings, is_complete=found.is_complete
    )


async def load_new_findings(connection: AsyncConnection, campaign: Campaign, last: RuleScanPosition) -> NewFindings:
    """Return the findings that are not stored yet, given the position of the last scan."""
    rule_choices = active_rule_choices_by_name(campaign)
    changes = await poll_changes(connection, campaign.id, last.watermark)
    is_up_to_date = changes.first_new_seq is None and (last.is_complete or campaign.status == "running")
    if not rule_choices or is_up_to_date:
        return NewFindings([], changes.watermark, last.assessed_judgments, last.is_complete)
    known = {
        (row.annotator_id, row.rule)
        for row in await connection.execute(LIST_FINDING_KEYS, {"campaign": campaign.id})
        if row.rule in rule_choices and row.action == rule_choices[row.rule].action
    }
    newly_answering = (
        set()
        if changes.first_new_seq is None
        else await inputs.load_ids_of_annotators_answering_since(connection, campaign.id, changes.first_new_seq)
    )
    findings: list[AnnotatorFinding] = []
    assessed_judgments, is_complete = last.assessed_judgments, True
    for criterion in campaign.criteria:
        rule_inputs = await inputs.load_rule_inputs(connection, criterion)
        judgments = rule_inputs.judgments["annotator"]
        is_full = (
            len(np.unique(judgments)) <= MAX_ANNOTATORS_ALWAYS_ASSESSED
            or campaign.status != "running"
            or len(judgments) >= FULL_SCAN_GROWTH * last.assessed_judgments
        )
        is_complete &= is_full
        assessed_judgments = len(judgments) if is_full and not criterion.number else assessed_judgments
        findings += await asyncio.to_thread(
            find_annotators_by_rules, criterion, rule_inputs, rule_choices, known, None if is_full else newly_answering
        )
    return NewFindings(findings, changes.watermark, assessed_judgments, is_complete)


def find_annotators_by_rules(
    criterion: Criterion[Campaign],
    rule_inputs: inputs.RuleInputs,
    rule_choices: Mapping[str, RuleChoice],
    known: Collection[tuple[int, str]] = (),
    annotator_ids: Collection[int] | None = None,
) -> list[AnnotatorFinding]:
    """Return the findings for one criterion; the arguments are those of `assess_annotators_by_rules`."""
    return [
        AnnotatorFinding(number, name, rule_choices[name], RuleFinding(dict(assessment.measures), assessment.sentence))
        for number, name, assessment in assess_annotators_by_rules(
            criterion, rule_inputs, rule_choices, known, annotator_ids
        )
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
