"""E-mail addresses: the one rule for every place that takes one (alerts, accounts, logins by OpenID, settings)."""

import re
from typing import Annotated

from pydantic import AfterValidator, StringConstraints

MAX_ADDRESS_CHARACTERS = 254
MAX_ECHOED_ADDRESS_CHARACTERS = 80  # characters of a refused address that are repeated
MAX_LOCAL_PART_CHARACTERS = 64  # of what is before the @

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+"
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
ADDR_SPEC = re.compile(rf"{_ATOM}(?:\.{_ATOM})*@{_LABEL}(?:\.{_LABEL})*")


def is_email_address(text: str) -> bool:
    """Return whether a text is a plain e-mail address, which every mail server and mail library reads in the same way.

    It is the `addr-spec` of RFC 5322 in ASCII, without quoted parts, comments, blanks and addresses of the network. An
    encoded word (RFC 2047) is none: a mail library would decode it, perhaps to line breaks.
    """
    local = text.partition("@")[0]
    fits = len(text) <= MAX_ADDRESS_CHARACTERS and len(local) <= MAX_LOCAL_PART_CHARACTERS
    return fits and "=?" not in local and ADDR_SPEC.fullmatch(text) is not None


def parse_email_address(text: str) -> str:
    """Return the address without blanks around it. Raises ValueError for a text that is no plain e-mail address."""
    address = text.strip(" \t")
    if not is_email_address(address):
        echo = (
            address if len(address) <= MAX_ECHOED_ADDRESS_CHARACTERS else address[:MAX_ECHOED_ADDRESS_CHARACTERS] + "…"
        )
        raise ValueError(
            f"“{echo}” is not an e-mail address such as ada@example.org: letters without accents, one @, and no blanks"
        )
    return address


EmailAddress = Annotated[str, StringConstraints(max_length=1_000), AfterValidator(parse_email_address)]
