"""Link, Prolific and the MTurk external-question URL: how an arrival reads, and how an annotator leaves again.

A new platform is one `Platform` here and one line in `PLATFORMS`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import urlencode

from app.errors import Invalid

PREVIEW_ASSIGNMENT_ID = "ASSIGNMENT_ID_NOT_AVAILABLE"
MTURK_ORIGINS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
MTURK_FRAMES = (*MTURK_ORIGINS, "https://worker.mturk.com")
LONGEST_ID = 200


@dataclass(frozen=True)
class Arrival:
    """Who came, by the platform's own ids, and what must be kept to send them back."""

    worker_id: str
    assignment_id: str
    details: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Completion:
    """How the annotator returns: a link to follow or a form to post from the browser; neither for visits by link."""

    url: str | None = None
    fields: dict[str, str] = field(default_factory=dict)  # not empty: POST these as a form
    label: str = ""


@dataclass(frozen=True)
class Platform:
    """One way to arrive.

    `read` turns the query parameters into an `Arrival`, None for a preview or a visitor who is not known yet, and
    raises `Invalid` when parameters are missing. `complete` takes the arrival's details and the campaign's completion
    code. `framed`: the page may stand in a frame of the platform's own pages. `link_parameters`: what a researcher
    appends to the link, for the platform to fill in.
    `one_hit_per_assignment`: an assignment of the platform is done after one answer.
    """

    name: str
    title: str
    read: Callable[[Mapping[str, str], "Destinations"], Arrival | None]
    complete: Callable[[Mapping[str, str], str | None], Completion]
    one_hit_per_assignment: bool = False
    has_page: bool = True  # without one, a researcher's program speaks for the annotators
    framed: bool = False
    link_parameters: str = ""


@dataclass(frozen=True)
class Destinations:
    """The origins to which worker ids may be posted: MTurk's two, and what the operator's setting adds."""

    extra: tuple[str, ...] = ()

    def check(self, origin: str) -> str:
        """`origin` without a trailing slash. Raises `Invalid` (code `submit_url_not_allowed`) for any other host."""
        bare = origin.rstrip("/")
        if bare not in (*MTURK_ORIGINS, *self.extra):
            raise Invalid(
                "This link asks Easel to send your answer to a site it does not know. Nothing was sent. "
                "Please return this task and tell the requester.",
                code="submit_url_not_allowed",
            )
        return bare


def required(parameters: Mapping[str, str], *names: str) -> list[str]:
    """The values of all `names`, present and of a sane length. Raises `Invalid` (code `arrival_incomplete`)."""
    values = [parameters.get(name, "").strip() for name in names]
    for name, value in zip(names, values, strict=True):
        if not value or len(value) > LONGEST_ID or not value.isprintable():
            raise Invalid(
                f"The link that brought you here lacks a usable {name}. "
                "Please open the task again from the platform's page.",
                code="arrival_incomplete",
                parameter=name,
            )
    return values


def read_link(_parameters: Mapping[str, str], _destinations: Destinations) -> Arrival | None:
    """A visitor by link has no id until they press Start; then the signed token says who they are."""
    return None


def complete_link(_details: Mapping[str, str], _code: str | None) -> Completion:
    return Completion()


PROLIFIC_PARAMETERS = "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


def read_prolific(parameters: Mapping[str, str], _destinations: Destinations) -> Arrival | None:
    worker_id, study_id, session_id = required(parameters, "PROLIFIC_PID", "STUDY_ID", "SESSION_ID")
    return Arrival(worker_id, session_id, {"STUDY_ID": study_id})


def complete_prolific(_details: Mapping[str, str], code: str | None) -> Completion:
    if code is None:
        return Completion()
    return Completion(
        url="https://app.prolific.com/submissions/complete?" + urlencode({"cc": code}),
        label="Return to Prolific",
    )


def read_mturk(parameters: Mapping[str, str], destinations: Destinations) -> Arrival | None:
    """A preview carries no usable assignment; it leases and stores nothing."""
    if parameters.get("assignmentId", PREVIEW_ASSIGNMENT_ID) == PREVIEW_ASSIGNMENT_ID:
        return None
    assignment_id, hit_id, worker_id = required(parameters, "assignmentId", "hitId", "workerId")
    submit_to = destinations.check(parameters.get("turkSubmitTo") or MTURK_ORIGINS[0])
    return Arrival(
        worker_id, assignment_id, {"hitId": hit_id, "assignmentId": assignment_id, "turkSubmitTo": submit_to}
    )


def complete_mturk(details: Mapping[str, str], _code: str | None) -> Completion:
    fields = {"assignmentId": details["assignmentId"], "hitId": details["hitId"], "answered": "yes"}
    return Completion(
        url=details["turkSubmitTo"] + "/mturk/externalSubmit",
        fields=fields,
        label="Submit to Mechanical Turk",
    )


PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform("link", "Link", read_link, complete_link),
        Platform("prolific", "Prolific", read_prolific, complete_prolific, link_parameters=PROLIFIC_PARAMETERS),
        Platform("api", "API", read_link, complete_link, has_page=False),
        Platform("simulation", "Simulation", read_link, complete_link, has_page=False),
        Platform("mturk", "Mechanical Turk", read_mturk, complete_mturk, one_hit_per_assignment=True, framed=True),
    )
}


def links(base: str, link_key: str) -> dict[str, str]:
    """The addresses of a campaign for annotators, by platform; `base` is where people reach this server."""
    pages = (platform for platform in PLATFORMS.values() if platform.has_page)
    return {platform.name: f"{base}/{platform.name}/{link_key}{platform.link_parameters}" for platform in pages}
