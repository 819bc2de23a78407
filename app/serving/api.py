"""API: the next HIT for an annotator whom the program names, and the answer to it."""

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, Self

from fastapi import APIRouter, Depends, Request
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from app.auth import guards
from app.crowd.annotators import AssignmentId
from app.crowd.platform import LONGEST_ID
from app.database.session import Driver
from app.designs.answer import Answer, AnswerByCriterion, Given, InputKind, Touch
from app.designs.asked import AskedValues
from app.designs.content import Above
from app.designs.criteria import AskedBy, asked_of, for_criterion
from app.designs.design import plain_text
from app.designs.numbers import LARGEST_COUNT
from app.designs.registry import design_of
from app.designs.remarks import HIT, LONGEST_COMMENT, Remark, RemarkOn
from app.designs.scale import POINTS
from app.errors import Invalid, NotFound, listed, shortened, some_of
from app.fields import LARGEST_ID, InputModel, plain_id
from app.serving import leases, outside, submission, undo
from app.visit import consent, progress
from app.web import Now, RowId, ServingConnection, address_of, get_now, refusals

router = APIRouter(
    prefix="/api/v1",
    tags=["Serving"],
    responses=refusals({401: "`token_missing`, `token_invalid`", 422: "`invalid`; `details.fields` names each field"}),
)


def without_controls(text: str) -> str:
    if CONTROLS.search(text):
        raise ValueError("must have no control characters, such as line breaks")
    return text


CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
Annotator = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=LONGEST_ID),
    AfterValidator(without_controls),
]


async def connection_of_program(
    request: Request, token: guards.Token, connection: ServingConnection, now: Now
) -> Driver:
    """The connection of a program that may come in: one per request, also for finding out whether it may."""
    await guards.admit_program(connection, request, token, now=now)
    return connection


async def hit_shown_to_program(request: Request, token: guards.Token) -> outside.HitOfProgram:
    """The HIT at this address, for a program whose token is good; that is said first, whatever the address is."""
    hit_id = plain_id(request.path_params["hit_id"])
    async with request.app.state.serving_connections.borrow() as connection:
        now = await get_now()
        hit = await outside.hit_answered(connection, token, hit_id, address_of(request), now=now)
    guards.require_access_to_hit(request, hit.access, found=hit.campaign_id is not None)
    return hit


HitShownBefore = Annotated[outside.HitOfProgram, Depends(hit_shown_to_program)]


async def connection_for_hit(request: Request, hit: HitShownBefore) -> AsyncIterator[Driver]:
    """A connection for the HIT's campaign, which only the HIT names."""
    async with request.app.state.serving_connections.borrow(hit.campaign_id) as connection:
        yield connection


class WhoAsks(InputModel):
    annotator: Annotator = Field(description="Your own id of the person (or program) that answers.")


class ItemShown(BaseModel):
    id: str
    text: str


class CriterionAsked(BaseModel):
    """One of the questions about each item."""

    name: str
    question: str
    low_label: str
    middle_label: str | None
    high_label: str
    values: AskedValues

    @classmethod
    def of(cls, asked: AskedBy) -> Self:
        """As a page has it."""
        by, labels = asked.campaign, ("question", "low_label", "middle_label", "high_label")
        said = {label: getattr(by, label) for label in labels}
        return cls(name=by.criterion_name, values=AskedValues.of(asked.design), **said)


class HitShown(BaseModel):
    id: int
    items: list[ItemShown] = Field(description="In the order to show them in, which is random.")
    source: str | None = Field(description="What the items are outputs for, where they are outputs of systems.")
    reference: str | None = Field(description="An example of a good output, likewise.")
    values: AskedValues = Field(description="What is asked of each item; of several criteria, by the first.")
    criteria: list[CriterionAsked] = Field(
        description="Where each item is judged by several criteria: these, in the order to ask this annotator in."
    )
    reasons: list[str] | None = Field(
        description="Why an item cannot be judged: those to choose from, none where none is asked for; null where the "
        "campaign does not let annotators say so."
    )
    comment_on: RemarkOn = Field(description="What the annotator may comment on.")
    flag_on: RemarkOn = Field(description="Of what the annotator may say that something is wrong with it.")
    flag_reasons: list[str] | None = Field(
        description="What can be wrong: the reasons to choose from, none where none is asked for; null where nothing "
        "can be flagged."
    )
    expires_at: datetime = Field(description="Until then the items are held for this annotator.")


class Work(BaseModel):
    """A HIT, or the reason why there is none."""

    hit: HitShown | None
    reason: leases.Reason | None = Field(
        description="Why there is no HIT. After `wait` and `paused` ask again later; after the others do not."
    )


CONSENT_NEEDED = "`consent_needed`: `details` has the `version` and the `markdown` to show; then send the consent"


@router.post("/campaigns/{slug}/hits", responses=refusals({404: "`campaign_not_found`", 409: CONSENT_NEEDED}))
async def next_hit(
    request: Request,
    connection: Annotated[Driver, Depends(connection_of_program)],
    now: Now,
    slug: str,
    who: WhoAsks,
) -> Work:
    """The HIT this annotator holds, else a new one. Asking again before answering gives the same HIT."""
    them, cache = outside.by_name(slug, who.annotator), request.app.state.posterior_cache
    try:
        work = await leases.next_hit(connection, cache, them, now=now)
    except NotFound:
        await outside.arrival_of(connection, slug, who.annotator, now=now)
        work = await leases.next_hit(connection, cache, them, now=now)
    if work.reason == "visit":
        raise await outside.consent_needed(connection, work.assignment)
    if work.wants_a_look:
        request.app.state.looks.ask(work.assignment.id)
    if work.hit is None:
        return Work(hit=None, reason=work.reason)
    pairs = zip(work.hit.ids, work.hit.texts, strict=True)
    items = [ItemShown(id=external_id, text=text) for external_id, text in pairs]
    here, above = work.assignment, work.hit.above or Above()
    asked = asked_of(here, here.annotator_id) if here.criteria else []
    shown = HitShown(
        id=work.hit.id,
        items=items,
        **above._asdict(),
        values=AskedValues.of(design_of(for_criterion(here, 0))),
        criteria=[CriterionAsked.of(one) for one in asked],
        reasons=here.unjudged_reasons if here.cannot_be_judged else None,
        comment_on=here.comment_on,
        flag_on=here.flag_on,
        flag_reasons=here.flag_reasons if here.flag_on != "none" else None,
        expires_at=work.hit.expires_at,
    )
    return Work(hit=shown, reason=None)


class ConsentSent(WhoAsks):
    version: int = Field(ge=0, le=LARGEST_COUNT, description="Of the text that was shown.")
    agreed: bool = Field(description="Whether they agree. Who does not gets no HIT.")


class Agreement(BaseModel):
    version: int
    agreed: bool


@router.post(
    "/campaigns/{slug}/consents",
    responses=refusals({404: "`campaign_not_found`", 422: "`invalid`, `consent_changed`: show the new text first"}),
)
async def agree(
    connection: Annotated[Driver, Depends(connection_of_program)], now: Now, slug: str, sent: ConsentSent
) -> Agreement:
    """Store what a person whom the program asked said to the campaign's consent. Sending it again changes nothing; the
    reply says what is stored.
    """
    assignment = await outside.arrival_of(connection, slug, sent.annotator, now=now)
    form = {"version": str(sent.version), "answer": "yes" if sent.agreed else "no"}
    await progress.take(connection, await progress.find(connection, assignment), consent.NAME, form, now=now)
    stored = consent.answer_to(sent.version, (await progress.find(connection, assignment)).facts)
    return Agreement(version=stored.version, agreed=stored.outcome == "passed")


Count = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]


class TouchSent(InputModel):
    """How one score came about, as far as the program knows."""

    first_touch_ms: Count | None = Field(default=None, description="After the HIT was shown.")
    changes: Count | None = None
    input_kind: InputKind | None = None


# A length also makes Pydantic look whether a text is one that UTF-8 can say.
ItemId = Annotated[str, StringConstraints(max_length=LONGEST_ID)]
# Strict: a number in JSON. A text would be read as Python reads one, with `1_0` and digits of other scripts.
Score = Annotated[float, Field(ge=0, le=POINTS, allow_inf_nan=False, strict=True)]


Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
ClassLabel = Annotated[str, StringConstraints(max_length=500)]
Value = Number | ClassLabel


Values = dict[ItemId, Value | None] | list[Value | None]
CriterionName = Annotated[str, StringConstraints(max_length=80)]


def touches_named(telemetry: object) -> str:
    """What telemetry is by. Where nothing says so, as in `{"x": {}}`, it may be by either."""
    touches = telemetry.values() if isinstance(telemetry, dict) else [None]
    nested = all(isinstance(told, dict) and all(isinstance(one, dict) for one in told.values()) for told in touches)
    return "criteria" if nested else "items"


Comment = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=LONGEST_COMMENT), BeforeValidator(plain_text)
]
Wrong = Annotated[str, StringConstraints(max_length=80)]
Touches = dict[ItemId, TouchSent]
Telemetry = Annotated[
    Annotated[Touches, Tag("items")] | Annotated[dict[CriterionName, Touches], Tag("criteria")],
    Discriminator(touches_named),
]


class Response(InputModel):
    annotator: Annotator
    scores: dict[ItemId, Score | None] | list[Score | None] | None = Field(
        default=None,
        description="Where points are asked for, from 0 to 100 for every item: by item id, or in the HIT's order. Null "
        "for an item that cannot be judged.",
    )
    values: Values | dict[CriterionName, Values] | None = Field(
        default=None,
        description="In the place of `scores`, whatever the way of asking: what the HIT's `values` say. Where they "
        "have `classes`, a number is that of a class and a text its label, also a label of digits. Where the HIT has "
        "`criteria`, such values by the name of each.",
    )
    reasons: dict[ItemId, Annotated[str, StringConstraints(max_length=80)]] = Field(
        default_factory=dict,
        description="By item id, why it cannot be judged: one of the HIT's `reasons` for each item without a value.",
    )
    comment: Comment = Field(default="", description="On the HIT, where `comment_on` says HIT or both.")
    comments: dict[ItemId, Comment] = Field(
        default_factory=dict, description="By item id, where `comment_on` says items or both."
    )
    flag: Wrong | None = Field(default=None, description="What is wrong with the HIT, as in `flags`.")
    flags: dict[ItemId, Wrong] = Field(
        default_factory=dict,
        description="By item id, what is wrong with it: one of the HIT's `flag_reasons`, or an empty text where there "
        "are none.",
    )
    telemetry: Telemetry = Field(
        default_factory=dict, description="By item id; where the HIT has `criteria`, such by the name of each."
    )
    viewport: Annotated[str, StringConstraints(max_length=40)] | None = None
    replaces: Annotated[int, Field(ge=1, le=LARGEST_ID)] | None = Field(
        default=None,
        description="To change the answer that this annotator gave last: its `seq`. Both stay in the record, and once "
        "that is acted on this one counts.",
    )

    @model_validator(mode="after")
    def one_of_both(self) -> Self:
        if (self.scores is None) == (self.values is None):
            raise PydanticCustomError("missing", "Give either scores or values")
        other = TouchSent if self.by_criterion else dict
        if any(told and isinstance(told, other) for told in self.telemetry.values()):
            raise PydanticCustomError("telemetry", "Name criteria in both values and telemetry, or in neither")
        return self

    @property
    def by_criterion(self) -> bool:
        """Whether it names criteria."""
        values = self.values.values() if isinstance(self.values, dict) else ()
        return any(isinstance(said, dict | list) for said in values)

    def parts(self) -> Mapping[str, tuple[Values, Touches]]:
        """What is said by each criterion, by its name; by one without a name where none are named. Raises `Invalid`
        (`criterion_unknown`).
        """
        touches: Any = self.telemetry
        values: Any = self.values if self.scores is None else self.scores
        if not self.by_criterion:
            return {"": (values, {item: touch or TouchSent() for item, touch in touches.items()})}
        names = list(values)
        if unknown := touches.keys() - values.keys():
            raise Invalid(
                f"Telemetry names “{shortened(min(unknown))}”, and values only {listed(names)}. Nothing was stored.",
                code="criterion_unknown",
                criteria=some_of(names),
            )
        return {name: (said, touches.get(name, {})) for name, said in values.items()}


class Receipt(BaseModel):
    hit: int
    seq: int = Field(description="The response's number; a replay applies responses in this order.")
    repeated: bool = Field(description="There was an answer already, and this one changed nothing.")


@router.post(
    "/hits/{hit_id}/response",
    responses=refusals(
        {
            404: "`hit_not_found`",
            409: "`answer_final`: what `replaces` names is not the last answer, or can be changed no more; "
            "`answer_changed_often`: it was changed 20 times",
            410: "`lease_expired`: others have answered meanwhile",
            422: "`invalid`, `scores_missing`, `scores_unknown`, `class_unknown`, `reason_missing`, `reason_unknown`, "
            "`criteria_missing`, `criterion_unknown`, `judged_in_part`, `remark_not_offered`",
        }
    ),
)
async def submit(
    request: Request,
    hit: HitShownBefore,
    connection: Annotated[Driver, Depends(connection_for_hit, scope="function")],
    now: Now,
    *,
    hit_id: RowId,
    response: Response,
) -> Receipt:
    """Answer a HIT. Response and posteriors are stored together before this returns; sending it again is safe."""
    outside.refuse_others(hit, hit_id, response.annotator)
    answers = {name: answer_of(hit, values, touches, response) for name, (values, touches) in response.parts().items()}
    answer = AnswerByCriterion(answers) if response.by_criterion else answers[""]
    assignment = AssignmentId(hit.campaign_id, hit.assignment_id)
    if response.replaces is None:
        receipt = await submission.submit(connection, assignment, hit_id, answer, now=now)
    else:
        receipt = await undo.replace(connection, assignment, hit_id, response.replaces, answer, now=now)
    request.app.state.looks.ask(hit.campaign_id)
    return Receipt(hit=receipt.hit_id, seq=receipt.seq, repeated=receipt.repeated)


def answer_of(
    hit: outside.HitOfProgram,
    sent: Mapping[str, Given | None] | Sequence[Given | None],
    telemetry: Mapping[str, TouchSent],
    response: Response,
) -> Answer:
    """What is said by one criterion, or by the one question. Raises what `outside` does."""
    touches = {number: Touch(**touch.model_dump()) for number, touch in outside.by_number(hit, telemetry).items()}
    given = outside.values_by_number(hit, sent)
    values = {number: value for number, value in given.items() if value is not None}
    unjudged = outside.reasons_by_number(hit, response.reasons, given.keys() - values.keys())
    remarks = remarks_of(hit, response)
    return Answer(values, touches, response.viewport, outside.PLATFORM, unjudged, remarks)


def remarks_of(hit: outside.HitOfProgram, response: Response) -> dict[str, Remark]:
    """What is said beside the values, by what it is about. Raises `Invalid` (`scores_unknown`)."""
    comments, flags = outside.by_number(hit, response.comments), outside.by_number(hit, response.flags)
    said = {str(item): Remark(comments.get(item, ""), flags.get(item)) for item in {**comments, **flags}}
    said |= {HIT: Remark(response.comment, response.flag)}
    return {about: remark for about, remark in said.items() if remark != Remark()}
