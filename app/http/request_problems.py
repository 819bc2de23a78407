"""Problems of an invalid request, with the place and the words that a program or its author can act on."""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from typing import Any, get_origin

from fastapi import Request
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel

from app.errors import shorten_echo, strip_validator_prefix

Location = Sequence[int | str]
# Pydantic puts the alternative of a union that it tried into the location, such as `dict[constrained-str,float]`.
UNION_ALTERNATIVE = re.compile(r"(dict|list|nullable|function-\w+|lax-or-strict)\[.*\]|constrained-(str|float|int)")
MESSAGES_BY_TYPE = {
    "extra_forbidden": "There is no such field",
    "model_attributes_type": "Send a JSON object, with the header Content-Type: application/json",
}


def iterate_request_problems(errors: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Location, str]]:
    """Yield the location and the message of each problem; of a union, those of the alternative that fits best.

    Args:
        errors: Pydantic's errors, in order.

    """
    places = [without_union_alternatives(error["loc"]) for error in errors]
    with_problems_inside = {place[:depth] for place in places for depth in range(len(place))}
    for error, place in zip(errors, places, strict=True):
        is_alternative = len(place) < len(error["loc"])
        if not (is_alternative and place in with_problems_inside):
            for location, words in iterate_locations_and_messages_of_problems(error, place):
                yield location, strip_validator_prefix(words)


def without_union_alternatives(location: Location) -> tuple[int | str, ...]:
    return tuple(part for part in location if not (isinstance(part, str) and UNION_ALTERNATIVE.fullmatch(part)))


def iterate_locations_and_messages_of_problems(
    problem: Mapping[str, Any], location: Location
) -> Iterator[tuple[Location, str]]:
    """Yield the location and the message of each problem.

    A check of several settings together names the wrong one in its context: `field`, for a criterion with its `number`.
    A check of a design's settings has `problems`, the message of each setting.
    """
    context = problem.get("ctx", {})
    problems_by_field: Mapping[str, str] = context.get("problems", {})
    for name, words in problems_by_field.items():
        yield (*location, name), words
    if not problems_by_field:
        words = MESSAGES_BY_TYPE.get(problem["type"], problem["msg"])
        yield (*location, *(context[part] for part in ("number", "field") if part in context)), words


def field_path(location: Location) -> str:
    """Return the path of a field in a body, such as `scores.v7`, with long names shortened."""
    return ".".join(shorten_echo(str(part)) for part in location if part != "body") or "body"


async def require_known_names_once(request: Request) -> None:
    """Raise `RequestValidationError` if a request has a parameter that the route does not read, or a name twice.

    Dropped silently, a misspelled `offset` would let a program read the first page for ever, and of two values of an
    item in an answer one would be lost.
    """
    problems = [
        {"type": "unknown", "loc": location, "msg": message}
        for location, message in (*iterate_query_problems(request), *await problems_of_json_names(request))
    ]
    if problems:
        raise RequestValidationError(problems)


def iterate_query_problems(request: Request) -> Iterator[tuple[Location, str]]:
    """Yield a location and a message for each parameter that the route does not read, or reads only once."""
    if not request.query_params:
        return
    takes_list = dict(iterate_query_parameters(request.scope["route"].dependant))
    counts = Counter(name for name, _ in request.query_params.multi_items())
    for name, count in counts.items():
        if name not in takes_list:
            yield ("query", name), unknown_parameter_text(name, takes_list)
        elif count > 1 and not takes_list[name]:
            yield ("query", name), "Give this parameter only once"


def unknown_parameter_text(name: str, known: Collection[str]) -> str:
    similar = get_close_matches(name, known, n=1)
    return "There is no such parameter" + (f". Did you mean {similar[0]}?" if similar else "")


def iterate_query_parameters(dependant: Dependant) -> Iterator[tuple[str, bool]]:
    """Yield the name of each parameter of the query that a route and its dependencies read, and if it is a list."""
    for parameter in dependant.query_params:
        model = parameter.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from (
                (field.alias or name, get_origin(field.annotation) is list)
                for name, field in model.model_fields.items()
            )
        else:
            yield parameter.alias, get_origin(model) is list
    for inner in dependant.dependencies:
        yield from iterate_query_parameters(inner)


async def problems_of_json_names(request: Request) -> list[tuple[Location, str]]:
    """Return a location and a message for each name that occurs twice in an object of the JSON body.

    A body that the route does not read as JSON has none. FastAPI has read and kept the others before.
    """
    if request.scope["route"].body_field is None or not (body := await request.body()):
        return []
    twice: list[str] = []

    def note_names_that_occur_twice(pairs: list[tuple[str, Any]]) -> None:
        if len(dict(pairs)) < len(pairs):
            twice.extend(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)

    with suppress(ValueError):  # a form
        json.loads(body, object_pairs_hook=note_names_that_occur_twice)
    return [((name,), "This name appears twice") for name in dict.fromkeys(twice)]
