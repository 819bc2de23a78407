"""API: a campaign’s annotators: what each did and rules found, who is held or excluded; how checks were answered."""

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query
from fastapi import Path as PathParameter
from pydantic import BaseModel, Field

from app.auth.guards import program
from app.database.campaign import campaign_by_slug
from app.quality import acting, annotators, shown
from app.quality.annotator_routes import Compared, Medians
from app.quality.compared import ComparedOne
from app.quality.who_counts import LONGEST_REASON, annotator_named
from app.web import Database, Now, RowId, Transaction, refusals

NOT_FOUND = {404: "`campaign_not_found`, `annotator_not_found`"}

router = APIRouter(
    prefix="/api/v1/campaigns/{slug}",
    tags=["Annotators"],
    dependencies=[Depends(program)],
    responses=refusals({401: "`token_missing`, `token_invalid`", 422: "`invalid`"}),
)

Name = Annotated[str, PathParameter(max_length=40, description="A7, or the pseudonym that exports have.")]
Limit = Annotated[int, Query(ge=1, le=1_000)]
Offset = Annotated[int, Query(ge=0, le=10_000_000)]


class Why(BaseModel):
    reason: Annotated[str, Field(max_length=LONGEST_REASON, description="Kept with the decision and in the audit log.")]


class Bar(BaseModel):
    """Why somebody gets no further HITs."""

    how: Literal["held", "excluded"] = Field(description="excluded: their answers do not count either.")
    reason: str
    by: str
    at: datetime


class WithOthers(BaseModel):
    """The correlation with the others' means and its 95 % interval; of labels the share that most others gave too."""

    value: float
    low: float | None
    high: float | None


class Annotator(BaseModel):
    name: str = Field(description="A1 for the first one, as on pages.")
    pseudonym: str = Field(description="As in exports.")
    arrived_at: datetime
    barred: Bar | None = Field(description="Null for whoever gets HITs and counts.")
    hits_answered: int
    hits_counted: int = Field(description="Of these, those that no decision leaves out.")
    last_answer_at: datetime | None
    median_seconds: float | None = Field(description="From getting a HIT to its answer; null where nobody knows.")
    hours: float | None = Field(
        description="Of work: all of these together, where a HIT that was left open, for more than five times as long "
        "as usual and more than a minute, counts as a usual one."
    )
    pay_per_hour: float | None = Field(description="What these hours paid, in the campaign's currency, if it says.")
    with_others: WithOthers | None = Field(
        description="Null where too little is known; going along is not being right."
    )
    reliability: float | None = Field(description="0 to 1: the expected correlation with what items are worth.")
    bias: float | None = Field(description="How much higher they score the same items, in points.")
    changes: float | None = Field(description="Of a value after it was first given, the mean.")
    histogram: list[int] = Field(description="Values in each tenth of the scale, or of each class.")
    checks: int = Field(description="Gold and attention items that they answered.")
    checks_met: int = Field(description="Of these, those that are as expected.")
    findings: list[str] = Field(description="What rules saw.")

    @classmethod
    def of(cls, line: annotators.AnnotatorLine, beside: ComparedOne) -> "Annotator":
        bar = line.barred and Bar.model_validate(
            {"how": line.barred, "reason": line.barred_reason, "by": line.barred_by, "at": line.barred_at}
        )
        return cls(
            name=line.name,
            pseudonym=line.pseudonym,
            arrived_at=line.arrived_at,
            barred=bar or None,
            hits_answered=line.answers,
            hits_counted=line.counted,
            last_answer_at=line.last_at,
            median_seconds=line.seconds,
            hours=line.hours,
            pay_per_hour=line.pay_per_hour,
            with_others=WithOthers(**beside.goes._asdict()) if beside.goes else None,
            reliability=beside.reliability,
            bias=beside.bias,
            changes=line.changes,
            histogram=list(line.histogram),
            checks=line.checks,
            checks_met=line.checks_met,
            findings=list(line.findings),
        )


class Annotators(BaseModel):
    total: int
    comparing: bool = Field(description="Whether newer answers than `with_others` to `bias` know are being compared.")
    annotators: list[Annotator]


class AnswerOfAnnotator(BaseModel):
    number: int = Field(description="`seq` in the export of responses.")
    received_at: datetime
    seconds: float | None
    judged: list[tuple[str, str]] = Field(description="Pairs of an item's id and what was said of it, as presented.")
    counts: bool = Field(description="False where it, or its annotator, is excluded, or where it was taken back.")
    excluded: str | None = Field(description="Why, and by whom, where it is excluded by itself.")
    withdrawn: bool


@router.get("/annotators", responses=refusals({404: "`campaign_not_found`"}))
async def list_annotators(
    connection: Transaction,
    slug: str,
    *,
    comparisons: Compared,
    medians: Medians,
    sort: annotators.Sorting = "name",
    limit: Limit = 100,
    offset: Offset = 0,
    rising: bool = False,
) -> Annotators:
    """A campaign's annotators with what each did; of all columns but the name, who has most comes first."""
    campaign = await campaign_by_slug(connection, slug)
    found = await annotators.listed(
        connection, campaign, sorting=sort, rising=rising, limit=limit, offset=offset, medians=medians
    )
    beside = await comparisons.newest(connection, campaign)
    return Annotators(
        total=await annotators.count(connection, campaign.id),
        comparing=beside.under_way,
        annotators=[Annotator.of(line, beside.of(line.id)) for line in found],
    )


@router.get("/annotators/{annotator}", responses=refusals(NOT_FOUND))
async def get_annotator(connection: Transaction, comparisons: Compared, slug: str, annotator: Name) -> Annotator:
    """One of them."""
    campaign = await campaign_by_slug(connection, slug)
    number = await annotator_named(connection, campaign, annotator)
    (line,) = await annotators.listed(connection, campaign, limit=1, annotator=number)
    return Annotator.of(line, (await comparisons.newest(connection, campaign)).of(number))


@router.get("/annotators/{annotator}/answers", responses=refusals(NOT_FOUND))
async def list_answers(
    connection: Transaction, slug: str, annotator: Name, limit: Limit = 100, offset: Offset = 0
) -> list[AnswerOfAnnotator]:
    """An annotator's answers, the newest first; of several criteria, by the first."""
    campaign = await campaign_by_slug(connection, slug)
    number = await annotator_named(connection, campaign, annotator)
    found = await annotators.answers_of(connection, campaign, number, limit=limit, offset=offset)
    return [
        AnswerOfAnnotator(
            number=line.seq,
            received_at=line.received_at,
            seconds=line.seconds,
            judged=list(line.judged),
            counts=line.counts,
            excluded=line.excluded,
            withdrawn=line.withdrawn,
        )
        for line in found
    ]


@router.post(
    "/annotators/{annotator}/{action}",
    status_code=204,
    responses=refusals(
        NOT_FOUND
        | {
            409: "`already_held`, `already_excluded`, `not_held`, `not_excluded`, `not_launched`, `not_replayable`",
            422: "`invalid`, `reason_missing`",
        }
    ),
)
async def act_on_annotator(
    database: Database,
    slug: str,
    annotator: Name,
    *,
    action: Literal["hold", "release", "exclude", "restore"],
    why: Why,
    now: Now,
) -> None:
    """Hold an annotator (no further HITs), exclude them (no answer counts either), and take that back.

    Replies when the posteriors follow the decision; people go on answering meanwhile. The decision stands from its
    beginning on, also if the reply does not arrive.
    """
    follow = await acting.on_annotator(database, slug, annotator, action, reason=why.reason, now=now)
    await follow()


@router.post(
    "/answers/{answer}/{action}",
    status_code=204,
    responses=refusals(
        {
            404: "`campaign_not_found`, `response_not_found`",
            409: "`already_excluded`, `not_excluded`, `answer_withdrawn`, `not_replayable`",
            422: "`invalid`, `reason_missing`",
        }
    ),
)
async def act_on_answer(
    database: Database, slug: str, answer: RowId, *, action: Literal["exclude", "restore"], why: Why, now: Now
) -> None:
    """Leave one answer out by its number, `seq` in the export of responses, or take it in again."""
    follow = await acting.on_answer(database, slug, answer, action, reason=why.reason, now=now)
    await follow()


class FindingOfRule(BaseModel):
    """What a rule saw of an annotator, and did; kept as it was then."""

    id: int
    annotator: str = Field(description="A1, A2, ..., as pages call them.")
    pseudonym: str = Field(description="As in exports.")
    rule: str
    action: str = Field(description="warn, hold or exclude.")
    seen: dict[str, float] = Field(description="What it saw, in numbers by name.")
    said: str = Field(description="The same as a sentence for people.")
    found_at: datetime
    barred: str | None = Field(description="Where the annotator stands now: held, excluded, or null.")


class Check(BaseModel):
    """A gold or attention item."""

    external_id: str
    kind: str = Field(description="gold or attention.")
    shown: str
    expected: str = Field(description="In words.")
    answers: int
    failed: int
    probably_wrong: bool = Field(description="More than half of at least five answers failed: no rule counts it.")
    not_loaded: int = Field(description="Annotators who reported that its file does not load.")


@router.get("/findings", responses=refusals({404: "`campaign_not_found`"}))
async def get_findings(connection: Transaction, slug: str) -> list[FindingOfRule]:
    """The newest 200 findings, newest first."""
    campaign = await campaign_by_slug(connection, slug)
    rows = await shown.findings(connection, campaign.id)
    return [FindingOfRule(annotator=row.name, **row._asdict()) for row in rows]


@router.get("/checks", responses=refusals({404: "`campaign_not_found`"}))
async def get_checks(connection: Transaction, slug: str) -> list[Check]:
    """All gold and attention items, with how often they were failed."""
    return [Check(**asdict(line)) for line in await shown.checks(connection, await campaign_by_slug(connection, slug))]
