"""Settings of a campaign; the form, the API, the CLI and the database table share these names."""

from typing import Annotated, Any, Self

from pydantic import (
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from app.alerts.settings import AlertSettings
from app.annotation.onboarding.practice_sets import PracticeFormat, parse_practice_sets
from app.annotation.onboarding.settings import VisitSettings
from app.annotation.platforms.settings import CrowdSettings
from app.annotation.platforms.study_settings import StudySettings
from app.campaigns.fixed_set import WhoJudgesSettings, problem_or_empty_by_setting_of_who_judges
from app.campaigns.question_settings import QuestionSettings
from app.campaigns.setting_types import (
    ColumnName,
    ContentKind,
    CriteriaShown,
    DesignName,
    Differences,
    FinitePriorNumber,
    LanguageName,
    PositiveWidth,
    RuleName,
    ScaleLabel,
    Selection,
    UpdateLaw,
    can_law_read_design,
    can_law_serve_rule,
    design_of_valid_settings_or_none,
    is_rule_for_one_question,
    settings_with_prior_as_list,
    settings_with_repeats,
)
from app.campaigns.tags import TagSettings
from app.designs.campaign import Campaign
from app.designs.criteria_settings import (
    GRID_LAYOUT,
    MAX_CRITERIA,
    CriterionSettings,
    compatible_criteria_or_raise,
    make_design_of_criterion,
    refuse_differing_class_counts,
    refuse_unsuitable_grid,
)
from app.designs.design import Design
from app.designs.field_flags import (
    CAN_GROW,
    EDITABLE,
    text_not_looking_empty_or_raise,
)
from app.designs.presentation import PresentationSettings
from app.designs.registry import DEFAULT_DESIGN, DESIGNS, make_design
from app.designs.remarks import RemarkSettings
from app.designs.unjudged import UnjudgedSettings
from app.errors import Invalid, strip_validator_prefix
from app.goals.settings import GoalSettings, do_all_criteria_decide, reason_goal_is_refused_or_empty
from app.http.languages.catalogue import BROWSER_LANGUAGE
from app.inference.online.laws import ONLINE_LAWS
from app.privacy.settings import PrivacySettings
from app.quality.settings import QualitySettings
from app.selection.registry import SELECTION_RULES

JOINT_ERROR_TYPE = "of_field"  # an error of several settings, shown at the field that its context names


class CampaignSettings(
    WhoJudgesSettings,
    CrowdSettings,
    StudySettings,
    VisitSettings,
    PresentationSettings,
    UnjudgedSettings,
    RemarkSettings,
    QualitySettings,
    GoalSettings,
    AlertSettings,
    TagSettings,
    PrivacySettings,
    QuestionSettings,
):
    """All settings of one campaign. Pages show the `description` next to each field, with the paper's default."""

    model_config = ConfigDict(extra="forbid", validate_default=True)

    instructions: Annotated[str, StringConstraints(strip_whitespace=True, max_length=20_000)] = Field(
        default="", title="Instructions", json_schema_extra=EDITABLE,
        description="Markdown that annotators can open at any time. After launch, fix wording only.",
    )  # fmt: skip
    language: LanguageName = Field(
        default=BROWSER_LANGUAGE, title="Language of the pages", json_schema_extra=EDITABLE,
        description="Language of buttons and messages. Your own text is not translated.",
    )  # fmt: skip
    low_label: ScaleLabel = Field(default="low", title="Label at 0", description="Left end of the scale.")
    middle_label: ScaleLabel | None = Field(
        default=None, title="Label at 50", description="Leave empty unless the middle has its own meaning.",
    )  # fmt: skip
    high_label: ScaleLabel = Field(default="high", title="Label at 100", description="Right end of the scale.")
    design: DesignName = Field(
        default=DEFAULT_DESIGN, title="Design",
        description="What annotators do with the items of a task.",
    )  # fmt: skip
    design_settings: dict[str, Any] = Field(
        default_factory=dict, title="Design settings",
        description="Settings of this design, by name.",
    )  # fmt: skip
    criteria: Annotated[list[CriterionSettings], Field(max_length=MAX_CRITERIA)] = Field(
        default_factory=list, title="Criteria",
        description="Two to five questions about the same items, such as adequacy and fluency.",
    )  # fmt: skip
    items_per_hit: int | None = Field(
        default=None, ge=1, le=10, title="Items per task",
        description="How many items are shown together.",
    )  # fmt: skip
    criteria_shown: CriteriaShown = Field(
        default="in turn", title="Layout of criteria",
        description="Ask one criterion after another, or all side by side in a grid of up to 10 controls.",
    )  # fmt: skip
    show_numbers: bool = Field(
        default=True, title="Show the number",
        description="Show the score next to the slider. Hiding it makes people round to tens less often.",
    )  # fmt: skip
    content: ContentKind = Field(
        default="text", title="Item type",
        description="Text, Markdown, HTML, or the name of a media file in a zip that you upload with the items.",
    )  # fmt: skip
    latex: bool = Field(
        default=False, title="Typeset LaTeX",
        description="Typeset formulas between $ and $, $$ and $$, \\( and \\), or \\[ and \\].",
    )  # fmt: skip
    source_column: ColumnName | None = Field(
        default=None, title="Source column",
        description="Column with the source of each item, such as the sentence that was translated.",
    )  # fmt: skip
    reference_column: ColumnName | None = Field(
        default=None, title="Reference column",
        description="Column with the reference that each item is compared with.",
    )  # fmt: skip
    differences: Differences = Field(
        default="none", title="Word differences",
        description="Mark words that differ from the reference, or between two items.",
    )  # fmt: skip
    https_media: bool = Field(
        default=False, title="Allow media links",
        description="Let items show files from other servers. Those servers can see who annotates.",
    )  # fmt: skip
    update_law: UpdateLaw = Field(
        default=None, title="Update law",
        description="How an answer changes the scores. Empty: the default for the design.",
    )  # fmt: skip
    prior: Annotated[list[FinitePriorNumber], Field(min_length=1, max_length=30)] | None = Field(
        default=None, title="Prior",
        description="Parameters that each item’s posterior starts with. Empty: the update law’s default.",
    )  # fmt: skip
    gamma: PositiveWidth = Field(
        default=0.1, title="Gamma",
        description="How quickly match quality falls with the distance between scores. EASL paper: 0.1.",
    )  # fmt: skip
    epsilon: PositiveWidth = Field(
        default=0.1, title="Epsilon",
        description="How close two scores must be to expect a tie. EASL paper: 0.1.",
    )  # fmt: skip
    tie_margin_points: int = Field(
        default=0, ge=0, le=50, title="Tie margin (points)",
        description="Scores this close count as tied. 0: only equal scores.",
    )  # fmt: skip

    rule: RuleName = Field(
        default="easl", title="Selection rule",
        description="How Easel picks the next items. Keep the default unless you have a reason.",
    )  # fmt: skip
    best_items: int = Field(
        default=10, ge=1, le=1_000_000, title="Best items",
        description="Number of items that count as the best, for the rule and the goal “best”.",
    )  # fmt: skip
    threshold: float = Field(
        default=50.0, ge=0, le=100, allow_inf_nan=False, title="Threshold",
        description="Score that divides the scale, from 0 to 100, for the rule and the goal “threshold”.",
    )  # fmt: skip
    asked_by: Annotated[str, StringConstraints(strip_whitespace=True)] = Field(
        default=Campaign.asked_by, title="Deciding criterion",
        description="Criterion that decides what is asked next and when the goal is reached. Empty: all together.",
    )  # fmt: skip
    selection: Selection = Field(
        default="streaming", title="Schedule",
        description="Choose each task from the newest scores, or all tasks of an iteration at once.",
    )  # fmt: skip
    hits_per_iteration: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, title="Tasks per iteration",
        description="Only for iterations. Empty: the number of items divided by the items per task.",
    )  # fmt: skip
    leaders_as_companions: bool = Field(
        default=False, title="Leading items in other tasks",
        description="Only for iterations: let the leading item of a task appear in other tasks too. EASL paper: no.",
    )  # fmt: skip
    seed: int = Field(default=2018, ge=0, lt=2**63, title="Seed", description="Starting point of the random draws.")

    judgments_per_item: int = Field(
        default=10, ge=1, le=10_000, title="Judgments per item", json_schema_extra=CAN_GROW,
        description="The campaign ends when every item has this many. The EASL paper used up to 10.",
    )  # fmt: skip
    hits_per_annotator: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, title="Tasks per annotator", json_schema_extra=EDITABLE,
        description="Maximum number of tasks per person. Empty: no limit.",
    )  # fmt: skip
    repeat_items: bool = Field(
        default=False, title="Show items again",
        description="Let people judge an item again once they have seen all. By default only where items are compared.",
    )  # fmt: skip
    implied_asked_percent: int | None = Field(
        default=None, ge=1, le=100, title="Implied pairs asked anyway (%)",
        description="Skip pairs that follow from a person’s earlier answers, except this share. Empty: skip none.",
    )  # fmt: skip
    lease_minutes: int = Field(
        default=30, ge=1, le=10_080, title="Lease (minutes)", json_schema_extra=EDITABLE,
        description="How long a task is reserved for an annotator.",
    )  # fmt: skip

    @field_validator("*", mode="before")
    @classmethod
    def require_texts_not_looking_empty(cls, value: object) -> object:
        """Refuse texts that look empty and are not."""
        return text_not_looking_empty_or_raise(value)

    @field_validator("design_settings")
    @classmethod
    def validate_and_complete_design_settings(
        cls, design_settings: dict[str, Any], info: ValidationInfo
    ) -> dict[str, Any]:
        """Return all settings of the design, with defaults for those that are not given."""
        if (design := DESIGNS.get(info.data.get("design", ""))) is None:
            return design_settings
        try:
            return design.model_validate(design_settings).model_dump(mode="json")
        except ValidationError as error:
            errors = error.errors(include_url=False)
            problems = {".".join(map(str, error["loc"])): strip_validator_prefix(error["msg"]) for error in errors}
            message_text = "; ".join(f"{name}: {message}" for name, message in problems.items())
            raise PydanticCustomError(
                "design_settings", "{words}", {"words": message_text, "problems": problems}
            ) from error

    @field_validator("criteria")
    @classmethod
    def validate_criteria(cls, criteria: list[CriterionSettings], info: ValidationInfo) -> list[CriterionSettings]:
        has_design = design_of_valid_settings_or_none(info.data)
        return compatible_criteria_or_raise(criteria, info.data) if has_design else criteria

    @field_validator("criteria_shown")
    @classmethod
    def validate_criteria_shown(cls, criteria_shown: str, info: ValidationInfo) -> str:
        design, criteria = design_of_valid_settings_or_none(info.data), info.data.get("criteria")
        if criteria_shown == GRID_LAYOUT and design and criteria and "items_per_hit" in info.data:
            refuse_unsuitable_grid(design, info.data["items_per_hit"], len(criteria))
        return criteria_shown

    @field_validator("asked_by")
    @classmethod
    def validate_asked_by(cls, asked_by: str, info: ValidationInfo) -> str:
        names = [criterion["name"] for criterion in info.data.get("criteria", [{"name": asked_by}])]
        if asked_by and asked_by not in names:
            raise ValueError("no criterion has this name")
        return asked_by

    @field_validator("items_per_hit")
    @classmethod
    def validate_items_per_hit(cls, items_per_hit: int | None, info: ValidationInfo) -> int | None:
        if (design := DESIGNS.get(info.data.get("design", ""))) is None:
            return items_per_hit
        if items_per_hit is None:
            return design.default_items
        if items_per_hit not in design.items_per_hit:
            fewest, most = design.items_per_hit[0], design.items_per_hit[-1]
            allowed_counts = (
                f"{fewest} to {most} items" if most > fewest else "one item" if most == 1 else f"{most} items"
            )
            raise ValueError(f"“{design.title}” takes {allowed_counts} at once")
        return items_per_hit

    @field_validator("update_law", mode="before")
    @classmethod
    def fill_in_update_law(cls, update_law: object, info: ValidationInfo) -> object:
        if update_law is not None:
            return update_law
        design = DESIGNS.get(info.data.get("design", ""))
        return design.default_law if design else next(iter(ONLINE_LAWS))  # any law: the design is wrong, not the law

    @field_validator("update_law")
    @classmethod
    def validate_update_law(cls, update_law: str, info: ValidationInfo) -> str:
        design = design_of_valid_settings_or_none(info.data)
        if design and not can_law_read_design(design, ONLINE_LAWS[update_law]):
            usable_laws = " or ".join(name for name, law in ONLINE_LAWS.items() if can_law_read_design(design, law))
            raise ValueError(f"this law cannot read the answers of “{design.title}”; {usable_laws} can")
        if design and ONLINE_LAWS[update_law].family.counts_classes and "criteria" in info.data:
            refuse_differing_class_counts(info.data["design"], info.data["design_settings"], info.data["criteria"])
        if ONLINE_LAWS[update_law].reads == "order" and info.data.get("items_per_hit") == 1:
            raise ValueError("this law learns from the order of items in a task, so a task needs two items or more")
        return update_law

    @field_validator("rule")
    @classmethod
    def validate_rule(cls, rule: str, info: ValidationInfo) -> str:
        if "update_law" in info.data and not can_law_serve_rule(
            SELECTION_RULES[rule], ONLINE_LAWS[info.data["update_law"]]
        ):
            laws = " or ".join(
                name for name, law in ONLINE_LAWS.items() if can_law_serve_rule(SELECTION_RULES[rule], law)
            )
            if SELECTION_RULES[rule].reads_comparisons:
                raise ValueError(f"this rule is for comparisons: choose the update law {laws}")
            needed_knowledge = (
                "counts of labels" if SELECTION_RULES[rule].reads_labels else "the positions of items on a scale"
            )
            raise ValueError(f"this rule reads {needed_knowledge}, which only the update law {laws} keeps")
        if is_rule_for_one_question(SELECTION_RULES[rule]) and info.data.get("criteria"):
            answers = "labels of" if SELECTION_RULES[rule].reads_labels else "answers to"
            raise ValueError(f"this rule reads the {answers} one question, and there are several criteria")
        return rule

    @field_validator("selection")
    @classmethod
    def validate_selection(cls, selection: str, info: ValidationInfo) -> str:
        if (
            selection == "iterations"
            and "rule" in info.data
            and is_rule_for_one_question(SELECTION_RULES[info.data["rule"]])
        ):
            raise ValueError("the selection rule chooses one task at a time; use streaming")
        return selection

    @field_validator("implied_asked_percent")
    @classmethod
    def validate_implied_asked_percent(cls, percent: int | None, info: ValidationInfo) -> int | None:
        if percent is None:
            return percent
        if (design := design_of_valid_settings_or_none(info.data)) and not design.compares_pairs:
            raise ValueError("answers imply others only if any two items may be compared")
        if info.data.get("criteria"):
            raise ValueError("an answer on one criterion implies nothing about another; use a single question")
        if info.data.get("selection") == "iterations":
            raise ValueError("iterations choose pairs before annotators are assigned; use streaming")
        if info.data.get("repeat_items") is False:
            raise ValueError("answers imply others only if annotators see items again; turn on “Show items again”")
        return percent

    @field_validator("differences")
    @classmethod
    def validate_differences(cls, differences: str, info: ValidationInfo) -> str:
        if differences != "none" and info.data.get("content") != "text":
            raise ValueError("only texts can be compared word by word")
        if differences == "reference" and not info.data.get("reference_column"):
            raise ValueError("name the reference column that items are compared with")
        return differences

    @field_validator("high_label")
    @classmethod
    def validate_scale_labels(cls, high_label: str, info: ValidationInfo) -> str:
        if high_label == info.data.get("low_label"):
            raise ValueError("the two ends of the scale need different labels")
        return high_label

    @model_validator(mode="before")
    @classmethod
    def parse_prior_and_fill_in_repeat_items(cls, values: object) -> object:
        return settings_with_repeats(settings_with_prior_as_list(values)) if isinstance(values, dict) else values

    @property
    def design_with_settings(self) -> Design:
        """Return the design, with its settings."""
        return make_design(self.design, self.design_settings)

    @property
    def written_criteria(self) -> list[CriterionSettings]:
        """Return the criteria that the researcher wrote: none if they follow from the labels of the design."""
        return [] if self.design_with_settings.criterion_texts_of_labels(self.question) else self.criteria

    @property
    def practice_format_of_settings(self) -> PracticeFormat:
        """Return the settings that the tables of training and qualification depend on."""
        designs = [
            (one["name"], make_design_of_criterion(self.design, self.design_settings, one)) for one in self.criteria
        ]
        return PracticeFormat(tuple(designs or [("", self.design_with_settings)]), self.items_per_hit or 1)

    @model_validator(mode="after")
    def validate_practice_tables(self) -> Self:
        """Check that tables of training and qualification fit the design."""
        for name, table in (("training", self.training), ("qualification", self.qualification)):
            try:
                sets = parse_practice_sets(table, self.practice_format_of_settings)
            except Invalid as refusal:
                raise PydanticCustomError(
                    JOINT_ERROR_TYPE, "{words}", {"words": refusal.message, "field": name}
                ) from None
            if name == "qualification" and sets and not any(any(item.expected) for items in sets for item in items):
                message = "no item has an expected answer, so no annotator could fail"
                raise PydanticCustomError(JOINT_ERROR_TYPE, "{words}", {"words": message, "field": name})
        return self

    @model_validator(mode="after")
    def validate_goal_fixed_set_and_conditions(self) -> Self:
        """Check that a goal is about places on one scale, and that the fixed set and conditions can be asked about."""
        design, lacks_one = self.design_with_settings, do_all_criteria_decide(self.criteria, self.asked_by)
        goal_problem = reason_goal_is_refused_or_empty(self, design, lacks_deciding_criterion=lacks_one)
        problems = {"goal": goal_problem, **problem_or_empty_by_setting_of_who_judges(self, design)}
        for field, problem in problems.items():
            if problem:
                raise PydanticCustomError(JOINT_ERROR_TYPE, "{words}", {"words": problem, "field": field})
        return self

    @model_validator(mode="after")
    def validate_prior(self) -> Self:
        family = ONLINE_LAWS[self.update_law].law_with_class_count(len(self.design_with_settings.classes)).family
        if self.prior is None:
            return self
        if len(self.prior) != len(family.parameter_names) or not family.is_valid_prior(*self.prior):
            raise ValueError(f"this prior is not possible with the update law {self.update_law}")
        return self
