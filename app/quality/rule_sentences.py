"""Rules as sentences with the action and thresholds as fields, and the settings that such a form stands for."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from app.errors import Invalid
from app.quality.registry import QUALITY_RULES
from app.quality.rule import QualityRule
from app.quality.settings import QualityPreset, action_of_preset, build_rule_with_thresholds, parse_rule_action

ACTION_FIELD = "action"
THRESHOLD_PATTERN = re.compile(r"\{(\w+)\}")


class SentencePart(NamedTuple):
    """Part of a rule's sentence: text, followed by the field of a threshold, or by nothing if `threshold` is empty."""

    text: str
    threshold: str = ""
    title: str = ""
    value: str = ""


def parts_of_rule_sentence(rule: QualityRule) -> list[SentencePart]:
    """Return the sentence of a rule after its action, with the rule's thresholds in their places."""
    texts_and_thresholds = [*THRESHOLD_PATTERN.split(template_of_rule_sentence(rule)), ""]
    return [
        SentencePart(text, threshold, title_of_threshold_field(rule, threshold), f"{getattr(rule, threshold):g}")
        if threshold
        else SentencePart(text)
        for text, threshold in zip(texts_and_thresholds[::2], texts_and_thresholds[1::2], strict=True)
        if text or threshold
    ]


def template_of_rule_sentence(rule: QualityRule) -> str:
    """Return the rule's own sentence, or one made of its title and the titles of its thresholds."""
    fields = type(rule).model_fields
    thresholds = "; ".join(f"{field.title}: {{{name}}}" for name, field in fields.items())
    return rule.condition or f"the rule “{rule.title}” finds an annotator{f' ({thresholds})' if thresholds else ''}"


def title_of_threshold_field(rule: QualityRule, threshold: str) -> str:
    return f"{rule.title}: {type(rule).model_fields[threshold].title}"


def custom_rule_lines_of_form_or_refuse(preset: QualityPreset, fields: Mapping[str, str]) -> list[str]:
    """Return the custom rules for which a form of sentences stands: what differs from the preset and the defaults.

    Args:
        preset: The preset, which decides the action of all other rules.
        fields: Texts of the form by name: `gold.action`, `gold.careful_percent`. A rule whose fields are missing keeps
            its action and thresholds of the preset.

    Raises:
        Invalid: `invalid` for an unknown action or an impossible threshold.

    """
    try:
        return [
            line
            for name in QUALITY_RULES
            for line in custom_lines_of_one_rule(name, action_of_preset(preset, name), fields)
        ]
    except ValueError as problem:
        raise Invalid(f"Check the rules: {problem}. Nothing was changed.") from None


def custom_lines_of_one_rule(name: str, preset_action: str, fields: Mapping[str, str]) -> list[str]:
    """Return the custom rules about one rule. Raises `ValueError`."""
    action = parse_rule_action(fields.get(f"{name}.{ACTION_FIELD}", preset_action))
    default_rule = QUALITY_RULES[name]()
    thresholds = {
        threshold: fields[f"{name}.{threshold}"].strip()
        for threshold in QUALITY_RULES[name].model_fields
        if f"{name}.{threshold}" in fields
    }
    rule = build_rule_with_thresholds(name, thresholds)
    changed = [
        f"{name}.{threshold}: {getattr(rule, threshold):g}"
        for threshold in thresholds
        if getattr(rule, threshold) != getattr(default_rule, threshold)
    ]
    return ([f"{name}: {action}"] if action != preset_action else []) + changed
