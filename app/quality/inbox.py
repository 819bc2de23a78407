"""Quality inbox: annotators by rules, the ones that need a decision first.

A rule's state of an annotator follows from its stored findings and from its assessment of their answers, which
`AnnotatorComparisons` keeps. Without enough work, the evidence says what is missing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Self

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.designs.campaign import Campaign
from app.errors import pluralize
from app.quality.checks import number_of_checks_per_hit
from app.quality.decisions import BlockedState
from app.quality.rule import RuleAssessment, RuleRequirement
from app.quality.rule_assessments import AssessmentsOfAnnotators
from app.quality.rule_reach import RuleReach, load_reach_summary
from app.quality.sequential_limits import MIN_OTHER_ANNOTATORS
from app.quality.settings import active_rule_choices_by_name
from app.quality.workload import AnnotatorWorkload

RuleState = Literal["flagged", "fine", "unknown", "off"]

INBOX_ROWS_PER_PAGE = 50
NOT_COMPARED_YET = RuleAssessment("unknown", "No answers that count have been compared yet.")
NEVER_COMPARED = RuleAssessment("unknown", "Answers of excluded annotators are not compared.")

COUNT_INBOX_ROWS = text("""
    SELECT count(*) FILTER (WHERE a.answered OR a.barred IS NOT NULL) AS listed,
           count(*) FILTER (WHERE NOT a.answered AND a.barred IS NULL) AS left_early
    FROM (SELECT a.barred, EXISTS (SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id)
                 AS answered FROM annotators a WHERE a.campaign_id = :campaign) AS a
""")

# Flagged annotators without a decision come first, then held ones, then those without a finding, then excluded ones.
LIST_INBOX_ROWS = text("""
    SELECT * FROM (
        SELECT a.id, 'A' || row_number() OVER (ORDER BY a.id) AS name, a.barred, a.barred_reason,
               (SELECT count(DISTINCT f.rule) FROM findings f
                WHERE f.campaign_id = :campaign AND f.annotator_id = a.id) AS findings,
               EXISTS (SELECT FROM responses r WHERE r.campaign_id = :campaign AND r.annotator_id = a.id) AS answered
        FROM annotators a WHERE a.campaign_id = :campaign
    ) AS a
    WHERE a.answered OR a.barred IS NOT NULL
    ORDER BY CASE WHEN a.barred IS NULL AND a.findings > 0 THEN 0 WHEN a.barred = 'held' THEN 1
                  WHEN a.barred IS NULL THEN 2 ELSE 3 END, a.findings DESC, a.id
    LIMIT :limit OFFSET :offset
""")

COUNT_WORK_BY_ANNOTATOR = text("""
    SELECT a.id, coalesce(sum(cardinality(r.items)), 0) AS judgments, count(r.seq) AS hits
    FROM unnest(CAST(:those AS bigint[])) AS a (id)
    LEFT JOIN responses r ON r.campaign_id = :campaign AND r.annotator_id = a.id AND r.replaces IS NULL
    GROUP BY a.id
""")

ARE_CHECKS_OR_FINDINGS_STORED = text("""
    SELECT EXISTS (SELECT FROM findings WHERE campaign_id = :campaign AND rule = :kind) OR EXISTS (
        SELECT FROM check_answers a JOIN check_items i ON i.campaign_id = a.campaign_id AND i.number = a.check_number
        WHERE a.campaign_id = :campaign AND i.kind = :kind)
""")

COUNT_CHECKS_MET_BY_ANNOTATOR = text("""
    SELECT a.annotator_id AS id, i.kind, count(*) AS shown
    FROM check_answers a JOIN check_items i ON i.campaign_id = a.campaign_id AND i.number = a.check_number
    WHERE a.campaign_id = :campaign AND a.annotator_id = ANY(CAST(:those AS bigint[])) GROUP BY 1, 2
""")

LIST_FINDINGS_OF_ANNOTATORS = text("""
    SELECT DISTINCT ON (annotator_id, rule) annotator_id AS id, rule, said, found_at FROM findings
    WHERE campaign_id = :campaign AND annotator_id = ANY(CAST(:those AS bigint[])) ORDER BY annotator_id, rule, id DESC
""")

# The largest amounts of work; one more than needed, since the annotator in question does not count.
LIST_LARGEST_WORK = text("""
    SELECT count(*) AS hits, sum(cardinality(items)) AS judgments FROM responses
    WHERE campaign_id = :campaign AND replaces IS NULL GROUP BY annotator_id ORDER BY 1 DESC LIMIT :limit
""")


@dataclass(frozen=True)
class AnnotatorWork:
    """Amount of an annotator's work, in the units of `RuleRequirement`."""

    hits: int = 0
    judgments: int = 0
    gold_items: int = 0
    attention_items: int = 0

    def amount_of_work_in_unit(self, unit: str) -> int:
        """Return the amount in a unit. An implied pair needs a HIT of its own, so HITs bound them."""
        return {
            "task": self.hits,
            "implied pair": self.hits,
            "judgment": self.judgments,
            "failed gold item": self.gold_items,
            "failed attention item": self.attention_items,
        }[unit]


@dataclass(frozen=True)
class WorkLimit:
    """The most checks that one annotator gets, by the unit of `RuleRequirement`, and whether no one gets more work."""

    max_checks: Mapping[str, int]
    max_hits: int | None
    is_campaign_over: bool

    @classmethod
    def of_campaign(cls, campaign: Campaign, workload: AnnotatorWorkload) -> Self:
        """Return the limit of a campaign."""
        per_hit = number_of_checks_per_hit(campaign)
        max_checks = {f"failed {kind} item": per_hit * count for kind, count in workload.max_checks.items()}
        return cls(max_checks, workload.max_hits, campaign.status == "finished")

    def is_reached(self, work: AnnotatorWork, unit: str) -> bool:
        """Return whether an annotator with this work gets no further checks of the unit; False for other units."""
        if unit not in self.max_checks:
            return False
        is_visit_over = self.max_hits is not None and work.hits >= self.max_hits
        return self.is_campaign_over or is_visit_over or work.amount_of_work_in_unit(unit) >= self.max_checks[unit]


class InboxCell(NamedTuple):
    """State of a rule about an annotator, with the evidence for it as a sentence, and its main number with an interval
    if the rule has one.
    """

    state: RuleState
    evidence: str
    figure: str = ""


@dataclass(frozen=True)
class InboxRow:
    """An annotator with a cell for each active rule, in the order of the rules."""

    id: int
    name: str
    barred: BlockedState | None
    barred_reason: str | None
    hits: int
    cells: Mapping[str, InboxCell]

    @property
    def flags(self) -> int:
        """Number of rules with a finding."""
        return sum(cell.state == "flagged" for cell in self.cells.values())


@dataclass(frozen=True)
class QualityInbox:
    """A page of the inbox.

    Attributes:
        rows: The annotators, those that need a decision first.
        rule_titles: Titles of the active rules that apply to the campaign, by name, without rules on checks that no
            HIT shows.
        total: Number of annotators who answered or are blocked.
        left_early: Number of annotators who left before their first answer.

    """

    rows: Sequence[InboxRow]
    rule_titles: Mapping[str, str]
    total: int
    left_early: int


async def load_page_of_quality_inbox(
    connection: AsyncConnection,
    campaign: Campaign,
    *,
    item_count: int,
    assessments: AssessmentsOfAnnotators,
    limit: int = INBOX_ROWS_PER_PAGE,
    offset: int = 0,
) -> QualityInbox:
    """Return a page of the annotators by rules. `assessments` are those by the active rules."""
    choices = active_rule_choices_by_name(campaign)
    summary = await load_reach_summary(connection, campaign, item_count=item_count)
    reaches, key = summary.by_rule, dict[str, Any]({"campaign": campaign.id})
    applicable = {
        name: choice
        for name, choice in choices.items()
        if reaches[name].starts_at
        and (
            not reaches[name].shows_no_checks
            or (await connection.execute(ARE_CHECKS_OR_FINDINGS_STORED, key | {"kind": name})).scalar_one()
        )
    }
    counts = (await connection.execute(COUNT_INBOX_ROWS, key)).one()
    rows = (await connection.execute(LIST_INBOX_ROWS, key | {"limit": limit, "offset": offset})).all()
    findings, work = await load_findings_and_work_of_annotators(connection, key | {"those": [row.id for row in rows]})
    largest = (await connection.execute(LIST_LARGEST_WORK, key | {"limit": 1 + MIN_OTHER_ANNOTATORS})).all()
    rate = campaign.false_alarms / 1000
    requirements = {
        name: choice.rule.least_work_requirement(campaign.design.value_kind, rate)
        for name, choice in applicable.items()
    }
    return QualityInbox(
        [
            build_inbox_row(
                row,
                findings=findings,
                work=work.get(row.id, AnnotatorWork()),
                requirements=requirements,
                reaches=reaches,
                largest_work=largest,
                assessments=assessments.get(row.id, {}),
                work_limit=WorkLimit.of_campaign(campaign, summary.workload),
            )
            for row in rows
        ],
        {name: choice.rule.title for name, choice in applicable.items()},
        counts.listed,
        counts.left_early,
    )


async def load_findings_and_work_of_annotators(
    connection: AsyncConnection, parameters: Mapping[str, Any]
) -> tuple[dict[tuple[int, str], str], dict[int, AnnotatorWork]]:
    """Return the newest finding by annotator and rule, and the work by annotator."""
    findings = {
        (row.id, row.rule): row.said for row in await connection.execute(LIST_FINDINGS_OF_ANNOTATORS, parameters)
    }
    checks = {
        (row.id, row.kind): row.shown for row in await connection.execute(COUNT_CHECKS_MET_BY_ANNOTATOR, parameters)
    }
    work = {
        row.id: AnnotatorWork(
            row.hits, row.judgments, checks.get((row.id, "gold"), 0), checks.get((row.id, "attention"), 0)
        )
        for row in await connection.execute(COUNT_WORK_BY_ANNOTATOR, parameters)
    }
    return findings, work


def build_inbox_row(
    row: Row[Any],
    *,
    findings: Mapping[tuple[int, str], str],
    work: AnnotatorWork,
    requirements: Mapping[str, RuleRequirement],
    reaches: Mapping[str, RuleReach],
    largest_work: Sequence[Row[Any]],
    assessments: Mapping[str, RuleAssessment],
    work_limit: WorkLimit,
) -> InboxRow:
    """Return an annotator's row. `largest_work` holds the largest amounts in the campaign, the largest first."""
    cells = {
        name: build_inbox_cell(
            requirement,
            findings.get((row.id, name), ""),
            assessments.get(name, NEVER_COMPARED if row.barred == "excluded" else NOT_COMPARED_YET),
            never_reason=reaches[name].never_reason,
            work=work,
            other_annotators=count_others_with_enough_work(requirement, work, largest_work),
            is_final=work_limit.is_reached(work, requirement.unit),
        )
        for name, requirement in requirements.items()
    }
    return InboxRow(row.id, row.name, row.barred, row.barred_reason, work.hits, cells)


def count_others_with_enough_work(
    requirement: RuleRequirement, own_work: AnnotatorWork, largest_work: Sequence[Row[Any]]
) -> int:
    """Return how many others have enough work to be compared with; more than `MIN_OTHER_ANNOTATORS` are not counted."""
    unit = "judgments" if requirement.unit == "judgment" else "hits"
    enough = sum(getattr(row, unit) >= requirement.count_per_other for row in largest_work)
    is_among_them = getattr(own_work, unit) >= requirement.count_per_other
    return enough - is_among_them if enough <= MIN_OTHER_ANNOTATORS else MIN_OTHER_ANNOTATORS


def build_inbox_cell(
    requirement: RuleRequirement,
    finding: str,
    assessment: RuleAssessment,
    *,
    never_reason: str = "",
    work: AnnotatorWork,
    other_annotators: int,
    is_final: bool = False,
) -> InboxCell:
    """Return the state of a rule about an annotator.

    Args:
        requirement: The work that the rule needs.
        finding: The newest finding as a sentence, empty without one.
        assessment: The rule's assessment of the annotator now.
        never_reason: Why the rule finds no one in this campaign, empty if it may.
        work: The annotator's work.
        other_annotators: Number of others with enough work to be compared with, up to `MIN_OTHER_ANNOTATORS`.
        is_final: Whether the annotator gets no further case that the rule reads.

    """
    if finding:
        return InboxCell("flagged", finding, assessment.figure)
    state = (assessment.final_state if is_final else None) or assessment.state
    remark = ""
    if is_final and assessment.state == "unknown":
        remark = assessment.final_remark
    if state == "unknown" and not remark:
        remark = never_reason or sentence_on_missing_work_or_empty(requirement, work, other_annotators)
    return InboxCell(state, " ".join(filter(None, (assessment.sentence, remark))), assessment.figure)


def sentence_on_missing_work_or_empty(requirement: RuleRequirement, work: AnnotatorWork, other_annotators: int) -> str:
    """Return which work of the annotator, or of others, the rule needs to flag someone; empty if there is enough."""
    amount, unit = work.amount_of_work_in_unit(requirement.unit), requirement.unit.removeprefix("failed ")
    if unit == "implied pair":
        unit = "task"
    if amount < requirement.count:
        return f"Needs {pluralize(requirement.count, unit)}; so far {amount:,}."
    if requirement.count_per_other and other_annotators < requirement.other_annotators:
        needed = f"{requirement.other_annotators} others with {pluralize(requirement.count_per_other, unit)} each"
        return f"Needs {needed}; so far {other_annotators}."
    return ""
