"""Placeholders in the codes and addresses by which people return to a platform, and checks of settings with them."""

import re
from collections.abc import Collection
from contextlib import suppress
from urllib.parse import parse_qsl, urlsplit

from app.errors import join_names

PERSON_PLACEHOLDER = "id"
VERIFICATION_PLACEHOLDER = "verification_code"
RETURN_PLACEHOLDER_PATTERN = re.compile(r"\{([A-Za-z][A-Za-z0-9_]*)\}")

DEFAULT_HTTPS_PORT = 443
MAX_QUERY_PARAMETERS = 10
MAX_QUERY_CHARACTERS = 500
PARAMETER_PATTERN = re.compile(r"([A-Za-z][A-Za-z0-9_]{0,63})(=[^\s\"'\\&#?]{1,100})?")
# Parameters of annotators' pages, and a name that stands for something else in a way back.
RESERVED_PARAMETER_NAMES = frozenset({"t", "lang", VERIFICATION_PLACEHOLDER})


def validate_query_with_placeholders(query: str) -> str:
    """Return the query of a link without its question mark.

    Raises:
        ValueError: It is not `name=placeholder` or `name`, with `&` between several.

    """
    query = query.removeprefix("?")
    if len(query) > MAX_QUERY_CHARACTERS:
        raise ValueError(f"at most {MAX_QUERY_CHARACTERS} characters")
    matches = [PARAMETER_PATTERN.fullmatch(part) for part in query.split("&")] if query else []
    names = [match[1] for match in matches if match]
    if len(names) < len(matches):
        raise ValueError(
            "write name=placeholder, or only the name if the platform adds the parameter itself, with & between "
            "several; names have letters, digits and _"
        )
    if len(names) > MAX_QUERY_PARAMETERS:
        raise ValueError(f"at most {MAX_QUERY_PARAMETERS} parameters")
    if len(set(names)) < len(names):
        raise ValueError("each parameter must be there once")
    if reserved := RESERVED_PARAMETER_NAMES.intersection(names):
        raise ValueError(f"Easel itself uses the parameter {min(reserved)}; choose another name")
    if PERSON_PLACEHOLDER in names[1:]:
        raise ValueError(f"{PERSON_PLACEHOLDER} stands for the person, so it can only be the first parameter")
    return query


def parameter_names_of_query(query: str) -> tuple[str, ...]:
    """Return the names of the parameters in a campaign's `panel_query`, in their order."""
    return tuple(part.partition("=")[0] for part in query.split("&") if part)


def placeholders_of_template(template: str) -> list[str]:
    return RETURN_PLACEHOLDER_PATTERN.findall(template)


def refuse_unknown_placeholders(template: str, known_placeholders: Collection[str]) -> None:
    """Raise ValueError if a code or address has a placeholder that is not known, or one in its host."""
    for name in placeholders_of_template(template):
        if name not in known_placeholders:
            places = (
                ", ".join(f"{{{one}}}" for one in known_placeholders)
                or "none, without the link parameters of a platform"
            )
            raise ValueError(f"there is no placeholder {{{name}}}; you can use {places}")
    if template.startswith(("https://", "http://")) and "{" in urlsplit(template).netloc:
        raise ValueError("the host of an address cannot have placeholders")


def is_posted_as_form(address: str, form_origins: Collection[str]) -> bool:
    """Return whether people return to this address by a form, because its site is among those that take one."""
    return comparable_origin(address) in {*map(comparable_origin, form_origins)}


def note_on_unused_form_origins_or_empty(form_origins: Collection[str], templates: Collection[str]) -> str:
    """Return a sentence on sites that take a form, but to which no code or address leads; empty if there are none."""
    unused = [origin for origin in form_origins if not any(is_posted_as_form(one, [origin]) for one in templates)]
    if not unused:
        return ""
    return (
        f"No code or address of an outcome leads to {join_names(unused)}, so nothing is posted there. Correct the "
        "site, or give an outcome an address of this site."
    )


def comparable_origin(address: str) -> str:
    """Return the origin of an address as browsers compare it: in small ASCII letters, without the default port."""
    parts = urlsplit(address)
    host = parts.hostname or ""
    with suppress(UnicodeError):  # such a host has no other spelling
        host = host.encode("idna").decode()
    port = "" if parts.port in (None, DEFAULT_HTTPS_PORT) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def form_address_and_fields(address: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the address of a form without its query, and the names and values of the query as the form's fields."""
    parts = urlsplit(address)
    return parts._replace(query="", fragment="").geturl(), parse_qsl(parts.query, keep_blank_values=True)


def refuse_address_without_form_fields(template: str, form_origins: Collection[str]) -> None:
    """Raise ValueError if an address is posted as a form, and its parameters make none."""
    if not is_posted_as_form(template, form_origins):
        return
    names = [name for name, _ in parse_qsl(urlsplit(template).query, keep_blank_values=True)]
    if not names:
        raise ValueError("this site takes outcomes as a form: give the address parameters, such as ?id={id}")
    if len({*names}) < len(names):
        raise ValueError("this site takes outcomes as a form: give each parameter once")
