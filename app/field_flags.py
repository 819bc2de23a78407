"""What fields of settings share: what one says of itself beside its type and its words, as its `json_schema_extra`, and
texts on one line. Whether a text has anything to see, and what is no number.
"""

import re
from typing import Any
from unicodedata import category

from pydantic import AfterValidator, BaseModel, GetCoreSchemaHandler
from pydantic.fields import FieldInfo
from pydantic_core import PydanticKnownError
from pydantic_core.core_schema import CoreSchema, no_info_before_validator_function

MAX_ROW_ID = 2**63 - 1  # of a row: what a column holds
ROW_ID_PATTERN = re.compile(r"[1-9][0-9]{0,18}")

AFTER_LAUNCH_KEY = "after_launch"

# It changes no meaning: on it no answer depends that was given before.
EDITABLE: dict[str, Any] = {AFTER_LAUNCH_KEY: "open"}
# It can only grow: what was asked before stays asked.
CAN_GROW: dict[str, Any] = {AFTER_LAUNCH_KEY: "only more"}

# It concerns who runs the campaign, and perhaps opens something: it is in no file of it, and the log says only that it
# was changed.
PRIVATE: dict[str, Any] = {"private": True}


def editability_after_launch(field: FieldInfo) -> str | None:
    """How a launch leaves a setting: `open`, `only more`, or None where it changes what answers mean, and is fixed."""
    said = field.json_schema_extra
    return str(said[AFTER_LAUNCH_KEY]) if isinstance(said, dict) and AFTER_LAUNCH_KEY in said else None


def is_private_field(field: FieldInfo) -> bool:
    """Whether a setting is left out of files."""
    said = field.json_schema_extra
    return isinstance(said, dict) and bool(said.get("private"))


# Letters, marks and signs that Unicode wants to be drawn as nothing: fillers of Hangul, the empty braille cell, what
# joins or chooses the shapes of others. And what it counts as formatting, but draws: signs that span numbers.
DRAWN_AS_NOTHING = frozenset(map(chr, [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0])) | frozenset(
    map(chr, [*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)])
)
DRAWN_FORMATS = frozenset(map(chr, [*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD]))


def is_blank(text: str) -> bool:
    """Return whether a text has nothing to see: white space, control and formatting characters (zero-width spaces, soft
    hyphens, directions), and letters that are drawn as nothing. Marks without a letter are drawn.
    """
    return all(map(is_invisible, text))


def is_invisible(character: str) -> bool:
    if character in DRAWN_AS_NOTHING:
        return True
    kind = category(character)
    return kind[0] == "Z" or (kind in ("Cc", "Cf") and character not in DRAWN_FORMATS)


def refuse_blank(value: object) -> object:
    """Return a value as it is. Raises ValueError for a text that looks empty and is not, or a list with such a text."""
    for text in value if isinstance(value, list | tuple) else [value]:
        if isinstance(text, str) and text.strip() and is_blank(text):
            raise ValueError("must have something to see")
    return value


def require_visible_text(text: str) -> str:
    """Return a text as it is. Raises ValueError where it has nothing to see."""
    if is_blank(text):
        raise ValueError("must have something to see")
    return text


def require_one_line(text: str) -> str:
    """A text that a form can ask for on a line of its own, with something to see if it is not empty. Raises
    ValueError.
    """
    if len(text.splitlines()) > 1:
        raise ValueError("must stand on one line")
    if text and is_blank(text):
        raise ValueError("must have something to see")
    return text


OneLine = AfterValidator(require_one_line)


def parse_row_id(raw: str) -> int | None:
    """Return the id of a row in the one way that it is written, or None: `+1`, `01` and `1_0` are no ids."""
    if not ROW_ID_PATTERN.fullmatch(raw):
        return None
    number = int(raw)
    return number if number <= MAX_ROW_ID else None


def whole_number_only(value: object) -> object:
    """Return a value as it is. Raises `PydanticKnownError` for a truth value."""
    if isinstance(value, bool):
        raise PydanticKnownError("int_type")
    return value


def number_only(value: object) -> object:
    """Return a value as it is. Raises `PydanticKnownError` for a truth value."""
    if isinstance(value, bool):
        raise PydanticKnownError("float_type")
    return value


REFUSE_TRUTH_VALUE = {"int": whole_number_only, "float": number_only}
NO_SCHEMAS = ("metadata", "default", "serialization")  # parts of a schema that hold none


def without_truth_values(part: Any) -> Any:
    """Return a part of a schema of Pydantic in which no number is a truth value."""
    if isinstance(part, list | tuple):
        return type(part)(map(without_truth_values, part))
    if not isinstance(part, dict):
        return part
    kind = part.get("type")
    if not isinstance(kind, str):  # no schema, but several by their names
        return {name: without_truth_values(inner) for name, inner in part.items()}
    if kind in REFUSE_TRUTH_VALUE:
        return no_info_before_validator_function(REFUSE_TRUTH_VALUE[kind], part)
    if kind == "function-before" and part["function"]["function"] in REFUSE_TRUTH_VALUE.values():
        return part  # a model in this one has done it
    return {name: inner if name in NO_SCHEMAS else without_truth_values(inner) for name, inner in part.items()}


class InputModel(BaseModel):
    """Base of models of what people and programs send. For a number Pydantic would take `true` and `false` as 1 and 0;
    here they are refused. Texts, as forms send them, are read as numbers.
    """

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema: CoreSchema = without_truth_values(handler(source))
        return schema
