"""Personal links: the researcher gives each person on a list a link that cannot be guessed."""

from collections.abc import Mapping

from app.annotation.platforms.platform import Arrival, ArrivalParameters, Platform, build_completion_by_code_or_url
from app.settings import Settings

PERSONAL_IDENTIFIERS = ArrivalParameters(
    ("person",),
    "Nothing was stored. Please use the whole link that you were sent.",
    "Each person has a link of their own, on the campaign's page “People”. Send them that link as it is.",
)


def read_personal_arrival_or_refuse(parameters: Mapping[str, str], _settings: Settings) -> Arrival | None:
    """Return the arrival by the key in the link. The campaign's list resolves it later (`personal_links`)."""
    (key,) = PERSONAL_IDENTIFIERS.read_values(parameters)
    return Arrival(key, "visit")


PLATFORM = Platform(
    "personal",
    "Personal link",
    read_personal_arrival_or_refuse,
    build_completion_by_code_or_url,
    identifiers=PERSONAL_IDENTIFIERS,
    has_personal_links=True,
    people_from="people",
)
