"""Problems of an invalid request, with the place and the words that a program or its author can act on."""

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

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


async def require_known_parameters(request: Request) -> None:
    """Raise `RequestValidationError` if the query has a parameter that the route does not read.

    Dropped silently, a misspelled `offset` would let a program read the first page for ever.
    """
    if not request.query_params:
        return
    known = {*iterate_query_parameter_names(request.scope["route"].dependant)}
    unknown = [name for name in request.query_params if name not in known]
    if unknown:
        raise RequestValidationError(
            [
                {"type": "unknown", "loc": ("query", name), "msg": unknown_parameter_text(name, known)}
                for name in unknown
            ]
        )


def unknown_parameter_text(name: str, known: set[str]) -> str:
    similar = get_close_matches(name, known, n=1)
    return "There is no such parameter" + (f". Did you mean {similar[0]}?" if similar else "")


def iterate_query_parameter_names(dependant: Dependant) -> Iterator[str]:
    """Yield the names of all parameters of the query that a route and its dependencies read."""
    for parameter in dependant.query_params:
        model = parameter.field_info.annotation
        if isinstance(model, type) and issubclass(model, BaseModel):
            yield from (field.alias or name for name, field in model.model_fields.items())
        else:
            yield parameter.alias
    for inner in dependant.dependencies:
        yield from iterate_query_parameter_names(inner)
