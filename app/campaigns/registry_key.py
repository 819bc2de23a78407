"""The type of a setting that names something in a registry, as it is when it is asked."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError


def registry_key_type(registry: Mapping[str, Any]) -> Any:
    """One of its names."""

    def require_registered(key: str) -> str:
        if key not in registry:
            raise PydanticCustomError(
                "literal_error", "Input should be {expected}", {"expected": " or ".join(registry)}
            )
        return key

    def add_enum_of_keys(schema: dict[str, Any]) -> None:
        schema["enum"] = list(registry)

    return Annotated[str, AfterValidator(require_registered), Field(json_schema_extra=add_enum_of_keys)]
