"""Settings of the rules for annotators."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field, StringConstraints, ValidationError, field_validator

from app.designs.campaign import Campaign
from app.designs.field_flags import EDITABLE, InputModel
from app.quality.registry import QUALITY_RULES
from app.quality.rule import QualityRule, RuleAction

QualityPreset = Literal["watch", "strict", "off"]
PRESET_ACTIONS: dict[QualityPreset, RuleAction] = {"watch": "warn", "strict": "hold", "off": "nothing"}
RULE_ACTIONS: Sequence[RuleAction] = get_args(RuleAction)
RuleLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
RULE_LINE_EXAMPLE = "“gold: exclude” or “too_fast.share_percent: 25”"


class RuleChoice(NamedTuple):
    """A rule with a campaign's thresholds, and its action."""

    rule: QualityRule
    action: RuleAction


class QualitySettings(InputModel):
    """Settings of a campaign about rules for annotators and checks."""

    quality_preset: QualityPreset = Field(
        default=Campaign.quality_preset, title="Rules for annotators", json_schema_extra=EDITABLE,
        description="What happens when a rule finds someone who seems careless.",
    )  # fmt: skip
    quality_rules: Annotated[list[RuleLine], Field(max_length=100)] = Field(
        default=[], title="Custom rules", json_schema_extra=EDITABLE,
        description="One per line: an action (nothing, warn, hold, exclude) or a threshold, such as "
        f"{RULE_LINE_EXAMPLE}.",
    )  # fmt: skip
    false_alarms: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = Field(
        default=Campaign.false_alarms, title="False alarms (per 1,000)", json_schema_extra=EDITABLE,
        description="Acceptable false alarms of each rule per 1,000 careful people. Lower values need more answers.",
    )  # fmt: skip

    checks_percent: Annotated[float, Field(gt=0, le=50, allow_inf_nan=False)] | None = Field(
        default=None, title="Tasks with a check (%)", json_schema_extra=EDITABLE,
        description="Share of tasks that contain a gold or attention item, at most 50 %. Empty: none.",
    )  # fmt: skip

    gold_feedback: bool = Field(
        default=False, title="Show the expected answer of gold items", json_schema_extra=EDITABLE,
        description="Tell annotators the expected answer after a gold item.",
    )  # fmt: skip

    @field_validator("quality_rules", mode="before")
    @classmethod
    def split_rule_lines(cls, text_or_lines: object) -> object:
        """Return the lines of a text that are not blank; return any other value unchanged."""
        return (
            [line for line in text_or_lines.splitlines() if line.strip()]
            if isinstance(text_or_lines, str)
            else text_or_lines
        )

    @field_validator("quality_rules")
    @classmethod
    def require_valid_rule_lines(cls, lines: list[str]) -> list[str]:
        """Refuse lines with an unknown rule, action or threshold."""
        parse_all_rule_choices_by_name("watch", lines)
        return lines


def settings_of_rules(campaign: Campaign) -> tuple[Any, ...]:
    """Return the settings on which the rules' findings depend."""
    return campaign.quality_preset, campaign.quality_rules, campaign.false_alarms


def active_rule_choices_by_name(campaign: Campaign) -> dict[str, RuleChoice]:
    """Return the rules of a campaign that have an action, by name."""
    choices = parse_all_rule_choices_by_name(campaign.quality_preset, campaign.quality_rules)
    return {name: choice for name, choice in choices.items() if choice.action != "nothing"}


def parse_quality_preset(value: str) -> QualityPreset:
    """Return the preset. Raises `ValueError`."""
    for preset in PRESET_ACTIONS:
        if preset == value:
            return preset
    raise ValueError(f"“{value}” is not a preset; choose {', '.join(PRESET_ACTIONS)}")


def action_of_preset(preset: QualityPreset, rule_name: str) -> RuleAction:
    """Return what a preset does about a rule."""
    action = PRESET_ACTIONS[preset]
    return "warn" if action == "hold" and QUALITY_RULES[rule_name].is_evidence_reported else action


def parse_all_rule_choices_by_name(preset: QualityPreset, lines: Sequence[str]) -> dict[str, RuleChoice]:
    """Return all rules by name, from a preset and the lines that differ from it. Raises `ValueError`."""
    actions = {name: action_of_preset(preset, name) for name in QUALITY_RULES}
    thresholds: dict[str, dict[str, str]] = {name: {} for name in QUALITY_RULES}
    for line in lines:
        name, threshold, value = rule_threshold_and_value_of_line(line)
        if threshold:
            thresholds[name][threshold] = value
        else:
            actions[name] = parse_rule_action(value)
    return {
        name: RuleChoice(build_rule_with_thresholds(name, thresholds[name]), actions[name]) for name in QUALITY_RULES
    }


def rule_threshold_and_value_of_line(line: str) -> tuple[str, str, str]:
    """Split a line into rule, threshold (empty for an action) and value. Raises `ValueError`."""
    key, colon, value = line.partition(":")
    name, _, threshold = key.strip().partition(".")
    if not colon:
        raise ValueError(f"“{line}” is not a line such as {RULE_LINE_EXAMPLE}")
    if name not in QUALITY_RULES:
        raise ValueError(f"there is no rule “{name}”; choose {', '.join(QUALITY_RULES)}")
    return name, threshold, value.strip()


def parse_rule_action(value: str) -> RuleAction:
    """Return the action. Raises `ValueError`."""
    for action in RULE_ACTIONS:
        if action == value:
            return action
    raise ValueError(f"“{value}” is not an action; choose {', '.join(RULE_ACTIONS)}")


def build_rule_with_thresholds(name: str, thresholds: dict[str, str]) -> QualityRule:
    """Return a rule with these thresholds. Raises `ValueError`."""
    try:
        return QUALITY_RULES[name].model_validate(thresholds)
    except ValidationError as error:
        first_error = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{name}.{'.'.join(map(str, first_error['loc']))}: {first_error['msg']}") from None
