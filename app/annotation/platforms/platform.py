"""What a platform is: how people arrive from it, how they go back, and what else others need to ask of it."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.annotation.platforms.result_format import ResultFileFormat
from app.errors import Invalid
from app.http.languages.catalogue import mark_message
from app.settings import Settings

MAX_PLATFORM_ID_CHARACTERS = 200
# How platforms write what they fill in: {{%ID%}}, ${id}, %ID%, [ID], <ID>. No platform's ids hold such characters.
PLACEHOLDER_PATTERN = re.compile(r"[{}%$<>\[\]]")


@dataclass(frozen=True)
class Arrival:
    """Who came, by the platform's own ids, and what must be kept to send them back."""

    worker_id: str
    assignment_id: str
    details: dict[str, str] = field(default_factory=dict)


# How a visit ended: with the work done, held because of answers, not qualified, or with nothing that could be asked.
VisitOutcome = Literal["completed", "failed_checks", "screened_out", "nothing_left"]


@dataclass(frozen=True)
class Completion:
    """How the annotator returns: a code to hand in, a link to follow or a form to post from the browser; nothing where
    there is no way.
    """

    url: str | None = None
    fields: dict[str, str] = field(default_factory=dict)  # not empty: POST these as a form
    label: str = ""
    code: str | None = None


@dataclass(frozen=True)
class ArrivalParameters:
    """The parameters that say who came, and what to tell people when one of them cannot be used."""

    names: tuple[str, ...] = ()
    annotator_advice: str = ""
    researcher_advice: str = ""

    def check_given_once(self, query: Sequence[tuple[str, str]]) -> None:
        """Raises `Invalid` (`arrival_doubled`): of two values nobody knows which one is the person's."""
        names = [name for name, _ in query]
        for name in self.names:
            if names.count(name) > 1:
                raise self.unusable_identifier_error(name, "It is there twice.", code="arrival_doubled")

    def read_values(self, parameters: Mapping[str, str]) -> list[str]:
        """All of them, of a sane length. Raises `Invalid` (`arrival_incomplete`, `arrival_placeholder`)."""
        values = [parameters.get(name, "").strip() for name in self.names]
        for name, value in zip(self.names, values, strict=True):
            if not value or len(value) > MAX_PLATFORM_ID_CHARACTERS or not value.isprintable():
                raise self.unusable_identifier_error(
                    name, "It is missing, empty or damaged.", code="arrival_incomplete"
                )
            if PLACEHOLDER_PATTERN.search(value) or value.casefold() == name.casefold():
                raise self.unusable_identifier_error(
                    name, "A placeholder was left in its place.", code="arrival_placeholder"
                )
        return values

    def unusable_identifier_error(self, name: str, problem: str, *, code: str) -> Invalid:
        return Invalid(
            f"The link that brought you here lacks a usable {name}. {problem} {self.annotator_advice}",
            code=code,
            parameter=name,
            for_researcher=self.researcher_advice,
        )


def no_arrival(_parameters: Mapping[str, str], _settings: Settings) -> Arrival | None:
    """The `read` of a platform whose addresses do not say who comes."""
    return None


ReturnSettings = Mapping[str, str | None]  # a campaign's ways back, by the name of their setting


def return_code_or_url(return_settings: ReturnSettings, outcome: VisitOutcome) -> str | None:
    """What a campaign has chosen for an outcome: a code or an address."""
    return return_settings[f"return_{outcome}"]


def complete_by_code_or_url(
    _details: Mapping[str, str], return_settings: ReturnSettings, outcome: VisitOutcome
) -> Completion:
    """The `complete` of a platform without an address of its own: the campaign’s address, or its code to hand in."""
    code_or_url = return_code_or_url(return_settings, outcome)
    if code_or_url is None:
        return Completion()
    if code_or_url.startswith("https://"):
        return Completion(url=code_or_url, label=mark_message("Go on"))
    return Completion(code=code_or_url)


def no_completion(_details: Mapping[str, str], _return_settings: ReturnSettings, _outcome: VisitOutcome) -> Completion:
    """The `complete` of a platform from which only programs come."""
    return Completion()


def no_form_origins(_settings: Settings) -> tuple[str, ...]:
    """The `posts_to` of a platform to which no form is posted."""
    return ()


@dataclass(frozen=True)
class Platform:
    """One way to arrive. What differs between platforms is said by these facts; nobody asks for a name.

    name: the key in `PLATFORMS`, the first part of its addresses, stored with annotators. title: for people.
    read(parameters, settings): who came, by the query parameters; None for a preview or a visitor who is not known yet.
    Raises `Invalid` when they are no usable ids.
    complete(details, chosen, outcome): how they return, by their arrival's details, the campaign's ways back and how
    their visit ended.
    identifiers: the parameters without which nobody knows who came.
    link_parameters: what a researcher appends to the link, for the platform to fill in.
    results: its result files, if it has any.
    shares_assignment_ids: whether several annotators in these files can have answered under the same assignment id, so
    that an answer is known by both of its ids.

    Words of its own on researchers' pages are templates in `admin/platforms/NAME`: `share.html` (its section of the
    Share page), and if it needs them `begin.html`, `launch.html` and `results.html`.
    """

    name: str
    title: str
    read_arrival: Callable[[Mapping[str, str], Settings], Arrival | None] = no_arrival
    build_completion: Callable[[Mapping[str, str], ReturnSettings, VisitOutcome], Completion] = no_completion
    identifiers: ArrivalParameters = ArrivalParameters()
    has_page: bool = True  # without one, a program speaks for the annotators
    has_start_button: bool = False  # the welcome page has a Start button, which makes whoever presses it an annotator
    has_return_page: bool = False  # people go back to a page of the platform's own when they are done
    one_hit_per_assignment: bool = False  # an assignment of the platform is done after one answer
    is_simulated: bool = False  # its annotators are no people
    has_personal_links: bool = False  # each person has a link of their own, which is on a list of the campaign
    frame_origins: tuple[str, ...] = ()  # origins of the platform in whose frames the page may stand
    form_origins: Callable[[Settings], tuple[str, ...]] = no_form_origins  # origins to which `complete` may post a form
    link_parameters: str = ""
    result_files: ResultFileFormat | None = None
    shares_assignment_ids: bool = False

    def parse_arrival(self, query: Sequence[tuple[str, str]], settings: Settings) -> Arrival | None:
        """Who came, by an address's query as it is: see `read`. Raises `Invalid` also when an id is there twice."""
        self.identifiers.check_given_once(query)
        return self.read_arrival(dict(reversed(query)), settings)

    def entry_path(self, link_key: str) -> str:
        """Where a campaign's annotators come in, on this server."""
        return f"/{self.name}/{link_key}"
