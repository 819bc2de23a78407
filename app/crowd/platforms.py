"""Link, Prolific and the MTurk external-question URL: how an arrival reads, and how an annotator leaves again.

A new platform is one `Platform` here and one line in `PLATFORMS`.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from app.errors import Invalid

PREVIEW_ASSIGNMENT_ID = "ASSIGNMENT_ID_NOT_AVAILABLE"
MTURK_ORIGINS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
MTURK_FRAMES = (*MTURK_ORIGINS, "https://worker.mturk.com")
LONGEST_ID = 200
# How platforms write what they fill in: {{%ID%}}, ${id}, %ID%, [ID], <ID>. No platform's ids hold such characters.
PLACEHOLDER = re.compile(r"[{}%$<>\[\]]")


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
class Identifiers:
    """The parameters that say who came, and what to tell people when one of them cannot be used."""

    names: tuple[str, ...] = ()
    for_person: str = ""
    for_researcher: str = ""

    def refuse_doubled(self, query: Sequence[tuple[str, str]]) -> None:
        """Raises `Invalid` (`arrival_doubled`): of two values nobody knows which one is the person's."""
        given = [name for name, _ in query]
        for name in self.names:
            if given.count(name) > 1:
                raise self.unusable(name, "It is there twice.", code="arrival_doubled")

    def values(self, parameters: Mapping[str, str]) -> list[str]:
        """All of them, of a sane length. Raises `Invalid` (`arrival_incomplete`, `arrival_placeholder`)."""
        values = [parameters.get(name, "").strip() for name in self.names]
        for name, value in zip(self.names, values, strict=True):
            if not value or len(value) > LONGEST_ID or not value.isprintable():
                raise self.unusable(name, "It is missing, empty or damaged.", code="arrival_incomplete")
            if PLACEHOLDER.search(value) or value.casefold() == name.casefold():
                raise self.unusable(name, "A placeholder was left in its place.", code="arrival_placeholder")
        return values

    def unusable(self, name: str, why: str, *, code: str) -> Invalid:
        return Invalid(
            f"The link that brought you here lacks a usable {name}. {why} {self.for_person}",
            code=code,
            parameter=name,
            for_researcher=self.for_researcher,
        )


@dataclass(frozen=True)
class Platform:
    """One way to arrive.

    `read` turns the query parameters into an `Arrival`, None for a preview or a visitor who is not known yet, and
    raises `Invalid` when they are no usable ids. `complete` takes the arrival's details and the campaign's completion
    code. `identifiers`: the parameters without which nobody knows who came. `framed`: the page may stand in a frame of
    the platform's own pages. `link_parameters`: what a researcher appends to the link, for the platform to fill in.
    `one_hit_per_assignment`: an assignment of the platform is done after one answer.
    """

    name: str
    title: str
    read: Callable[[Mapping[str, str], "Destinations"], Arrival | None]
    complete: Callable[[Mapping[str, str], str | None], Completion]
    identifiers: Identifiers = Identifiers()
    one_hit_per_assignment: bool = False
    has_page: bool = True  # without one, a researcher's program speaks for the annotators
    framed: bool = False
    link_parameters: str = ""

    def arrival(self, query: Sequence[tuple[str, str]], destinations: "Destinations") -> Arrival | None:
        """Who came, by an address's query as it is: see `read`. Raises `Invalid` also when an id is there twice."""
        self.identifiers.refuse_doubled(query)
        return self.read(dict(reversed(query)), destinations)


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


def read_link(_parameters: Mapping[str, str], _destinations: Destinations) -> Arrival | None:
    """A visitor by link has no id until they press Start; then the signed token says who they are."""
    return None


def complete_link(_details: Mapping[str, str], _code: str | None) -> Completion:
    return Completion()


PROLIFIC_IDENTIFIERS = Identifiers(
    ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"),
    "Nothing was stored. Please return the study on Prolific and tell the researcher.",
    "Take the study URL from the Share page as it is, and choose “I’ll use URL parameters” for it. Prolific then puts "
    "each person’s ids into the places of {{%PROLIFIC_PID%}}, {{%STUDY_ID%}} and {{%SESSION_ID%}}. Each parameter must "
    "be in the URL once. To try the link yourself, use Prolific’s preview, or the plain link.",
)
PROLIFIC_PARAMETERS = "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


def read_prolific(parameters: Mapping[str, str], _destinations: Destinations) -> Arrival | None:
    worker_id, study_id, session_id = PROLIFIC_IDENTIFIERS.values(parameters)
    return Arrival(worker_id, session_id, {"STUDY_ID": study_id})


def complete_prolific(_details: Mapping[str, str], code: str | None) -> Completion:
    if code is None:
        return Completion()
    return Completion(
        url="https://app.prolific.com/submissions/complete?" + urlencode({"cc": code}),
        label="Return to Prolific",
    )


MTURK_IDENTIFIERS = Identifiers(
    ("assignmentId", "hitId", "workerId"),
    "Nothing was stored. Please return the task on the platform’s page and tell the requester.",
    "Put the external question URL into ExternalURL as the Share page shows it. The platform itself adds assignmentId, "
    "hitId and workerId, each once.",
)


def read_mturk(parameters: Mapping[str, str], destinations: Destinations) -> Arrival | None:
    """A preview carries no usable assignment; it leases and stores nothing."""
    if parameters.get("assignmentId", PREVIEW_ASSIGNMENT_ID) == PREVIEW_ASSIGNMENT_ID:
        return None
    assignment_id, hit_id, worker_id = MTURK_IDENTIFIERS.values(parameters)
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
        Platform(
            "prolific",
            "Prolific",
            read_prolific,
            complete_prolific,
            PROLIFIC_IDENTIFIERS,
            link_parameters=PROLIFIC_PARAMETERS,
        ),
        Platform("api", "API", read_link, complete_link, has_page=False),
        Platform("simulation", "Simulation", read_link, complete_link, has_page=False),
        Platform(
            "mturk",
            "Mechanical Turk",
            read_mturk,
            complete_mturk,
            MTURK_IDENTIFIERS,
            one_hit_per_assignment=True,
            framed=True,
        ),
    )
}


def links(base: str, link_key: str) -> dict[str, str]:
    """The addresses of a campaign for annotators, by platform; `base` is where people reach this server."""
    pages = (platform for platform in PLATFORMS.values() if platform.has_page)
    return {platform.name: f"{base}/{platform.name}/{link_key}{platform.link_parameters}" for platform in pages}
