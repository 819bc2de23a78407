"""Onboarding progress of annotators: loading it, and storing each step's result once, even if it is sent twice."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from datetime import datetime
from typing import Any, cast

from sqlalchemy import text

from app.annotation.onboarding.entry_questions import parse_question_lines
from app.annotation.onboarding.questions import QUESTIONS_STEP
from app.annotation.onboarding.quotas import (
    Quota,
    lock_quotas_and_try_to_reserve_places,
    parse_quota_lines,
    quotas_of_answers,
)
from app.annotation.onboarding.settings import COLUMN_BY_ANSWERING_SETTING, VisitAndAnswerSettings
from app.annotation.onboarding.step import StepOutcome, StepResult, VisitHistory, VisitStep
from app.annotation.onboarding.steps import VISIT_STEPS, first_open_step_or_none
from app.annotation.platforms.assignments import ARRIVED_THEN, AssignmentId
from app.annotation.platforms.platform import Platform
from app.annotation.platforms.registry import PLATFORMS
from app.database.session import Driver, Record, execute_statement, fetch_first_row_or_none
from app.designs.campaign import SECTION_BY_SETTING
from app.errors import NotFound

SETTINGS_WITH_COLUMN = [name for name in VisitAndAnswerSettings.model_fields if name not in SECTION_BY_SETTING]
VISIT_SETTINGS_COLUMNS = "c.visit_settings, " + ", ".join(
    f"c.{COLUMN_BY_ANSWERING_SETTING.get(name, name)} AS {name}" for name in SETTINGS_WITH_COLUMN
)

# Limit on the results read of a repeated step: more than any set or test has parts. With it, the cost of the next page
# does not grow with the number of earlier tries.
MAX_ROWS_PER_STEP = 64

SELECT_VISIT = text(f"""
    SELECT c.id, c.visit_version, {VISIT_SETTINGS_COLUMNS}, a.id AS annotator_id, a.platform, a.admitted,
           EXISTS (SELECT 1 FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id) AS answered,
           (SELECT jsonb_agg(jsonb_build_array(v.step, v.version, v.outcome, v.said) ORDER BY v.step, v.version)
            FROM unnest(CAST(ARRAY{[step.name for step in VISIT_STEPS]} AS text[])) AS named (step), LATERAL (
                SELECT * FROM visits v WHERE v.campaign_id = :campaign AND v.annotator_id = a.id AND v.step = named.step
                ORDER BY v.version DESC LIMIT {MAX_ROWS_PER_STEP}) AS v) AS taken
    FROM assignments s
    JOIN annotators a ON a.campaign_id = s.campaign_id AND a.id = s.annotator_id
    JOIN campaigns c ON c.id = s.campaign_id
    WHERE s.campaign_id = :campaign AND s.id = :assignment AND {ARRIVED_THEN}
""")

SELECT_VISITED_CAMPAIGN = text(f"""
    SELECT c.id, c.visit_version, {VISIT_SETTINGS_COLUMNS} FROM campaigns c
    WHERE link_key = :link_key AND rehearsal_of IS NULL
""")

# An annotator who declined may still agree; every other first result stays. Nothing is stored about an annotator who
# was erased or is being erased, even from a page that was open before.
STORE_STEP_RESULT = text("""
    INSERT INTO visits (campaign_id, annotator_id, step, version, outcome, said, taken_at)
    SELECT a.campaign_id, a.id, CAST(:step AS text), CAST(:version AS int), CAST(:outcome AS text),
           CAST(:said AS jsonb), CAST(:now AS timestamptz)
    FROM annotators a WHERE a.campaign_id = :campaign AND a.id = :annotator AND a.barred IS DISTINCT FROM 'erased'
    FOR KEY SHARE OF a
    ON CONFLICT (campaign_id, annotator_id, step, version) DO UPDATE
    SET outcome = excluded.outcome, said = excluded.said, taken_at = excluded.taken_at
    WHERE visits.outcome = 'declined'
""")

# Only if `admitted` is as it was read with the results: it changes when an annotator loses the place in a quota.
ADMIT_ANNOTATOR = text("""
    UPDATE annotators SET admitted = :version
    WHERE campaign_id = :campaign AND id = :annotator AND admitted < :version AND admitted = :admitted_before
""")


class VisitedCampaign(Record):
    """A campaign with its onboarding settings."""

    id: int
    visit_version: int
    visit_settings: dict[str, Any]

    @property
    def settings(self) -> VisitAndAnswerSettings:
        """The settings, not validated again: they were when they were stored."""
        return VisitAndAnswerSettings.model_construct(
            **self.visit_settings | {name: self[name] for name in SETTINGS_WITH_COLUMN}
        )


class AnnotatorVisit(VisitedCampaign):
    """An annotator before or during onboarding. `taken`: step, version, outcome and details of each result, or None."""

    annotator_id: int
    platform: str
    admitted: int
    answered: bool
    taken: list[tuple[str, int, str, dict[str, Any]]] | None

    @property
    def history(self) -> VisitHistory:
        step_results = [
            StepResult(step, version, cast("StepOutcome", outcome), details)  # the table allows no other outcome
            for step, version, outcome, details in self.taken or ()
        ]
        return VisitHistory(self.visit_version, self.admitted > 0 or self.answered, step_results)

    @property
    def next_step_or_none(self) -> VisitStep | None:
        """Step that the annotator must pass next; None if they may work."""
        return first_open_step_or_none(self.settings, PLATFORMS[self.platform], self.history)


async def load_visit_or_refuse(connection: Driver, assignment: AssignmentId) -> AnnotatorVisit:
    """Return the annotator of an assignment, with their history. Raises `NotFound` (`assignment_not_found`)."""
    row = await fetch_first_row_or_none(connection, SELECT_VISIT, assignment.parameters, AnnotatorVisit)
    if row is None:
        raise NotFound("This study no longer exists.", code="assignment_not_found")
    return row


async def load_visit_and_admit(connection: Driver, assignment: AssignmentId) -> AnnotatorVisit:
    """As `load_visit_or_refuse`; also admit an annotator who has no open step."""
    visit = await load_visit_or_refuse(connection, assignment)
    if visit.next_step_or_none is None:
        await admit_to_visit_version_unless_quota_place_lost(connection, visit)
    return visit


async def admit_to_visit_version_unless_quota_place_lost(connection: Driver, visit: AnnotatorVisit) -> None:
    """Admit the annotator to the version that was read, unless they lost their place in a quota since.

    If there is a newer version, its steps are asked later.
    """
    key = {"campaign": visit.id, "annotator": visit.annotator_id, "version": visit.visit_version}
    await execute_statement(connection, ADMIT_ANNOTATOR, key | {"admitted_before": visit.admitted})


async def store_result_of_open_step(
    connection: Driver, visit: AnnotatorVisit, step_name: str, form: Mapping[str, str], *, now: datetime
) -> None:
    """Store the result of the annotator's open step. A form of any other step or page is ignored as outdated.

    Raises what the step's `parse_form` raises.
    """
    if visit.next_step_or_none is None or visit.next_step_or_none.name != step_name:
        return
    step_result = visit.next_step_or_none.parse_form(form, visit.settings, visit.history)
    if step_result is None:
        return
    key = {"campaign": visit.id, "annotator": visit.annotator_id, "now": now}
    async with connection.transaction() if (quotas := quotas_of_result(visit, step_result)) else nullcontext():
        if quotas and not await lock_quotas_and_try_to_reserve_places(
            connection, visit.id, visit.annotator_id, quotas, now=now
        ):
            step_result = step_result._replace(outcome="full")
        await execute_statement(
            connection, STORE_STEP_RESULT, key | step_result._asdict() | {"said": json.dumps(step_result.said)}
        )


def quotas_of_result(visit: AnnotatorVisit, step_result: StepResult) -> list[Quota]:
    """Return the quotas in which the annotator needs a place after this result of a step."""
    if step_result.step != QUESTIONS_STEP or step_result.outcome != "passed":
        return []
    settings = visit.settings
    return quotas_of_answers(
        parse_quota_lines(settings.quotas, parse_question_lines(settings.questions)), step_result.said
    )


async def load_visited_campaign_or_refuse(connection: Driver, link_key: str) -> VisitedCampaign:
    """Return the campaign with this link key. Raises `NotFound` (`campaign_not_found`)."""
    row = await fetch_first_row_or_none(connection, SELECT_VISITED_CAMPAIGN, {"link_key": link_key}, VisitedCampaign)
    if row is None:
        raise NotFound(
            "There is no study at this address. Please check that the link is complete.", code="campaign_not_found"
        )
    return row


def visit_version_to_admit_on_arrival_or_zero(campaign: VisitedCampaign, platform: Platform) -> int:
    """Return the version of the visit that a new annotator from a platform is admitted to; 0 if a step is open."""
    open_step = first_open_step_or_none(campaign.settings, platform, VisitHistory(campaign.visit_version))
    return 0 if open_step else campaign.visit_version
