"""What a researcher chooses of the rules on annotators."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field, StringConstraints, ValidationError, field_validator

from app.field_flags import EDITABLE, InputModel
from app.quality.registry import QUALITY_RULES
from app.quality.rule import QualityRule, RuleAction

QualityPreset = Literal["watch", "strict", "off"]
PRESET_ACTIONS: dict[QualityPreset, RuleAction] = {"watch": "warn", "strict": "hold", "off": "nothing"}
RULE_ACTIONS: Sequence[RuleAction] = get_args(RuleAction)
RuleLine = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
DEFAULT_FALSE_ALARMS_PER_1000 = 2.0  # per 1,000 careful annotators and rule, as is usual
RULE_LINE_EXAMPLE = "“gold: exclude” or “too_fast.share_percent: 25”"


class RuleChoice(NamedTuple):
    """A rule with a campaign's thresholds, and what it does."""

    rule: QualityRule
    action: RuleAction


class QualitySettings(InputModel):
    """Those of a campaign's settings that say how annotators are watched."""

    quality_preset: QualityPreset = Field(
        default="watch", title="Rules on annotators", json_schema_extra=EDITABLE,
        description="watch: rules only warn you of annotators who seem careless. strict: rules hold them, so that they "
        "get no more HITs until you let them go on. off: no rule looks.",
    )  # fmt: skip
    quality_rules: Annotated[list[RuleLine], Field(max_length=100)] = Field(
        default=[], title="Rules that differ", json_schema_extra=EDITABLE,
        description="Optional, one per line: what a rule does (nothing, warn, hold, exclude) or one of its thresholds, "
        f"such as {RULE_LINE_EXAMPLE}.",
    )  # fmt: skip
    false_alarms: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = Field(
        default=DEFAULT_FALSE_ALARMS_PER_1000, title="False alarms (per 1,000)", json_schema_extra=EDITABLE,
        description="Of a thousand careful annotators, how many each rule may find all the same, however often it "
        "looks. Fewer means that rules need more answers.",
    )  # fmt: skip

    checks_percent: Annotated[float, Field(gt=0, le=50, allow_inf_nan=False)] | None = Field(
        default=None, title="HITs with a check (%)", json_schema_extra=EDITABLE,
        description="How many of a hundred HITs show a gold or attention item, at random places. Empty: none.",
    )  # fmt: skip

    gold_feedback: bool = Field(
        default=False, title="Say what a gold item was", json_schema_extra=EDITABLE,
        description="After an answer with a gold item people read what was expected of it. They learn, and know from "
        "then on that there are such items; nothing is said of attention items.",
    )  # fmt: skip

    @field_validator("quality_rules", mode="before")
    @classmethod
    def split_rule_lines(cls, lines: object) -> object:
        """A text of lines, as forms and the command line send it."""
        return [line for line in lines.splitlines() if line.strip()] if isinstance(lines, str) else lines

    @field_validator("quality_rules")
    @classmethod
    def check_rule_lines(cls, lines: list[str]) -> list[str]:
        """Each rule, action and threshold is one that there is."""
        resolve_rules("watch", lines)
        return lines


def active_rules(campaign: Any) -> dict[str, RuleChoice]:
    """The rules of a campaign that do something, by name."""
    choices = resolve_rules(campaign.quality_preset, campaign.quality_rules)
    return {name: one for name, one in choices.items() if one.action != "nothing"}


def parse_preset(value: str) -> QualityPreset:
    """Raises ValueError."""
    for preset in PRESET_ACTIONS:
        if preset == value:
            return preset
    raise ValueError(f"“{value}” is no preset; there are {', '.join(PRESET_ACTIONS)}")


def resolve_rules(preset: QualityPreset, lines: Sequence[str]) -> dict[str, RuleChoice]:
    """All rules by a preset and the lines that differ from it. Raises ValueError."""
    actions = dict.fromkeys(QUALITY_RULES, PRESET_ACTIONS[preset])
    thresholds: dict[str, dict[str, str]] = {name: {} for name in QUALITY_RULES}
    for line in lines:
        name, threshold, value = split_rule_line(line)
        if threshold:
            thresholds[name][threshold] = value
        else:
            actions[name] = parse_rule_action(value)
    return {name: RuleChoice(build_rule(name, thresholds[name]), actions[name]) for name in QUALITY_RULES}


def split_rule_line(line: str) -> tuple[str, str, str]:
    """Rule, threshold (empty: what it does) and value of a line. Raises ValueError."""
    key, colon, value = line.partition(":")
    name, _, threshold = key.strip().partition(".")
    if not colon:
        raise ValueError(f"“{line}” is no line such as {RULE_LINE_EXAMPLE}")
    if name not in QUALITY_RULES:
        raise ValueError(f"there is no rule “{name}”; there are {', '.join(QUALITY_RULES)}")
    return name, threshold, value.strip()


def parse_rule_action(value: str) -> RuleAction:
    """Raises ValueError."""
    for action in RULE_ACTIONS:
        if action == value:
            return action
    raise ValueError(f"“{value}” is nothing that a rule does; it can be {', '.join(RULE_ACTIONS)}")


def build_rule(name: str, thresholds: dict[str, str]) -> QualityRule:
    """Raises ValueError."""
    try:
        return QUALITY_RULES[name].model_validate(thresholds)
    except ValidationError as error:
        first_error = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{name}.{'.'.join(map(str, first_error['loc']))}: {first_error['msg']}") from None
