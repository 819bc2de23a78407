"""What the field of a setting says of itself beside its type and its words, as its `json_schema_extra`."""

from typing import Any

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
