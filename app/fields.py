"""What fields of settings share: what one says of itself beside its type and its words, as its `json_schema_extra`, and
texts on one line.
"""

from typing import Any

from pydantic import AfterValidator
from pydantic.fields import FieldInfo

AFTER_LAUNCH = "after_launch"

# It changes no meaning: on it no answer depends that was given before.
OPEN: dict[str, Any] = {AFTER_LAUNCH: "open"}
# It can only grow: what was asked before stays asked.
ONLY_MORE: dict[str, Any] = {AFTER_LAUNCH: "only more"}

# It concerns who runs the campaign, and perhaps opens something: it is in no file of it, and the log says only that it
# was changed.
PRIVATE: dict[str, Any] = {"private": True}


def after_launch(field: FieldInfo) -> str | None:
    """How a launch leaves a setting: `open`, `only more`, or None where it changes what answers mean, and is fixed."""
    said = field.json_schema_extra
    return str(said[AFTER_LAUNCH]) if isinstance(said, dict) and AFTER_LAUNCH in said else None


def is_private(field: FieldInfo) -> bool:
    """Whether a setting is left out of files."""
    said = field.json_schema_extra
    return isinstance(said, dict) and bool(said.get("private"))


def on_one_line(text: str) -> str:
    """A text that a form can ask for on a line of its own, with something to see if it is not empty. Raises
    ValueError.
    """
    if len(text.splitlines()) > 1:
        raise ValueError("must stand on one line")
    if text and not any(character.isprintable() and not character.isspace() for character in text):
        raise ValueError("must have something to see")
    return text


OneLine = AfterValidator(on_one_line)
