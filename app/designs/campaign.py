"""A campaign: its settings, its state, and what follows from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, Protocol, Self, TypeAlias

from app.designs.criteria import Criterion, LabelledCampaign, LearningCampaign
from app.designs.criteria_settings import CriterionSettings
from app.designs.playback import MustPlay, SoundSwitching
from app.designs.remarks import CommentRequest, RemarkTarget
from app.errors import NotFound, join_names, shorten_echo, shortened_names_that_message_shows
from app.inference.online.law import Law
from app.selection.condition_squares import BlockOrder
from app.selection.registry import SelectingCampaign

CampaignStatus: TypeAlias = Literal["draft", "running", "paused", "finished"]
PeopleFrom: TypeAlias = Literal["link", "people", "prolific", "mturk", "platform", "programs"]


# Columns that hold settings together. A setting that SQL reads has a column of its own instead.
GENERAL = {"section": "general_settings"}
CROWD = {"section": "crowd_settings"}
VISIT = {"section": "visit_settings"}
QUALITY = {"section": "quality_settings"}
GOAL = {"section": "goal_settings"}


class ValuesByColumn(Protocol):
    """The values of a row, or others, by the name of their column."""

    def __getitem__(self, column: str, /) -> Any: ...
    def __contains__(self, column: object, /) -> bool: ...


@dataclass(frozen=True, kw_only=True)
class Campaign(LabelledCampaign, LearningCampaign, SelectingCampaign):
    """A campaign as it is stored; `app.database.tables` says what each column means.

    A field with a section is a setting in that jsonb column. Its default is also that of new campaigns.

    The columns `design`, `rule` and `criteria` are names and settings, in `design_name`, `rule_name` and
    `criteria_settings`; the properties without suffix are the objects that these stand for.
    """

    id: int
    slug: str
    link_key: str
    status: CampaignStatus
    # What annotators see
    name: str
    question: str
    instructions: str
    language: str
    design_name: str = field(metadata={"column": "design"})
    design_settings: dict[str, Any]
    criteria_settings: list[CriterionSettings] = field(metadata={"column": "criteria"})
    criteria_shown: Literal["in turn", "grid"]
    fewest_items: int
    always_shown: list[int]
    segment_count: int
    low_label: str
    middle_label: str | None
    high_label: str
    items_per_hit: int
    show_numbers: bool
    content: str
    source_column: str | None
    reference_column: str | None
    differences: Literal["none", "reference", "pair"]
    https_media: bool
    latex: bool
    minutes_per_hit: float | None
    pay: str | None
    pay_per_hit: float | None
    currency: str
    in_short: str
    tags: list[str] = field(default_factory=list, metadata=GENERAL)
    leave_early: bool
    undo: bool
    break_minutes: int | None
    # How answers become posteriors
    update_law: str
    prior: list[float] | None
    gamma: float
    epsilon: float
    tie_margin_points: int
    # What is asked next
    rule_name: str = field(metadata={"column": "rule"})
    assigned_column: str | None = field(default=None, metadata=GENERAL)
    fixed_set: Literal["none", "first", "mixed"] = field(default="none", metadata=GENERAL)
    fixed_items: list[str] = field(default_factory=list, metadata=GENERAL)
    fixed_random: int = field(default=0, metadata=GENERAL)
    condition_column: str | None = field(default=None, metadata=GENERAL)
    content_column: str | None = field(default=None, metadata=GENERAL)
    block_order: BlockOrder = field(default="none", metadata=GENERAL)
    tasks_per_block: int | None = field(default=None, metadata=GENERAL)
    block_pause: str = field(default="", metadata=GENERAL)
    asked_by: str = field(default="", metadata=GENERAL)
    items_language: str = field(default="", metadata=GENERAL)
    source_language: str = field(default="", metadata=GENERAL)
    must_play: MustPlay = field(default="none", metadata=GENERAL)
    max_plays: int | None = field(default=None, metadata=GENERAL)
    loop: bool = field(default=False, metadata=GENERAL)
    switch_sounds: SoundSwitching = field(default="none", metadata=GENERAL)
    asked_criterion: int | None
    selection: Literal["streaming", "iterations"]
    hits_per_iteration: int | None
    leaders_as_companions: bool
    best_items: int
    threshold: float
    seed: int
    # When enough is known
    goal: Literal["none", "best", "threshold", "order", "intervals", "halves"] = field(default="none", metadata=GOAL)
    goal_percent: int = field(default=95, metadata=GOAL)
    goal_within: float = field(default=5, metadata=GOAL)
    goal_width: float = field(default=10, metadata=GOAL)
    goal_correlation: float = field(default=0.9, metadata=GOAL)
    when_reached: Literal["tell", "pause", "finish", "release"] = field(default="tell", metadata=GOAL)
    goal_reached: str | None
    releases: int
    # How much is asked
    judgments_per_item: int
    hits_per_annotator: float | None
    repeat_items: bool
    implied_asked_percent: int | None
    lease_minutes: int
    # What annotators may leave unjudged, comment on and flag
    cannot_be_judged: bool
    unjudged_reasons: list[str]
    unjudged_people: int
    comment_on: RemarkTarget
    comment_request: CommentRequest = field(default="offered", metadata=GENERAL)
    comment_question: str = field(default="", metadata=GENERAL)
    flag_on: RemarkTarget
    flag_reasons: list[str]
    flag_people: int
    # The visit
    people_from: PeopleFrom = field(default="link", metadata=CROWD)
    prolific_completion_code: str | None = field(default=None, metadata=CROWD)
    panel_title: str = field(default="", metadata=CROWD)
    panel_query: str = field(default="", metadata=CROWD)
    panel_submission: str | None = field(default=None, metadata=CROWD)
    panel_key: str = field(default="", metadata=CROWD)
    frame_origins: list[str] = field(default_factory=list, metadata=CROWD)
    form_origins: list[str] = field(default_factory=list, metadata=CROWD)
    return_completed: str | None = field(default=None, metadata=CROWD)
    return_failed_checks: str | None = field(default=None, metadata=CROWD)
    return_screened_out: str | None = field(default=None, metadata=CROWD)
    return_quota_full: str | None = field(default=None, metadata=CROWD)
    return_nothing_left: str | None = field(default=None, metadata=CROWD)
    call_completed: str | None = field(default=None, metadata=CROWD)
    call_failed_checks: str | None = field(default=None, metadata=CROWD)
    call_screened_out: str | None = field(default=None, metadata=CROWD)
    call_quota_full: str | None = field(default=None, metadata=CROWD)
    call_nothing_left: str | None = field(default=None, metadata=CROWD)
    call_method: Literal["GET", "POST"] = field(default="GET", metadata=CROWD)
    call_headers: list[str] = field(default_factory=list, metadata=CROWD)
    call_confirmation: str = field(default="", metadata=CROWD)
    call_repeatable: bool = field(default=False, metadata=CROWD)
    recruiting_title: str = field(default="", metadata=CROWD)
    recruiting_description: str = field(default="", metadata=CROWD)
    recruiting_minutes: int | None = field(default=None, metadata=CROWD)
    recruiting_devices: Literal["any", "desktop", "desktop and tablet", "mobile"] = field(default="any", metadata=CROWD)
    recruiting_filter_set: str | None = field(default=None, metadata=CROWD)
    recruiting_groups: list[str] = field(default_factory=list, metadata=CROWD)
    recruiting_excluded_groups: list[str] = field(default_factory=list, metadata=CROWD)
    recruiting_labels: list[str] = field(default_factory=list, metadata=CROWD)
    open_link: bool
    open_platforms: bool | None
    passphrase: str
    people_per_address: int | None
    exclude_campaigns: list[str] = field(default_factory=list, metadata=VISIT)
    only_campaigns: list[str] = field(default_factory=list, metadata=VISIT)
    welcome: bool = field(default=True, metadata=VISIT)
    consent: str = field(default="", metadata=VISIT)
    questions: list[str] = field(default_factory=list, metadata=VISIT)
    quotas: list[str] = field(default_factory=list, metadata=VISIT)
    training: str = field(default="", metadata=VISIT)
    qualification: str = field(default="", metadata=VISIT)
    pass_percent: int = field(default=80, metadata=VISIT)
    qualification_tries: int = field(default=1, metadata=VISIT)
    visit_version: int
    # People's data
    withdrawal: Literal["ask", "self"] = field(default="ask", metadata=VISIT)
    study_controller: str = field(default="", metadata=VISIT)
    study_contact: str = field(default="", metadata=VISIT)
    study_purpose: str = field(default="", metadata=VISIT)
    ethics_approval: str = field(default="", metadata=VISIT)
    identifiers_days: int | None = field(default=None, metadata=VISIT)
    free_text_days: int | None = field(default=None, metadata=VISIT)
    telemetry_days: int | None = field(default=None, metadata=VISIT)
    everything_days: int | None = field(default=None, metadata=VISIT)
    # How annotators are watched
    quality_preset: Literal["watch", "strict", "off"] = field(default="watch", metadata=QUALITY)
    quality_rules: list[str] = field(default_factory=list, metadata=QUALITY)
    false_alarms: float = field(default=2.0, metadata=QUALITY)
    checks_percent: float | None
    gold_feedback: bool
    has_checks: bool
    # Alerts
    alert_emails: list[str]
    alert_webhook: str | None
    alert_quiet_minutes: int | None
    # Its record
    revision: int
    decided: int
    # Its life
    iteration: int
    created_at: datetime
    launched_at: datetime | None
    finished_at: datetime | None
    archived_at: datetime | None
    step_versions: dict[str, int] = field(default_factory=dict)
    newest_plan: dict[str, Any] | None
    rehearsal_of: int | None

    @classmethod
    def from_columns(cls, columns: ValuesByColumn) -> Self:
        """Return the campaign of a row, or of other values by name. Settings missing in a section get their default."""
        values = {}
        for part in fields(cls):
            name, section = part.metadata.get("column", part.name), part.metadata.get("section")
            source = columns[section] if section and section in columns else columns
            if name in source:
                values[part.name] = source[name]
        return cls(**values)

    def column_values_of_campaign(self) -> dict[str, Any]:
        """Return the values by column, and those of settings in sections by name."""
        return {part.metadata.get("column", part.name): getattr(self, part.name) for part in fields(self)}

    @property
    def are_playbacks_reported(self) -> bool:
        """Return whether annotators play recordings or videos, so that playbacks are reported."""
        return self.must_play != "none" or self.content in ("audio", "video")

    @property
    def law(self) -> Law:
        """Return the campaign's update law. It is that of each criterion: where classes count, all have as many."""
        return self.criteria[0].law

    @property
    def lacks_deciding_criterion(self) -> bool:
        """Return whether several criteria decide together what is asked."""
        return self.asked_criterion is None

    @property
    def has_item_labels(self) -> bool:
        """Return whether annotators choose labels for items, by some criterion; outputs of systems are no items."""
        return not self.segment_count and any(criterion.design.classes for criterion in self.criteria)

    @property
    def goal_criterion(self) -> Criterion[Self]:
        """Return the criterion that a goal is about: the deciding one, else the first."""
        return self.criteria[self.asked_criterion or 0]

    def find_criterion_or_refuse(self, name: str | None) -> Criterion[Self]:
        """Return the criterion of this name, the first one without a name.

        Raises:
            NotFound: `criterion_not_found`.

        """
        if not name:
            return self.criteria[0]
        names = self.criterion_names
        if name not in names:
            known_names = f"Its criteria are {join_names(names)}" if names else "It has no criteria"
            raise NotFound(
                f"“{self.name}” has no criterion “{shorten_echo(name)}”. {known_names}.",
                code="criterion_not_found",
                criteria=shortened_names_that_message_shows(names),
            )
        return self.criteria[names.index(name)]


SECTION_BY_SETTING: dict[str, str] = {
    part.name: part.metadata["section"] for part in fields(Campaign) if "section" in part.metadata
}


def pack_section_settings_into_columns(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by column of the table: settings of a section are together in its column."""
    columns: dict[str, Any] = {}
    for name, value in values.items():
        if section := SECTION_BY_SETTING.get(name):
            columns.setdefault(section, {})[name] = value
        else:
            columns[name] = value
    return columns


def campaign_id_and_criterion_number(criterion: Criterion[Campaign]) -> tuple[int, int]:
    """Return the campaign's id and the criterion's number, the key of everything that is kept per criterion."""
    return criterion.campaign.id, criterion.number
