"""API: the next HIT of an annotator that the program names, and the answer to it."""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
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

from app.annotation.hits import program_annotators, undo
from app.annotation.hits.assignment import AssignmentQuery
from app.annotation.hits.dependencies import (
    LoadedProgramHit,
    admit_program_and_return_connection,
    admit_program_without_connection,
)
from app.annotation.hits.hit_schemas import HitCriterionSchema, HitItemSchema, HitSchema, NextHitSchema, ReceiptSchema
from app.annotation.hits.leases import NextHitRequest
from app.annotation.hits.locked_answers import SubmittedAnswer
from app.annotation.hits.next_hit import NextHit
from app.annotation.hits.visit_requests import VisitReply, VisitRequest
from app.annotation.onboarding import consent, visit_progress
from app.annotation.platforms.assignments import AssignmentId
from app.annotation.platforms.platform import MAX_PLATFORM_ID_CHARACTERS
from app.database.session import Driver
from app.designs import remarks as designs_remarks
from app.designs.answer import (
    MAX_VIEWPORT_CHARACTERS,
    Answer,
    AnswerByCriterion,
    AnswerValue,
    InputKind,
    Playback,
    Touch,
)
from app.designs.content import SourceAndReference
from app.designs.design import visible_text_without_controls_or_raise
from app.designs.field_flags import InputModel, RequestBody
from app.designs.number_parsing import MAX_COUNT
from app.designs.playback import MAX_SECONDS
from app.designs.scale import MAX_POINTS
from app.designs.schema import ValueSchema
from app.errors import (
    Invalid,
    NotFound,
    join_names,
    shorten_echo,
    shortened_names_that_message_shows,
)
from app.http.dependencies import (
    MAX_ROW_ID,
    Now,
    RowId,
    borrow_serving_connection,
    openapi_description_of_refusals,
)

router = APIRouter(
    prefix="/api/v1",
    tags=["Serving"],
    responses=openapi_description_of_refusals(
        {401: "`token_missing`, `token_invalid`", 422: "`invalid`; `details.fields` names each field"}
    ),
)


def text_or_raise_for_control_characters(text: str) -> str:
    if CONTROL_CHARACTERS.search(text):
        raise ValueError("must have no control characters, such as line breaks")
    return text


CONTROL_CHARACTERS = re.compile(r"[\x00-\x1f\x7f]")
AnnotatorName = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_PLATFORM_ID_CHARACTERS),
    AfterValidator(text_or_raise_for_control_characters),
]


class AnnotatorRequest(RequestBody):
    annotator: AnnotatorName = Field(description="Your own id of the person (or program) that answers.")


CONSENT_NEEDED = "`consent_needed`: `details` has the `version` and the `markdown` to show; then send the consent"


@router.post(
    "/campaigns/{slug}/hits",
    responses=openapi_description_of_refusals({404: "`campaign_not_found`", 409: CONSENT_NEEDED}),
    dependencies=[Depends(admit_program_without_connection)],
)
async def request_next_hit(request: Request, now: Now, slug: str, request_body: AnnotatorRequest) -> NextHitSchema:
    """Return the HIT that this annotator holds, or a new one. A repeated request before the answer returns the same
    HIT.
    """
    next_hit = await submit_next_hit_request_for_program_annotator(request, slug, request_body.annotator, now=now)
    if next_hit.reason == "visit":
        async with borrow_serving_connection(request) as connection:
            raise await program_annotators.load_consent_needed_error(connection, next_hit.assignment)
    if next_hit.should_check_goal:
        request.app.state.campaign_monitor.request_scan(next_hit.assignment.campaign_id)
    if next_hit.hit is None:
        return NextHitSchema(hit=None, reason=next_hit.reason)
    pairs = zip(next_hit.hit.ids, next_hit.hit.texts, strict=True)
    items = [HitItemSchema(id=external_id, text=text) for external_id, text in pairs]
    assignment, source_and_reference = next_hit.assignment, next_hit.hit.source_and_reference or SourceAndReference()
    criteria = assignment.shuffled_criteria_for_annotator(assignment.annotator_id) if assignment.has_criteria else []
    hit_schema = HitSchema(
        id=next_hit.hit.id,
        items=items,
        **source_and_reference._asdict(),
        values=ValueSchema.from_design(assignment.criteria[0].design),
        criteria=[HitCriterionSchema.from_criterion(criterion) for criterion in criteria],
        reasons=assignment.unjudged_reasons if assignment.cannot_be_judged else None,
        comment_on=assignment.comment_on,
        comment_request=designs_remarks.comment_request_or_none(assignment),
        comment_question=designs_remarks.asked_comment_question_or_none(assignment),
        flag_on=assignment.flag_on,
        flag_reasons=assignment.flag_reasons if assignment.flag_on != "none" else None,
        block_notice=next_hit.block_notice,
        expires_at=next_hit.hit.expires_at,
    )
    return NextHitSchema(hit=hit_schema, reason=None)


async def submit_next_hit_request_for_program_annotator(
    request: Request, slug: str, annotator: str, *, now: datetime
) -> NextHit:
    """Return the next HIT of an annotator, whose assignment is read again if the remembered one is gone or erased."""
    assignments: program_annotators.ProgramAssignments = request.app.state.program_assignments
    if remembered := assignments.ids.get((slug, annotator)):
        with suppress(NotFound):
            next_hit = await queue_next_hit_request_and_await_reply(request, remembered, now=now)
            if next_hit.reason != "erased":  # else nothing names the annotator, who is a new one to other processes
                return next_hit
    assignment = await find_or_create_program_assignment(request, slug, annotator, now=now)
    return await queue_next_hit_request_and_await_reply(request, assignment, now=now)


async def queue_next_hit_request_and_await_reply(
    request: Request, assignment: AssignmentId, *, now: datetime
) -> NextHit:
    visit_request = VisitRequest(next_hit=NextHitRequest(AssignmentQuery(assignment), now))
    reply: VisitReply = await request.app.state.visit_requests.submit_and_await_reply(
        assignment.campaign_id, visit_request
    )
    return reply.next_hit_or_raise_refusal()


async def find_or_create_program_assignment(
    request: Request, slug: str, annotator: str, *, now: datetime
) -> AssignmentId:
    """Return the assignment of an annotator whom this process does not remember, and remember it."""
    assignments: program_annotators.ProgramAssignments = request.app.state.program_assignments
    async with borrow_serving_connection(request) as connection:
        return await assignments.find_or_create_assignment(connection, slug, annotator, now=now)


class ConsentRequest(AnnotatorRequest):
    version: int = Field(ge=0, le=MAX_COUNT, description="Version of the text that was shown.")
    agreed: bool = Field(description="True if the annotator agrees. An annotator who does not agree gets no HIT.")


class ConsentSchema(BaseModel):
    version: int
    agreed: bool


@router.post(
    "/campaigns/{slug}/consents",
    responses=openapi_description_of_refusals(
        {404: "`campaign_not_found`", 422: "`invalid`, `consent_changed`: show the new text first"}
    ),
)
async def store_consent(
    request: Request,
    connection: Annotated[Driver, Depends(admit_program_and_return_connection)],
    now: Now,
    slug: str,
    request_body: ConsentRequest,
) -> ConsentSchema:
    """Store an annotator's answer to the campaign's consent text. A repeated request changes nothing; the reply has the
    stored answer.
    """
    assignments: program_annotators.ProgramAssignments = request.app.state.program_assignments
    assignment = await assignments.find_or_create_assignment(connection, slug, request_body.annotator, now=now)
    form = {"version": str(request_body.version), "answer": "yes" if request_body.agreed else "no"}
    await visit_progress.store_result_of_open_step(
        connection,
        await visit_progress.load_visit_or_refuse(connection, assignment),
        consent.CONSENT_STEP,
        form,
        now=now,
    )
    stored = consent.consent_result_of_version_or_refuse(
        request_body.version, (await visit_progress.load_visit_or_refuse(connection, assignment)).history
    )
    return ConsentSchema(version=stored.version, agreed=stored.outcome == "passed")


TouchCount = Annotated[int, Field(ge=0, le=MAX_COUNT)]


class TouchSchema(InputModel):
    """Telemetry of one score, as far as the program knows it. Further fields are not stored."""

    first_touch_ms: TouchCount | None = Field(default=None, description="Time after the HIT was shown, in ms.")
    changes: TouchCount | None = None
    input_kind: InputKind | None = None
    plays: TouchCount | None = Field(default=None, description="How often a recording or a video was played.")
    seconds_heard: Annotated[float, Field(ge=0, le=MAX_SECONDS, allow_inf_nan=False)] | None = Field(
        default=None, description="How many of its seconds were played, each counted once."
    )
    switches: TouchCount | None = Field(
        default=None, description="How often the annotator went to it from another recording."
    )


# The length limit also makes Pydantic reject text that UTF-8 cannot encode.
ItemId = Annotated[str, StringConstraints(max_length=MAX_PLATFORM_ID_CHARACTERS)]
# Strict: only JSON numbers. Python would also parse texts such as `1_0` and digits of other scripts.
Score = Annotated[float, Field(ge=0, le=MAX_POINTS, allow_inf_nan=False, strict=True)]


FiniteNumber = Annotated[float, Field(allow_inf_nan=False, strict=True)]
ClassLabelText = Annotated[str, StringConstraints(max_length=500)]
ResponseValue = FiniteNumber | ClassLabelText


ResponseValues = dict[ItemId, ResponseValue | None] | list[ResponseValue | None]
CriterionNameText = Annotated[str, StringConstraints(max_length=80)]


def kind_of_telemetry_keys(telemetry: object) -> str:
    """Return "criteria" if telemetry is nested by criterion, else "items". `{"x": {}}` fits both: "criteria" then."""
    entries = telemetry.values() if isinstance(telemetry, dict) else [None]
    is_nested = all(
        isinstance(entry, dict) and all(isinstance(value, dict) for value in entry.values()) for entry in entries
    )
    return "criteria" if is_nested else "items"


Comment = Annotated[
    str,
    StringConstraints(strip_whitespace=True, max_length=designs_remarks.MAX_COMMENT_CHARS),
    BeforeValidator(visible_text_without_controls_or_raise),
]
FlagReasonText = Annotated[str, StringConstraints(max_length=designs_remarks.MAX_FLAG_CHARS)]
Touches = dict[ItemId, TouchSchema]
Telemetry = Annotated[
    Annotated[Touches, Tag("items")] | Annotated[dict[CriterionNameText, Touches], Tag("criteria")],
    Discriminator(kind_of_telemetry_keys),
]


class ResponseRequest(RequestBody):
    annotator: AnnotatorName
    scores: dict[ItemId, Score | None] | list[Score | None] | None = Field(
        default=None,
        description="Points from 0 to 100 for every item, if the campaign asks for points: by item id, or in the HIT's "
        "order. Null for an item that cannot be judged.",
    )
    values: ResponseValues | dict[CriterionNameText, ResponseValues] | None = Field(
        default=None,
        description="Instead of `scores`, for every design: values as the HIT's `values` describe them. If these have "
        "`classes`, give the number of a class, or its label as a text (also a label of digits). If the HIT has "
        "`criteria`, give such values by the name of each criterion.",
    )
    reasons: dict[ItemId, Annotated[str, StringConstraints(max_length=80)]] = Field(
        default_factory=dict,
        description="Reasons why items cannot be judged, by item id: one of the HIT's `reasons` for each item without "
        "a value.",
    )
    comment: Comment = Field(default="", description="Comment on the HIT, if `comment_on` is HIT or both.")
    comments: dict[ItemId, Comment] = Field(
        default_factory=dict, description="Comments by item id, if `comment_on` is items or both."
    )
    flag: FlagReasonText | None = Field(default=None, description="Problem with the HIT, in the form of `flags`.")
    flags: dict[ItemId, FlagReasonText] = Field(
        default_factory=dict,
        description="Problems by item id: one of the HIT's `flag_reasons`, or an empty text if it has none.",
    )
    telemetry: Telemetry = Field(
        default_factory=dict,
        description="Telemetry by item id; if the HIT has `criteria`, by criterion name and then by item id.",
    )
    viewport: Annotated[str, StringConstraints(max_length=MAX_VIEWPORT_CHARACTERS)] | None = None
    replaces: Annotated[int, Field(ge=1, le=MAX_ROW_ID)] | None = Field(
        default=None,
        description="`seq` of this annotator's last answer, to change it. Both answers stay in the record; only the "
        "new one counts once the change is processed.",
    )

    @model_validator(mode="after")
    def require_criteria_in_both_or_neither(self) -> Self:
        if (self.scores is None) == (self.values is None):
            raise PydanticCustomError("missing", "Give either scores or values")
        wrong_type = TouchSchema if self.has_criteria else dict
        if any(entry and isinstance(entry, wrong_type) for entry in self.telemetry.values()):
            raise PydanticCustomError("telemetry", "Name criteria in both values and telemetry, or in neither")
        return self

    @property
    def has_criteria(self) -> bool:
        """True if the values are given by criterion name."""
        values = self.values.values() if isinstance(self.values, dict) else ()
        return any(isinstance(value, dict | list) for value in values)

    def values_and_touches_by_criterion_or_refuse(self) -> Mapping[str, tuple[ResponseValues, Touches]]:
        """Return values and telemetry by criterion name, under the name "" if the request names no criteria.

        Raises:
            Invalid: `criterion_unknown`, if telemetry names a criterion that has no values.

        """
        touches: Any = self.telemetry
        values: Any = self.values if self.scores is None else self.scores
        if not self.has_criteria:
            return {"": (values, {item: touch or TouchSchema() for item, touch in touches.items()})}
        names = list(values)
        if unknown := touches.keys() - values.keys():
            raise Invalid(
                f"The telemetry has a criterion “{shorten_echo(min(unknown))}”, but the values have only "
                f"{join_names(names)}. Nothing was stored.",
                code="criterion_unknown",
                criteria=shortened_names_that_message_shows(names),
            )
        return {name: (criterion_values, touches.get(name, {})) for name, criterion_values in values.items()}


@router.post(
    "/hits/{hit_id}/response",
    responses=openapi_description_of_refusals(
        {
            404: "`hit_not_found`",
            409: "`answer_final`: `replaces` is not the last answer, or that answer can no longer be changed; "
            "`answer_changed_often`: the answer was changed 20 times",
            410: "`lease_expired`: other annotators have answered meanwhile",
            422: "`invalid`, `scores_missing`, `scores_unknown`, `class_unknown`, `reason_missing`, `reason_unknown`, "
            "`criteria_missing`, `criterion_unknown`, `judged_in_part`, `remark_not_offered`, `comment_missing`",
        }
    ),
)
async def post_response(
    request: Request,
    hit: LoadedProgramHit,
    now: Now,
    *,
    hit_id: RowId,
    response: ResponseRequest,
) -> ReceiptSchema:
    """Store the answer to a HIT. Response and posteriors are stored together before this returns; a repeated request is
    safe.
    """
    program_annotators.refuse_unless_hit_is_of_annotator(hit, hit_id, response.annotator)
    answers = {
        name: build_program_answer_or_refuse(hit, values, touches, response)
        for name, (values, touches) in response.values_and_touches_by_criterion_or_refuse().items()
    }
    answer = AnswerByCriterion(answers) if response.has_criteria else answers[""]
    assignment = AssignmentId(hit.campaign_id, hit.assignment_id)
    state = request.app.state
    if response.replaces is None:
        visit_request = VisitRequest(SubmittedAnswer(assignment, hit_id, answer, now))
        receipt = (
            await state.visit_requests.submit_and_await_reply(hit.campaign_id, visit_request)
        ).receipt_or_raise_refusal()
    else:
        async with state.serving_connections.borrow_autocommit_connection(hit.campaign_id) as connection:
            receipt = await undo.replace_answer_and_return_receipt_or_refuse(
                connection, assignment, hit_id, response.replaces, answer, now=now
            )
    state.campaign_monitor.request_scan(hit.campaign_id)
    return ReceiptSchema(hit=receipt.hit_id, seq=receipt.seq, repeated=receipt.repeated)


def build_program_answer_or_refuse(
    hit: program_annotators.ProgramHit,
    values_sent: Mapping[str, AnswerValue | None] | Sequence[AnswerValue | None],
    telemetry: Mapping[str, TouchSchema],
    response: ResponseRequest,
) -> Answer:
    """Return the answer by one criterion, or to the only question.

    Raises:
        Invalid: `scores_unknown`, `reason_unknown`.

    """
    telemetry_by_item = program_annotators.values_by_number_from_values_by_id_or_refuse(hit, telemetry)
    touches = {
        number: Touch(sent.first_touch_ms, sent.changes, sent.input_kind) for number, sent in telemetry_by_item.items()
    }
    playbacks = {
        number: Playback(sent.plays, sent.seconds_heard, sent.switches) for number, sent in telemetry_by_item.items()
    }
    values_by_item = program_annotators.values_by_item_number_or_refuse(hit, values_sent)
    values = {number: value for number, value in values_by_item.items() if value is not None}
    unjudged = program_annotators.reason_or_empty_by_unjudged_number_or_refuse(
        hit, response.reasons, values_by_item.keys() - values.keys()
    )
    remarks = remarks_by_item_number_or_hit_or_refuse(hit, response)
    source = program_annotators.API_PLATFORM_NAME
    return Answer(values, touches, response.viewport, source, unjudged, remarks, playbacks=playbacks)


def remarks_by_item_number_or_hit_or_refuse(
    hit: program_annotators.ProgramHit, response: ResponseRequest
) -> dict[str, designs_remarks.Remark]:
    """Return comments and flags by item number, or `WHOLE_HIT`. Raises `Invalid` (`scores_unknown`)."""
    comments, flags = (
        program_annotators.values_by_number_from_values_by_id_or_refuse(hit, response.comments),
        program_annotators.values_by_number_from_values_by_id_or_refuse(hit, response.flags),
    )
    remarks = {
        str(item): designs_remarks.Remark(comments.get(item, ""), flags.get(item)) for item in {**comments, **flags}
    }
    remarks |= {designs_remarks.WHOLE_HIT: designs_remarks.Remark(response.comment, response.flag)}
    return {about: remark for about, remark in remarks.items() if remark != designs_remarks.Remark()}
