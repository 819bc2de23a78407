"""The type of a setting that names something in a registry, as it is when it is asked."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError


def one_of(registry: Mapping[str, Any]) -> Any:
    """One of its names."""

    def known(name: str) -> str:
        if name not in registry:
            raise PydanticCustomError(
                "literal_error", "Input should be {expected}", {"expected": " or ".join(registry)}
            )
        return name

    def choices(schema: dict[str, Any]) -> None:
        schema["enum"] = list(registry)

    return Annotated[str, AfterValidator(known), Field(json_schema_extra=choices)]
