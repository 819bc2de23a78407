"""Settings of a campaign for people's data: withdrawal, retention, and who is responsible for the study."""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from app.designs.campaign import Campaign
from app.designs.field_flags import EDITABLE, InputModel, OneLine

Withdrawal = Literal["ask", "self"]
MAX_RETENTION_DAYS = 36_500


RetentionDays = Annotated[int, Field(ge=1, le=MAX_RETENTION_DAYS)] | None
StudyLine = Annotated[str, StringConstraints(strip_whitespace=True, max_length=500), OneLine]


class PrivacySettings(InputModel):
    """Settings of a campaign for people's data."""

    withdrawal: Withdrawal = Field(
        default=Campaign.withdrawal, title="Withdrawal", json_schema_extra=EDITABLE,
        description="Annotators ask you to remove their answers, or do it themselves on the last page.",
    )  # fmt: skip
    study_controller: StudyLine = Field(
        default=Campaign.study_controller, title="Responsible for the data", json_schema_extra=EDITABLE,
        description="For the consent text: a person and an institution.",
    )  # fmt: skip
    study_contact: StudyLine = Field(
        default=Campaign.study_contact, title="Contact", json_schema_extra=EDITABLE,
        description="For the consent text: a mail address for questions and withdrawals.",
    )  # fmt: skip
    study_purpose: StudyLine = Field(
        default=Campaign.study_purpose, title="Purpose", json_schema_extra=EDITABLE,
        description="For the consent text: “how polite requests are”, “research on politeness” or “to train a model”.",
    )  # fmt: skip
    ethics_approval: StudyLine = Field(
        default=Campaign.ethics_approval, title="Ethics approval", json_schema_extra=EDITABLE,
        description="For the consent text: the committee and the number of its approval.",
    )  # fmt: skip
    identifiers_days: RetentionDays = Field(
        default=Campaign.identifiers_days, title="Keep ids and names for (days)", json_schema_extra=EDITABLE,
        description="Days after the study ends until ids, names and links are erased. Pay people first. Empty: never.",
    )  # fmt: skip
    free_text_days: RetentionDays = Field(
        default=Campaign.free_text_days, json_schema_extra=EDITABLE,
        title="Keep comments and personal answers for (days)",
        description="Days after the study ends until comments and personal answers are erased. Empty: never.",
    )  # fmt: skip
    telemetry_days: RetentionDays = Field(
        default=Campaign.telemetry_days, title="Keep telemetry for (days)", json_schema_extra=EDITABLE,
        description="Days after the study ends until telemetry (times, device, window) is erased. Empty: never.",
    )  # fmt: skip
    everything_days: RetentionDays = Field(
        default=Campaign.everything_days, title="Keep the campaign for (days)", json_schema_extra=EDITABLE,
        description="Days after the study ends until the whole campaign is deleted, with all answers. Empty: never.",
    )  # fmt: skip
