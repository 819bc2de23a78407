"""What a researcher chooses of the rules on annotators."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple, get_args

from pydantic import Field, StringConstraints, ValidationError, field_validator

from app.fields import OPEN, InputModel
from app.quality.registry import RULES
from app.quality.rule import Action, QualityRule

Preset = Literal["watch", "strict", "off"]
PRESETS: dict[Preset, Action] = {"watch": "warn", "strict": "hold", "off": "nothing"}
ACTIONS: Sequence[Action] = get_args(Action)
Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]
FALSE_ALARMS = 2.0  # per 1,000 careful annotators and rule, as is usual
EXAMPLE = "“gold: exclude” or “too_fast.share_percent: 25”"


class Chosen(NamedTuple):
    """A rule with a campaign's thresholds, and what it does."""

    rule: QualityRule
    action: Action


class QualitySettings(InputModel):
    """Those of a campaign's settings that say how annotators are watched."""

    quality_preset: Preset = Field(
        default="watch", title="Rules on annotators", json_schema_extra=OPEN,
        description="watch: rules only warn you of annotators who seem careless. strict: rules hold them, so that they "
        "get no more HITs until you let them go on. off: no rule looks.",
    )  # fmt: skip
    quality_rules: Annotated[list[Line], Field(max_length=100)] = Field(
        default=[], title="Rules that differ", json_schema_extra=OPEN,
        description="Optional, one per line: what a rule does (nothing, warn, hold, exclude) or one of its thresholds, "
        f"such as {EXAMPLE}.",
    )  # fmt: skip
    false_alarms: Annotated[float, Field(gt=0, le=100, allow_inf_nan=False)] = Field(
        default=FALSE_ALARMS, title="False alarms (per 1,000)", json_schema_extra=OPEN,
        description="Of a thousand careful annotators, how many each rule may find all the same, however often it "
        "looks. Fewer means that rules need more answers.",
    )  # fmt: skip

    checks_percent: Annotated[float, Field(gt=0, le=50, allow_inf_nan=False)] | None = Field(
        default=None, title="HITs with a check (%)", json_schema_extra=OPEN,
        description="How many of a hundred HITs show a gold or attention item, at random places. Empty: none.",
    )  # fmt: skip

    gold_feedback: bool = Field(
        default=False, title="Say what a gold item was", json_schema_extra=OPEN,
        description="After an answer with a gold item people read what was expected of it. They learn, and know from "
        "then on that there are such items; nothing is said of attention items.",
    )  # fmt: skip

    @field_validator("quality_rules", mode="before")
    @classmethod
    def one_rule_a_line(cls, lines: object) -> object:
        """A text of lines, as forms and the command line send it."""
        return [line for line in lines.splitlines() if line.strip()] if isinstance(lines, str) else lines

    @field_validator("quality_rules")
    @classmethod
    def rules_are_there(cls, lines: list[str]) -> list[str]:
        """Each rule, action and threshold is one that there is."""
        chosen_in("watch", lines)
        return lines


def chosen_of(campaign: Any) -> dict[str, Chosen]:
    """The rules of a campaign that do something, by name."""
    chosen = chosen_in(campaign.quality_preset, campaign.quality_rules)
    return {name: one for name, one in chosen.items() if one.action != "nothing"}


def preset_of(value: str) -> Preset:
    """Raises ValueError."""
    for preset in PRESETS:
        if preset == value:
            return preset
    raise ValueError(f"“{value}” is no preset; there are {', '.join(PRESETS)}")


def chosen_in(preset: Preset, lines: Sequence[str]) -> dict[str, Chosen]:
    """All rules by a preset and the lines that differ from it. Raises ValueError."""
    actions = dict.fromkeys(RULES, PRESETS[preset])
    thresholds: dict[str, dict[str, str]] = {name: {} for name in RULES}
    for line in lines:
        name, threshold, value = parts_of(line)
        if threshold:
            thresholds[name][threshold] = value
        else:
            actions[name] = action_of(value)
    return {name: Chosen(with_thresholds(name, thresholds[name]), actions[name]) for name in RULES}


def parts_of(line: str) -> tuple[str, str, str]:
    """Rule, threshold (empty: what it does) and value of a line. Raises ValueError."""
    called, colon, value = line.partition(":")
    name, _, threshold = called.strip().partition(".")
    if not colon:
        raise ValueError(f"“{line}” is no line such as {EXAMPLE}")
    if name not in RULES:
        raise ValueError(f"there is no rule “{name}”; there are {', '.join(RULES)}")
    return name, threshold, value.strip()


def action_of(value: str) -> Action:
    """Raises ValueError."""
    for action in ACTIONS:
        if action == value:
            return action
    raise ValueError(f"“{value}” is nothing that a rule does; it can be {', '.join(ACTIONS)}")


def with_thresholds(name: str, thresholds: dict[str, str]) -> QualityRule:
    """Raises ValueError."""
    try:
        return RULES[name].model_validate(thresholds)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        raise ValueError(f"{name}.{'.'.join(map(str, found['loc']))}: {found['msg']}") from None
