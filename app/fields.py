"""What the field of a setting says of itself beside its type and its words, as its `json_schema_extra`."""

from typing import Any

from pydantic.fields import FieldInfo

AFTER_LAUNCH = "after_launch"

# It changes no meaning: on it no answer depends that was given before.
OPEN: dict[str, Any] = {AFTER_LAUNCH: "open"}
# It can only grow: what was asked before stays asked.
ONLY_MORE: dict[str, Any] = {AFTER_LAUNCH: "only more"}


def after_launch(field: FieldInfo) -> str | None:
    """How a launch leaves a setting: `open`, `only more`, or None where it changes what answers mean, and is fixed."""
    said = field.json_schema_extra
    return str(said[AFTER_LAUNCH]) if isinstance(said, dict) and AFTER_LAUNCH in said else None
