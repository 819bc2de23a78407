"""Settings of a campaign for the study that Easel drafts on a platform: its words, and who may take part."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationInfo, field_validator

from app.designs.campaign import Campaign, PeopleFrom
from app.designs.field_flags import EDITABLE, InputModel, OneLine

MAX_GROUPS, MAX_LABELS = 20, 10
SERVICE_ID_PATTERN = re.compile(r"[A-Za-z0-9_-]{1,100}")
LABEL_PATTERN = re.compile(r"[a-z][a-z0-9_]{0,39}")

STUDY_PLATFORM: PeopleFrom = "prolific"
PEOPLE_FROM_TITLES: dict[str, str] = {
    "link": "A link that I share",
    "people": "A list of people, each with a personal link",
    "prolific": "Prolific",
    "mturk": "A platform with the protocol of Mechanical Turk",
    "platform": "Another platform, such as SONA",
    "programs": "Programs, through the API",
}

StudyDevices = Literal["any", "desktop", "desktop and tablet", "mobile"]


def validate_service_id(service_id: str) -> str:
    if not SERVICE_ID_PATTERN.fullmatch(service_id):
        raise ValueError("this is not an id of the platform: it may contain only letters, digits, _ and -")
    return service_id


def validate_study_label(label: str) -> str:
    if not LABEL_PATTERN.fullmatch(label):
        raise ValueError("write labels as the platform does, such as ai_annotation")
    return label


ServiceId = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(validate_service_id)]
StudyLabel = Annotated[str, StringConstraints(strip_whitespace=True), AfterValidator(validate_study_label)]


class StudySettings(InputModel):
    """Settings of a campaign for its study on a platform. They count when the draft is made."""

    recruiting_title: Annotated[str, StringConstraints(strip_whitespace=True, max_length=120), OneLine] = Field(
        default=Campaign.recruiting_title, title="Title of the study", json_schema_extra=EDITABLE,
        description="Title that people on the platform see. Empty: the campaign’s name.",
    )  # fmt: skip
    recruiting_description: Annotated[str, StringConstraints(strip_whitespace=True, max_length=5_000)] = Field(
        default=Campaign.recruiting_description, title="Description of the study", json_schema_extra=EDITABLE,
        description="What people read before they take part. Empty: the short instructions, or the question.",
    )  # fmt: skip
    recruiting_minutes: Annotated[int, Field(ge=1, le=600)] | None = Field(
        default=Campaign.recruiting_minutes, title="Minutes of one person", json_schema_extra=EDITABLE,
        description="Time of all tasks, with consent, questions and training. Empty: that of the tasks alone.",
    )  # fmt: skip
    recruiting_devices: StudyDevices = Field(
        default="any", title="Devices", json_schema_extra=EDITABLE,
        description="Devices on which people can take part.",
    )  # fmt: skip
    recruiting_filter_set: ServiceId | None = Field(
        default=Campaign.recruiting_filter_set, title="Filter set", json_schema_extra=EDITABLE,
        description="Id of a saved set of conditions on the platform that people must meet.",
    )  # fmt: skip
    recruiting_groups: Annotated[list[ServiceId], Field(max_length=MAX_GROUPS)] = Field(
        default=[], title="Only these groups", json_schema_extra=EDITABLE,
        description="Ids of groups on the platform whose people may take part, one per line. Empty: everyone.",
    )  # fmt: skip
    recruiting_excluded_groups: Annotated[list[ServiceId], Field(max_length=MAX_GROUPS)] = Field(
        default=[], title="Not these groups", json_schema_extra=EDITABLE,
        description="Ids of groups on the platform whose people may not take part, one per line.",
    )  # fmt: skip
    recruiting_labels: Annotated[list[StudyLabel], Field(max_length=MAX_LABELS)] = Field(
        default=[], title="Study labels", json_schema_extra=EDITABLE,
        description="Labels of the platform for this kind of study, one per line, for example: ai_annotation.",
    )  # fmt: skip

    @field_validator("recruiting_groups", "recruiting_excluded_groups", "recruiting_labels", mode="before")
    @classmethod
    def split_lines_of_ids(cls, lines: object) -> object:
        """Split a text into lines, as forms and the command line send it."""
        return [line for line in lines.splitlines() if line.strip()] if isinstance(lines, str) else lines

    @field_validator("recruiting_groups", "recruiting_excluded_groups")
    @classmethod
    def refuse_groups_beside_filter_set(cls, groups: list[str], info: ValidationInfo) -> list[str]:
        if groups and info.data.get("recruiting_filter_set"):
            raise ValueError("a study has a filter set or groups, not both; put the groups into the filter set")
        return groups


STUDY_SETTING_NAMES = tuple(StudySettings.model_fields)
