"""Contract of a platform: how annotators arrive from it, how they return, and its other properties."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from app.annotation.platforms.result_format import ResultFileFormat
from app.annotation.platforms.return_templates import placeholders_of_template
from app.annotation.platforms.service import ServiceOfPlatform
from app.designs.campaign import PeopleFrom
from app.errors import Invalid
from app.http.languages.catalogue import message_marked_for_translation
from app.settings import Settings

MAX_PLATFORM_ID_CHARACTERS = 200
# Placeholders of platforms: {{%ID%}}, ${id}, %ID%, [ID], <ID>. No platform's ids contain such characters.
PLACEHOLDER_PATTERN = re.compile(r"[{}%$<>\[\]]")


@dataclass(frozen=True)
class Arrival:
    """Arriving annotator, by the platform's ids, and the details that are needed to send them back."""

    worker_id: str
    assignment_id: str
    details: dict[str, str] = field(default_factory=dict)


# End of a visit: work done, held because of answers, not qualified, quota of an answer full, or no items left.
VisitOutcome = Literal["completed", "failed_checks", "screened_out", "quota_full", "nothing_left"]


@dataclass(frozen=True)
class Completion:
    """Way back for the annotator: a code to enter, a link to follow or a form to post from the browser, or nothing."""

    url: str | None = None
    fields: dict[str, str] = field(default_factory=dict)  # not empty: POST these as a form
    label: str = ""
    code: str | None = None
    is_reported: bool = False  # Easel's server tells the platform


@dataclass(frozen=True)
class ServerCall:
    """Call of Easel's server that tells a platform how a visit ended. Its address and headers may hold secrets.

    Attributes:
        method: GET or POST.
        url: The address.
        fields: Names and values of a form to post, in their order; empty for GET.
        headers: Further headers, by name.
        confirmation: Text in the reply to a call that counted; empty if the status decides.
        is_repeatable: Whether the platform counts a repeated call once.

    """

    method: str
    url: str = field(repr=False)
    fields: Sequence[tuple[str, str]] = field(default=(), repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    confirmation: str = ""
    is_repeatable: bool = False


@dataclass(frozen=True)
class ArrivalParameters:
    """Query parameters that identify the annotator, and advice for people if one of them is unusable."""

    names: tuple[str, ...] = ()
    annotator_advice: str = ""
    researcher_advice: str = ""

    def refuse_repeated_parameters(self, query: Sequence[tuple[str, str]]) -> None:
        """Raise `Invalid` (`arrival_doubled`) if a parameter has two values: either could be the person's."""
        names = [name for name, _ in query]
        for name in self.names:
            if names.count(name) > 1:
                raise self.unusable_identifier_error(name, "It is there twice.", code="arrival_doubled")

    def read_values(self, parameters: Mapping[str, str]) -> list[str]:
        """Return the values of all parameters. Raises `Invalid` (`arrival_incomplete`, `arrival_placeholder`)."""
        values = [parameters.get(name, "").strip() for name in self.names]
        for name, value in zip(self.names, values, strict=True):
            # Bytes that are not UTF-8 have become U+FFFD, so that two people would have the same id.
            is_damaged = not value.isprintable() or "\N{REPLACEMENT CHARACTER}" in value
            if not value or len(value) > MAX_PLATFORM_ID_CHARACTERS or is_damaged:
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


def ignore_query_and_return_no_arrival(_parameters: Mapping[str, str], _settings: Settings) -> Arrival | None:
    """Return None: the `read_arrival` of a platform whose addresses do not identify the annotator."""
    return None


ReturnSettings = Mapping[str, Any]  # a campaign's ways back, by the names of settings, and its `slug`


def code_or_url_template_or_none_for_outcome(return_settings: ReturnSettings, outcome: VisitOutcome) -> str | None:
    """Return the campaign's code or address for an outcome, perhaps with placeholders.

    Without one for a full quota, it is that of people who are screened out.
    """
    template: str | None = return_settings[f"return_{outcome}"]
    if template is None and outcome == "quota_full":
        template = return_settings["return_screened_out"]
    return template


def code_or_url_or_none_for_outcome(return_settings: ReturnSettings, outcome: VisitOutcome) -> str | None:
    """Return the campaign's code or address for an outcome; None if only a panel can fill in its placeholders."""
    code_or_url = code_or_url_template_or_none_for_outcome(return_settings, outcome)
    if code_or_url and return_settings.get("panel_query") and placeholders_of_template(code_or_url):
        return None
    return code_or_url


def build_completion_by_code_or_url(
    _details: Mapping[str, str], return_settings: ReturnSettings, outcome: VisitOutcome
) -> Completion:
    """Return the campaign’s address or code: the `build_completion` of a platform without a return address."""
    code_or_url = code_or_url_or_none_for_outcome(return_settings, outcome)
    if code_or_url is None:
        return Completion()
    if code_or_url.startswith("https://"):
        return Completion(url=code_or_url, label=message_marked_for_translation("Continue"))
    return Completion(code=code_or_url)


def build_no_completion(
    _details: Mapping[str, str], _return_settings: ReturnSettings, _outcome: VisitOutcome
) -> Completion:
    """Return no way back: the `build_completion` of a platform for programs."""
    return Completion()


def build_no_server_call(
    _details: Mapping[str, str], _return_settings: ReturnSettings, _outcome: VisitOutcome
) -> ServerCall | None:
    """Return None: the `build_server_call_or_none` of a platform whose server is not called."""
    return None


def return_no_form_origins(_settings: Settings) -> tuple[str, ...]:
    """Return no origins: the `form_origins` of a platform that receives no form."""
    return ()


@dataclass(frozen=True)
class Platform:
    """Platform that annotators come from. Other code asks only for these properties, never for a platform's name.

    Its texts on researchers' pages are templates in `admin/platforms/NAME`: `share.html` (its section of the Share
    page), and optionally `begin.html`, `launch.html` and `results.html`.

    Attributes:
        name: Key in `PLATFORMS`, first part of its addresses, and stored with annotators.
        read_arrival: Return the annotator that query parameters identify; None for a preview or a new visitor. Raises
            `Invalid` for unusable ids.
        build_completion: Return the way back, from the arrival's details, the campaign's settings and the outcome.
        identifiers: Query parameters that identify the annotator.
        has_page: False if programs speak for the annotators.
        has_start_button: True if pressing Start on the welcome page creates the annotator.
        has_preview_page: True if people look at the page before they accept the task.
        has_return_page: True if people return to a page of the platform.
        one_hit_per_assignment: True if an assignment is done after one answer.
        pays_per_person: True if the platform pays each person one reward for all their tasks.
        people_from: Answer to “Where do people come from?” that stands for this platform; None if no one comes from it.
        is_simulated: True if its annotators are not people.
        has_personal_links: True if each person has a link from the campaign's list.
        frame_origins: Origins of the platform that may show the page in a frame.
        form_origins: Return the origins that the form of a `Completion` may be posted to.
        link_parameters: Query that a researcher appends to the link, with placeholders for the platform.
        shares_assignment_ids: True if several annotators in these files can share an assignment id, so that only both
            ids together identify an answer.
        approves_by_list: True if a researcher approves submissions there by a list of their ids.
        minimum_hourly_pay: Least pay per hour that the platform allows, by currency; empty if it states none.
        fee_text: What the platform charges on top of rewards, as a part of a sentence; empty if Easel knows of nothing.
        service: How Easel reaches the platform's service for submissions and money; None if it has none.
        completion_code_setting: Name of the campaign's setting with the code of completed visits.
        build_server_call_or_none: As `build_completion`, return the call that tells the platform's server; None if
            there is none.
        set_up_by_campaign: Return the platform as a campaign's settings describe it, or None if they do not; not set
            if the platform is the same in all campaigns.

    """

    name: str
    title: str
    read_arrival: Callable[[Mapping[str, str], Settings], Arrival | None] = ignore_query_and_return_no_arrival
    build_completion: Callable[[Mapping[str, str], ReturnSettings, VisitOutcome], Completion] = build_no_completion
    identifiers: ArrivalParameters = ArrivalParameters()
    has_page: bool = True
    has_start_button: bool = False
    has_preview_page: bool = False
    has_return_page: bool = False
    one_hit_per_assignment: bool = False
    pays_per_person: bool = False
    people_from: PeopleFrom | None = None
    is_simulated: bool = False
    has_personal_links: bool = False
    frame_origins: tuple[str, ...] = ()
    form_origins: Callable[[Settings], tuple[str, ...]] = return_no_form_origins
    link_parameters: str = ""
    approves_by_list: bool = False
    minimum_hourly_pay: Mapping[str, float] = field(default_factory=dict)
    fee_text: str = ""
    service: ServiceOfPlatform | None = None
    completion_code_setting: str = "return_completed"
    result_files: ResultFileFormat | None = None
    shares_assignment_ids: bool = False
    build_server_call_or_none: Callable[[Mapping[str, str], ReturnSettings, VisitOutcome], ServerCall | None] = (
        build_no_server_call
    )
    set_up_by_campaign: "Callable[[Platform, Mapping[str, Any]], Platform | None] | None" = None

    @property
    def has_only_own_links(self) -> bool:
        """Return whether people come by links of Easel itself, open or personal, and from no other site."""
        return self.people_from in ("link", "people")

    def platform_in_campaign_or_none(self, crowd_settings: Mapping[str, Any]) -> "Platform | None":
        """Return the platform in a campaign with these settings; None if it is not set up there."""
        return self.set_up_by_campaign(self, crowd_settings) if self.set_up_by_campaign else self

    def parse_arrival_or_none(self, query: Sequence[tuple[str, str]], settings: Settings) -> Arrival | None:
        """Return what `read_arrival` returns for a raw query. Raises `Invalid` also if an id is there twice."""
        self.identifiers.refuse_repeated_parameters(query)
        return self.read_arrival(dict(reversed(query)), settings)

    def entry_path(self, link_key: str) -> str:
        """Return the path of a campaign's page for annotators of this platform."""
        return f"/{self.name}/{link_key}"
