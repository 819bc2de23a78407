"""Prolific: its ids stand in the study's URL, and people return with the campaign's completion code."""

from collections.abc import Mapping
from urllib.parse import urlencode

from app.crowd.platform import (
    Arrival,
    Chosen,
    Completion,
    Identifiers,
    Outcome,
    Platform,
    by_code_or_address,
    chosen_way,
)
from app.languages.catalogue import mark
from app.settings import Settings

CODE = "prolific_completion_code"
IDENTIFIERS = Identifiers(
    ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID"),
    "Nothing was stored. Please return the study on Prolific and tell the researcher.",
    "Take the study URL from the Share page as it is, and choose “I’ll use URL parameters” for it. Prolific then puts "
    "each person’s ids into the places of {{%PROLIFIC_PID%}}, {{%STUDY_ID%}} and {{%SESSION_ID%}}. Each parameter must "
    "be in the URL once. To try the link yourself, use Prolific’s preview, or the plain link.",
)
PARAMETERS = "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


def read(parameters: Mapping[str, str], _settings: Settings) -> Arrival | None:
    worker_id, study_id, session_id = IDENTIFIERS.values(parameters)
    return Arrival(worker_id, session_id, {"STUDY_ID": study_id})


def complete(details: Mapping[str, str], chosen: Chosen, outcome: Outcome) -> Completion:
    """With a code of the study's, or to the campaign's own address."""
    code = (chosen[CODE] if outcome == "completed" else None) or chosen_way(chosen, outcome)
    if code is None or code.startswith("https://"):
        return by_code_or_address(details, chosen, outcome)
    url = "https://app.prolific.com/submissions/complete?" + urlencode({"cc": code})
    return Completion(url=url, label=mark("Return to Prolific"), code=code)


PLATFORM = Platform(
    "prolific",
    "Prolific",
    read,
    complete,
    IDENTIFIERS,
    returns=True,
    link_parameters=PARAMETERS,
)
