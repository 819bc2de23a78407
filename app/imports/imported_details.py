"""Comments, flags and telemetry of imported HITs, as `responses` stores those of the annotator's page."""

from typing import Any

from app.annotation.platforms.answer_details import ANSWER_DETAIL_COLUMNS
from app.designs.answer import Answer, Playback, Touch, telemetry_of_answers_json_or_none
from app.designs.remarks import WHOLE_HIT, Remark
from app.imports.imported_hits import ImportedHit


def remarks_by_subject(hit: ImportedHit) -> dict[str, Remark]:
    """Return the remarks on the items of a HIT, by their numbers, and on the HIT."""
    if not hit.answer_details:
        return {}
    remarks: dict[str, Remark] = {}
    for item, details in zip(hit.shown_items, hit.answer_details[0], strict=True):
        detail_by_column: dict[str, Any] = dict(zip(ANSWER_DETAIL_COLUMNS, details, strict=True))
        remarks[str(item)] = Remark(detail_by_column["comment"] or "", detail_by_column["flag"])
        remarks[WHOLE_HIT] = Remark(detail_by_column["hit_comment"] or "", detail_by_column["hit_flag"])
    return {about: remark for about, remark in remarks.items() if remark != Remark()}


def count_comments_and_flags(hit: ImportedHit) -> int:
    """Return how many are stored: none if the HIT has no score, and so no response."""
    if not (hit.answer_details and hit.has_response):
        return 0
    return sum(bool(remark.comment) + (remark.flag is not None) for remark in remarks_by_subject(hit).values())


def telemetry_json_or_none(hit: ImportedHit) -> str | None:
    """Return the telemetry of a HIT's response, as JSON; None if nothing is known."""
    return (
        telemetry_of_answers_json_or_none(
            [telemetry_only_answer_of_criterion(hit, number) for number in range(len(hit.answer_details))],
            hit.scored_items,
        )
        if hit.answer_details
        else None
    )


def telemetry_only_answer_of_criterion(hit: ImportedHit, criterion_number: int) -> Answer:
    """Return an answer with nothing but its telemetry."""
    touches, playbacks, viewport = {}, {}, None
    for item, details in zip(hit.shown_items, hit.answer_details[criterion_number], strict=True):
        detail_by_column: dict[str, Any] = dict(zip(ANSWER_DETAIL_COLUMNS, details, strict=True))
        touches[item] = Touch(
            detail_by_column["first_touch_ms"], detail_by_column["changes"], detail_by_column["input_kind"]
        )
        playbacks[item] = Playback(
            detail_by_column["plays"], detail_by_column["seconds_heard"], detail_by_column["switches"]
        )
        viewport = detail_by_column["viewport"]
    return Answer({}, touches, viewport, playbacks=playbacks)
