"""MTurk's external question: the page is in a frame, each assignment is one HIT, and a form returns the worker."""

from collections.abc import Mapping

from app.annotation.platforms.mturk import results
from app.annotation.platforms.platform import (
    Arrival,
    ArrivalParameters,
    Completion,
    Platform,
    ReturnSettings,
    VisitOutcome,
)
from app.errors import Invalid
from app.http.languages.catalogue import message_marked_for_translation
from app.settings import Settings

MTURK_PREVIEW_ASSIGNMENT_ID = "ASSIGNMENT_ID_NOT_AVAILABLE"
MTURK_ORIGINS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
MTURK_FRAME_ORIGINS = (*MTURK_ORIGINS, "https://worker.mturk.com")
MTURK_IDENTIFIERS = ArrivalParameters(
    ("assignmentId", "hitId", "workerId"),
    "Nothing was stored. Please return the task on the platform’s page and tell the requester.",
    "Put the external question URL into ExternalURL as the Share page shows it. The platform itself adds assignmentId, "
    "hitId and workerId, each once.",
)


def mturk_submit_origins(settings: Settings) -> tuple[str, ...]:
    """Return the origins to which worker ids may be posted: MTurk's two, and those of the operator's setting."""
    return (*MTURK_ORIGINS, *settings.mturk_submit_origins)


def submit_origin_or_refuse(origin: str, settings: Settings) -> str:
    """Return `origin` without a trailing slash. Raises `Invalid` (`submit_url_not_allowed`) for any other host."""
    bare_origin = origin.rstrip("/")
    if bare_origin not in mturk_submit_origins(settings):
        raise Invalid(
            "This link asks Easel to send your answer to a site it does not know. Nothing was sent. "
            "Please return this task and tell the requester.",
            code="submit_url_not_allowed",
        )
    return bare_origin


def mturk_arrival_or_none_if_preview(parameters: Mapping[str, str], settings: Settings) -> Arrival | None:
    """Return the arriving worker; None for a preview, which has no usable assignment and stores nothing."""
    if parameters.get("assignmentId", MTURK_PREVIEW_ASSIGNMENT_ID) == MTURK_PREVIEW_ASSIGNMENT_ID:
        return None
    assignment_id, hit_id, worker_id = MTURK_IDENTIFIERS.read_values(parameters)
    submit_to = submit_origin_or_refuse(parameters.get("turkSubmitTo") or MTURK_ORIGINS[0], settings)
    return Arrival(
        worker_id, assignment_id, {"hitId": hit_id, "assignmentId": assignment_id, "turkSubmitTo": submit_to}
    )


def build_mturk_completion(
    details: Mapping[str, str], _return_settings: ReturnSettings, outcome: VisitOutcome
) -> Completion:
    """Return the form that submits an answered assignment. Other workers return it on the platform’s own page."""
    if outcome != "completed":
        return Completion()
    fields = {"assignmentId": details["assignmentId"], "hitId": details["hitId"], "answered": "yes"}
    return Completion(
        url=details["turkSubmitTo"] + "/mturk/externalSubmit",
        fields=fields,
        label=message_marked_for_translation("Submit to Mechanical Turk"),
    )


PLATFORM = Platform(
    "mturk",
    "Mechanical Turk",
    mturk_arrival_or_none_if_preview,
    build_mturk_completion,
    MTURK_IDENTIFIERS,
    has_preview_page=True,
    has_return_page=True,
    one_hit_per_assignment=True,
    people_from="mturk",
    frame_origins=MTURK_FRAME_ORIGINS,
    form_origins=mturk_submit_origins,
    result_files=results.MTURK_RESULT_FILES,
)
