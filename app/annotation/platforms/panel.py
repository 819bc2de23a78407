"""Panel: any platform that a campaign's settings describe, by the query of its links and templates of the ways back.

A way back is a code or address with placeholders in braces: `{id}` is the person, other names are parameters of the
link, and `{verification_code}` proves that Easel saw this person finish. Parameters of an address are posted as a form
if its site wants that. Easel's own server may also call such an address (`app.server_calls`).
"""

import hmac
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from hashlib import sha256
from typing import Any
from urllib.parse import quote

from app.annotation.platforms.platform import (
    Arrival,
    ArrivalParameters,
    Completion,
    Platform,
    ReturnSettings,
    ServerCall,
    VisitOutcome,
    build_completion_by_code_or_url,
    code_or_url_template_or_none_for_outcome,
)
from app.annotation.platforms.return_templates import (
    PERSON_PLACEHOLDER,
    RETURN_PLACEHOLDER_PATTERN,
    VERIFICATION_PLACEHOLDER,
    form_address_and_fields,
    is_posted_as_form,
    parameter_names_of_query,
)
from app.settings import Settings

VERIFICATION_CODE_LENGTH = 10
ANNOTATOR_ADVICE = "Nothing was stored. Please go back to the page that sent you here and tell the researcher."
RESEARCHER_ADVICE = (
    "Take the link from the Share page as it is. The platform must replace the placeholders with its own values. "
    "Each parameter must be in the link once."
)


def link_parameters_with_placeholders(query: str) -> str:
    """Return what a researcher appends to the link. A parameter without placeholder is left to the platform."""
    parts = [part for part in query.split("&") if "=" in part]
    return "?" + "&".join(parts) if parts else ""


def verification_code(key: str, person: str, campaign: str) -> str:
    """Return the code by which the researcher can check offline that a person finished a campaign.

    It is the beginning of HMAC-SHA256 of `person|campaign`, in hexadecimal capitals.
    """
    digest = hmac.new(key.encode(), f"{person}|{campaign}".encode(), sha256).hexdigest()
    return digest[:VERIFICATION_CODE_LENGTH].upper()


def read_panel_arrival_or_refuse(
    parameters: Mapping[str, str],
    _settings: Settings,
    *,
    identifiers: ArrivalParameters,
    submission_parameter: str | None,
) -> Arrival | None:
    """Return the person by the first parameter, and their submission by the parameter that names it, if any."""
    values = dict(zip(identifiers.names, identifiers.read_values(parameters), strict=True))
    person = values[identifiers.names[0]]
    submission = values[submission_parameter] if submission_parameter else person
    return Arrival(person, submission, {PERSON_PLACEHOLDER: person} | values)


def build_panel_completion(
    details: Mapping[str, str], return_settings: ReturnSettings, outcome: VisitOutcome
) -> Completion:
    """Return the campaign's code or address for an outcome, with its placeholders filled in."""
    is_reported = bool(details) and call_address_template_or_none(return_settings, outcome) is not None
    template = code_or_url_template_or_none_for_outcome(return_settings, outcome)
    if template is None:
        return Completion(is_reported=is_reported)
    filled = template_with_values(template, details, return_settings)
    completion = replace(
        build_completion_by_code_or_url(details, {f"return_{outcome}": filled}, outcome), is_reported=is_reported
    )
    if completion.url is None or not is_posted_as_form(completion.url, return_settings.get("form_origins") or ()):
        return completion
    address, fields = form_address_and_fields(completion.url)
    return replace(completion, url=address, fields=dict(fields))


def template_with_values(template: str, details: Mapping[str, str], return_settings: ReturnSettings) -> str:
    """Return a code, or an address with encoded values, whose placeholders are filled in from an arrival."""
    values = dict(details)
    if (key := return_settings.get("panel_key")) and PERSON_PLACEHOLDER in details:
        code = verification_code(key, details[PERSON_PLACEHOLDER], return_settings["slug"])
        values[VERIFICATION_PLACEHOLDER] = code
    is_url = template.startswith(("https://", "http://"))

    def filled_value(match: re.Match[str]) -> str:
        value = values.get(match[1], "")
        return quote(value, safe="") if is_url else value

    return RETURN_PLACEHOLDER_PATTERN.sub(filled_value, template)


def call_address_template_or_none(return_settings: ReturnSettings, outcome: VisitOutcome) -> str | None:
    """Return the address that Easel calls for an outcome; for a full quota, perhaps that of people screened out."""
    template: str | None = return_settings.get(f"call_{outcome}")
    if template is None and outcome == "quota_full":
        template = return_settings.get("call_screened_out")
    return template


def build_server_call_of_panel_or_none(
    details: Mapping[str, str], return_settings: ReturnSettings, outcome: VisitOutcome
) -> ServerCall | None:
    """Return the call for an outcome; None without an address, or if the arrival's ids were erased."""
    template = call_address_template_or_none(return_settings, outcome)
    if template is None or PERSON_PLACEHOLDER not in details:
        return None
    url = template_with_values(template, details, return_settings)
    fields: list[tuple[str, str]] = []
    if return_settings["call_method"] == "POST":
        url, fields = form_address_and_fields(url)
    headers = dict(header.split(": ", 1) for header in return_settings["call_headers"])
    return ServerCall(
        return_settings["call_method"],
        url,
        fields,
        headers,
        confirmation=return_settings["call_confirmation"],
        is_repeatable=return_settings["call_repeatable"],
    )


def panel_of_campaign_or_none(platform: Platform, crowd_settings: Mapping[str, Any]) -> Platform | None:
    """Return the platform that a campaign's settings describe; None if they describe none."""
    query: str = crowd_settings["panel_query"]
    if not query:
        return None
    identifiers = ArrivalParameters(parameter_names_of_query(query), ANNOTATOR_ADVICE, RESEARCHER_ADVICE)
    return replace(
        platform,
        title=crowd_settings["panel_title"] or platform.title,
        identifiers=identifiers,
        link_parameters=link_parameters_with_placeholders(query),
        read_arrival=partial(
            read_panel_arrival_or_refuse,
            identifiers=identifiers,
            submission_parameter=crowd_settings["panel_submission"],
        ),
    )


PLATFORM = Platform(
    "panel",
    "Another platform",
    build_completion=build_panel_completion,
    has_return_page=True,
    pays_per_person=True,
    people_from="platform",
    approves_by_list=True,
    build_server_call_or_none=build_server_call_of_panel_or_none,
    set_up_by_campaign=panel_of_campaign_or_none,
)
