"""MTurk's external question: the page in a frame, one HIT an assignment, and a form that is posted back at the end."""

from collections.abc import Mapping

from app.crowd.mturk import results
from app.crowd.platform import Arrival, Chosen, Completion, Identifiers, Outcome, Platform
from app.errors import Invalid
from app.languages.catalogue import mark
from app.settings import Settings

PREVIEW_ASSIGNMENT_ID = "ASSIGNMENT_ID_NOT_AVAILABLE"
ORIGINS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
FRAMES = (*ORIGINS, "https://worker.mturk.com")
IDENTIFIERS = Identifiers(
    ("assignmentId", "hitId", "workerId"),
    "Nothing was stored. Please return the task on the platform’s page and tell the requester.",
    "Put the external question URL into ExternalURL as the Share page shows it. The platform itself adds assignmentId, "
    "hitId and workerId, each once.",
)


def posts_to(settings: Settings) -> tuple[str, ...]:
    """The origins to which worker ids may be posted: MTurk's two, and what the operator's setting adds."""
    return (*ORIGINS, *settings.mturk_submit_origins)


def checked(origin: str, settings: Settings) -> str:
    """`origin` without a trailing slash. Raises `Invalid` (code `submit_url_not_allowed`) for any other host."""
    bare = origin.rstrip("/")
    if bare not in posts_to(settings):
        raise Invalid(
            "This link asks Easel to send your answer to a site it does not know. Nothing was sent. "
            "Please return this task and tell the requester.",
            code="submit_url_not_allowed",
        )
    return bare


def read(parameters: Mapping[str, str], settings: Settings) -> Arrival | None:
    """A preview carries no usable assignment; it leases and stores nothing."""
    if parameters.get("assignmentId", PREVIEW_ASSIGNMENT_ID) == PREVIEW_ASSIGNMENT_ID:
        return None
    assignment_id, hit_id, worker_id = IDENTIFIERS.values(parameters)
    submit_to = checked(parameters.get("turkSubmitTo") or ORIGINS[0], settings)
    return Arrival(
        worker_id, assignment_id, {"hitId": hit_id, "assignmentId": assignment_id, "turkSubmitTo": submit_to}
    )


def complete(details: Mapping[str, str], _chosen: Chosen, outcome: Outcome) -> Completion:
    """Only who has answered can hand in; others return the assignment on the platform’s own page."""
    if outcome != "completed":
        return Completion()
    fields = {"assignmentId": details["assignmentId"], "hitId": details["hitId"], "answered": "yes"}
    return Completion(
        url=details["turkSubmitTo"] + "/mturk/externalSubmit",
        fields=fields,
        label=mark("Submit to Mechanical Turk"),
    )


PLATFORM = Platform(
    "mturk",
    "Mechanical Turk",
    read,
    complete,
    IDENTIFIERS,
    returns=True,
    one_hit_per_assignment=True,
    framed_by=FRAMES,
    posts_to=posts_to,
    results=results.FILES,
)
