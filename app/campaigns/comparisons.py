"""Comparisons of systems: how often each pair is compared on each prompt, for a number of judgments per system."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from app.campaigns.form import FormField, FormSection
from app.designs.campaign import Campaign
from app.designs.number_parsing import parse_strict_decimal
from app.errors import Invalid, pluralize

JUDGMENTS_SETTING = "judgments_per_item"
COMPARISONS_FIELD = "comparisons"
MAX_JUDGMENTS = 10_000
MIN_COMPARISONS = 1  # fewer leave pairs without any comparison on some segments


@dataclass(frozen=True)
class ComparisonUnit:
    """The unit in which a campaign about systems counts its judgments.

    Attributes:
        title: Names the unit: comparisons of a pair, comparisons with the baseline, or judgments of an output.
        per_judgment: How many of them one judgment per system gives each pair (or system) on each prompt.

    """

    title: str
    per_judgment: float
    systems: int
    prompts: int

    @classmethod
    def comparison_unit_or_none(cls, campaign: Campaign, system_count: int) -> Self | None:
        """Return the unit; None if the items are no systems, or if there is nothing to compare."""
        prompts = campaign.segment_count
        if not prompts or system_count < 2:
            return None
        if campaign.design.always_shown:
            return cls("Comparisons per segment and system", 1 / prompts, system_count, prompts)
        if campaign.items_per_hit == 1:
            return cls("Judgments per output, on average", 1 / prompts, system_count, prompts)
        shown_with = (campaign.items_per_hit - 1) / (system_count - 1)
        return cls("Comparisons per segment and pair", shown_with / prompts, system_count, prompts)

    def count(self, judgments_per_item: int) -> float:
        """Return how many comparisons this many judgments per system give."""
        return judgments_per_item * self.per_judgment

    def judgments_per_system_for_comparisons(self, comparison_count: float) -> int:
        """Return the judgments per system that give at least this many comparisons."""
        return max(1, math.ceil(comparison_count / self.per_judgment - 1e-9))

    def warning(self, judgments_per_item: int) -> str:
        """Return a warning if the judgments are fewer than one comparison on each prompt; else an empty text."""
        count = self.count(judgments_per_item)
        if count >= MIN_COMPARISONS:
            return ""
        return (
            f"{self.title}: {format_comparisons(count)}, which is less than one, so some are never judged. "
            f"It takes {pluralize(self.judgments_per_system_for_comparisons(MIN_COMPARISONS), 'judgment')} per system."
        )


def format_comparisons(count: float) -> str:
    return f"{count:.2f}".rstrip("0").rstrip(".")


def form_values_with_judgments_for_comparisons_or_refuse(
    values: Mapping[str, str], campaign: Campaign, unit: ComparisonUnit | None
) -> dict[str, str]:
    """Return the values of a form with the judgments per item that its comparisons need.

    What the form showed changes nothing, although it was rounded. Raises `Invalid` (`comparisons_wrong`).
    """
    entered = values.get(COMPARISONS_FIELD)
    if entered is None or unit is None:
        return dict(values)
    if entered.strip() == format_comparisons(unit.count(campaign.judgments_per_item)):
        return {**values, JUDGMENTS_SETTING: str(campaign.judgments_per_item)}
    try:
        comparisons = parse_strict_decimal(entered.strip())
    except ValueError:
        raise Invalid("Enter a number.", code="comparisons_wrong", setting=COMPARISONS_FIELD) from None
    return {
        **values,
        JUDGMENTS_SETTING: str(judgments_per_item_for_comparisons_or_refuse(unit, comparisons, COMPARISONS_FIELD)),
    }


def judgments_per_item_for_comparisons_or_refuse(unit: ComparisonUnit, comparison_count: float, setting: str) -> int:
    """Return the judgments per system for these comparisons. Raises `Invalid` (`comparisons_wrong`)."""
    most = unit.count(MAX_JUDGMENTS)
    if not 0 < comparison_count <= most:
        message = f"Enter a number above 0, {format_comparisons(most)} at most."
        raise Invalid(message, code="comparisons_wrong", setting=setting)
    return unit.judgments_per_system_for_comparisons(comparison_count)


def sections_with_comparisons_in_place_of_judgments(
    sections: Sequence[FormSection], unit: ComparisonUnit, values: Mapping[str, str], errors: Mapping[str, str]
) -> list[FormSection]:
    """Return the sections with the comparisons in place of the judgments per item."""

    def comparisons_field(field: FormField) -> FormField:
        if field.name != JUDGMENTS_SETTING:
            return field
        judgments = int(field.value) if field.value.isdecimal() else 0
        summary = pluralize(judgments, "judgment") + f" for each of {unit.systems} systems on {unit.prompts} segments"
        return replace(
            field,
            name=COMPARISONS_FIELD,
            title=unit.title,
            description=f"The campaign ends when each system has the judgments that this takes. Now {summary}.",
            kind="number",
            value=values.get(COMPARISONS_FIELD, format_comparisons(unit.count(judgments))),
            minimum=None,
            maximum=None,
            error=errors.get(COMPARISONS_FIELD) or errors.get(JUDGMENTS_SETTING),
        )

    return [
        replace(section, basic_fields=[comparisons_field(field) for field in section.basic_fields])
        for section in sections
    ]
