"""Links of people's own: the researcher gives each person on a list a link that nobody can guess."""

from collections.abc import Mapping

from app.crowd.platform import Arrival, Identifiers, Platform, by_code_or_address
from app.settings import Settings

IDENTIFIERS = Identifiers(
    ("person",),
    "Nothing was stored. Please use the whole link that you were sent.",
    "Each person has a link of their own, on the campaign's page “People”. Send them that link as it is.",
)


def read(parameters: Mapping[str, str], _settings: Settings) -> Arrival | None:
    """By the key in the link; whose it is, the list says."""
    (key,) = IDENTIFIERS.values(parameters)
    return Arrival(key, "visit")


PLATFORM = Platform("personal", "Personal link", read, by_code_or_address, identifiers=IDENTIFIERS, by_list=True)
