"""Type of settings that name an entry of a registry, checked against the entries present at validation."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError


def registry_key_type(registry: Mapping[str, Any]) -> Any:
    """Return the type of texts that are keys of the registry."""

    def require_registered(key: str) -> str:
        if key not in registry:
            raise PydanticCustomError(
                "literal_error", "Input should be {expected}", {"expected": " or ".join(registry)}
            )
        return key

    def add_enum_of_keys(schema: dict[str, Any]) -> None:
        schema["enum"] = list(registry)

    return Annotated[str, AfterValidator(require_registered), Field(json_schema_extra=add_enum_of_keys)]
