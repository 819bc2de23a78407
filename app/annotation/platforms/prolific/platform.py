"""Prolific: the study's URL carries its ids, and people return with the campaign's completion code."""

from collections.abc import Mapping
from urllib.parse import urlencode

from app.annotation.platforms.platform import (
    Arrival,
    ArrivalParameters,
    Completion,
    Platform,
    ReturnSettings,
    VisitOutcome,
    build_completion_by_code_or_url,
    code_or_url_or_none_for_outcome,
)
from app.annotation.platforms.prolific.service import SERVICE
from app.http.languages.catalogue import message_marked_for_translation
from app.settings import Settings

PROLIFIC_CODE_SETTING = "prolific_completion_code"
PROLIFIC_IDENTIFIERS = ArrivalParameters(
    ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"),
    "Nothing was stored. Please return the study on Prolific and tell the researcher.",
    "Take the study URL from the Share page as it is, and choose “I’ll use URL parameters” for it. Prolific then puts "
    "each person’s ids in place of {{%PROLIFIC_PID%}}, {{%STUDY_ID%}} and {{%SESSION_ID%}}. Each parameter must be "
    "in the URL once. To try the link yourself, use Prolific’s preview, or the plain link.",
)
# "The minimum pay allowed is £6.00 / $8.00 per hour": Prolific’s payment principles, in its help for researchers
# (article 4407695146002), as of 2025.
PROLIFIC_MINIMUM_HOURLY_PAY = {"GBP": 6.0, "USD": 8.0}
PROLIFIC_LINK_PARAMETERS = "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


def prolific_arrival_or_refuse(parameters: Mapping[str, str], _settings: Settings) -> Arrival | None:
    worker_id, study_id, session_id = PROLIFIC_IDENTIFIERS.read_values(parameters)
    return Arrival(worker_id, session_id, {"STUDY_ID": study_id})


def build_prolific_completion(
    details: Mapping[str, str], return_settings: ReturnSettings, outcome: VisitOutcome
) -> Completion:
    """Return the way back: Prolific's page with a code of the study, or the campaign's own address."""
    code = (
        return_settings[PROLIFIC_CODE_SETTING] if outcome == "completed" else None
    ) or code_or_url_or_none_for_outcome(return_settings, outcome)
    if code is None or code.startswith("https://"):
        return build_completion_by_code_or_url(details, return_settings, outcome)
    url = "https://app.prolific.com/submissions/complete?" + urlencode({"cc": code})
    return Completion(url=url, label=message_marked_for_translation("Return to Prolific"), code=code)


PLATFORM = Platform(
    "prolific",
    "Prolific",
    prolific_arrival_or_refuse,
    build_prolific_completion,
    PROLIFIC_IDENTIFIERS,
    has_return_page=True,
    pays_per_person=True,
    people_from="prolific",
    link_parameters=PROLIFIC_LINK_PARAMETERS,
    approves_by_list=True,
    minimum_hourly_pay=PROLIFIC_MINIMUM_HOURLY_PAY,
    fee_text="Prolific’s fee",
    service=SERVICE,
    completion_code_setting=PROLIFIC_CODE_SETTING,
)
