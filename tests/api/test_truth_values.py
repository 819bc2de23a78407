"""`true` and `false` are no numbers, in whatever a program sends."""

from collections.abc import Iterator
from typing import Any, get_args

from fastapi.routing import iter_route_contexts
from pydantic import BaseModel, ValidationError

from app.main import create_app
from app.quality.rules.too_fast import TooFast
from app.settings import Settings
from tests.api.conftest import API
from tests.api.test_api import launched, refused


def models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """Yield the models that a type names, with those of their fields."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
        for field in annotation.model_fields.values():
            yield from models_in(field.annotation)
    for part in get_args(annotation):
        yield from models_in(part)


def models_sent() -> set[type[BaseModel]]:
    """Return the models of all bodies that the application reads."""
    routes = [context.original_route for context in iter_route_contexts(create_app(Settings()).routes)]
    read = [route.dependant for route in routes if hasattr(route, "dependant")]
    bodies = [parameter.field_info.annotation for dependant in read for parameter in dependant.body_params]
    return {model for body in bodies for model in models_in(body)}


def takes(model: type[BaseModel], name: str, value: Any) -> bool:
    """Return whether a model finds nothing wrong with a value of a field."""
    try:
        model.model_validate({name: value})
    except ValidationError as problem:
        return not any(error["loc"][:1] == (name,) for error in problem.errors())
    return True


def test_no_number_that_a_program_sends_is_a_truth_value():
    found = sorted(models_sent() | {TooFast}, key=lambda model: model.__name__)
    assert {"CampaignSettings", "ConsentRequest", "DraftRequest", "ResponseRequest", "TouchSchema"} <= {
        model.__name__ for model in found
    }
    for model in found:
        for name, field in model.model_fields.items():
            kinds = repr(field.annotation)
            if ("int" in kinds or "float" in kinds) and "bool" not in kinds:
                taken = [value for value in (True, [True, False], {"1": False}) if takes(model, name, value)]
                assert not taken, f"{model.__name__}.{name} takes {taken}"


async def test_a_version_that_is_no_number_is_refused_with_its_field(api_client):
    address = await launched(api_client, consent="We keep your answers.")
    sent = {"annotator": "ann", "version": True, "agreed": True}
    details = refused(await api_client.post(f"{address}/consents", json=sent), 422, "invalid")
    assert [problem["field"] for problem in details["fields"]] == ["version"]
    assert (await api_client.post(f"{address}/consents", json=sent | {"version": 1})).is_success


async def test_a_setting_that_is_no_number_is_refused_in_a_campaign_file(api_client):
    content = "name: Words\nquestion: How?\njudgments_per_item: true\n"
    headers = {"content-type": "application/yaml"}
    reply = await api_client.post(f"{API}/campaigns/files", content=content, headers=headers)
    (mistake,) = refused(reply, 422, "campaign_file_invalid")["mistakes"]
    assert (mistake["line"], mistake["field"]) == (3, "judgments_per_item")
