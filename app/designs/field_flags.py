"""Flags of settings fields (in `json_schema_extra`), and shared validators: blank texts, one line, numbers."""

from typing import Any
from unicodedata import category

from pydantic import AfterValidator, BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import CoreSchema, no_info_before_validator_function

AFTER_LAUNCH_KEY = "after_launch"

# Can be edited after the launch: no earlier answer depends on it.
EDITABLE: dict[str, Any] = {AFTER_LAUNCH_KEY: "open"}
# Can only grow after the launch: nothing that was asked for is withdrawn.
CAN_GROW: dict[str, Any] = {AFTER_LAUNCH_KEY: "only more"}

# For the campaign's owners only, and perhaps a secret: campaign files omit it, and the log only tells that it changed.
PRIVATE: dict[str, Any] = {"private": True}


def editability_code_after_launch_or_none(field: FieldInfo) -> str | None:
    """Return how a setting can be changed after the launch: `open`, `only more`, or None if it is fixed."""
    flags = field.json_schema_extra
    return str(flags[AFTER_LAUNCH_KEY]) if isinstance(flags, dict) and AFTER_LAUNCH_KEY in flags else None


def is_omitted_from_campaign_files(field: FieldInfo) -> bool:
    """Return whether campaign files omit a setting."""
    flags = field.json_schema_extra
    return isinstance(flags, dict) and bool(flags.get("private"))


# Letters, marks and signs that Unicode draws as nothing: Hangul fillers, the empty braille cell, joiners and variation
# selectors. And formatting characters that it does draw: signs that span numbers.
DRAWN_AS_NOTHING = frozenset(map(chr, [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0])) | frozenset(
    map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
)
DRAWN_FORMATS = frozenset(map(chr, [*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD]))


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character.

    Invisible are white space, control and formatting characters (zero-width spaces, soft hyphens, directions), and
    letters that are drawn as nothing. Marks without a letter are visible.
    """
    return all(map(is_drawn_as_nothing, text))


def is_drawn_as_nothing(character: str) -> bool:
    if character in DRAWN_AS_NOTHING:
        return True
    kind = category(character)
    return kind[0] == "Z" or (kind in ("Cc", "Cf") and character not in DRAWN_FORMATS)


def text_not_looking_empty_or_raise(value: object) -> object:
    """Return a value unchanged. Raises ValueError for a text, or a list with one, that only looks empty."""
    for text in value if isinstance(value, list | tuple) else [value]:
        if isinstance(text, str) and text.strip() and is_blank(text):
            raise ValueError("must contain visible text")
    return value


def text_with_visible_character_or_raise(text: str) -> str:
    """Return a text unchanged. Raises ValueError if it has no visible character."""
    if is_blank(text):
        raise ValueError("must contain visible text")
    return text


def visible_one_line_text_or_raise(text: str) -> str:
    """Return a one-line text unchanged. Raises ValueError for several lines, or a text that only looks empty."""
    if len(text.splitlines()) > 1:
        raise ValueError("must be on one line")
    if text and is_blank(text):
        raise ValueError("must contain visible text")
    return text


OneLine = AfterValidator(visible_one_line_text_or_raise)


def int_not_bool_or_raise(value: object) -> object:
    """Return a value as it is. Raises `PydanticKnownError` for a truth value."""
    if isinstance(value, bool):
        raise PydanticKnownError("int_type")
    return value


def float_not_bool_or_raise(value: object) -> object:
    """Return a value as it is. Raises `PydanticKnownError` for a truth value."""
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return value


REFUSE_TRUTH_VALUE = {"int": int_not_bool_or_raise, "float": float_not_bool_or_raise}
NO_SCHEMAS = ("metadata", "default", "serialization")  # parts of a schema that contain no other schema


def pydantic_schema_refusing_bools(part: Any) -> Any:
    """Return a part of a Pydantic schema changed so that numbers refuse truth values."""
    if isinstance(part, list | tuple):
        return type(part)(map(pydantic_schema_refusing_bools, part))
    if not isinstance(part, dict):
        return part
    kind = part.get("type")
    if not isinstance(kind, str):  # a mapping of names to schemas
        return {name: pydantic_schema_refusing_bools(inner) for name, inner in part.items()}
    if kind in REFUSE_TRUTH_VALUE:
        return no_info_before_validator_function(REFUSE_TRUTH_VALUE[kind], part)
    if kind == "function-before" and part["function"]["function"] in REFUSE_TRUTH_VALUE.values():
        return part  # changed already, in a nested model
    return {
        name: inner if name in NO_SCHEMAS else pydantic_schema_refusing_bools(inner) for name, inner in part.items()
    }


class InputModel(BaseModel):
    """Base of models of input from people and programs.

    Refuses `true` and `false` for a number, which Pydantic would read as 1 and 0. Texts, which forms send, are read as
    numbers.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: CoreSchema = pydantic_schema_refusing_bools(handler(source))
        return schema


class RequestBody(InputModel):
    """Base of models of JSON that programs send; refuses fields that it does not know, so that none is lost."""

    model_config = ConfigDict(extra="forbid")
