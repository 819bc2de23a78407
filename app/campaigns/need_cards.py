"""The cards of “What do you need?”, each with the fields of its numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from app.campaigns.form import FormField, build_form_field, json_schema_of_settings
from app.campaigns.form_sections import ASKED_BY_SETTING, NEED_FIELD
from app.campaigns.form_values import format_setting_value
from app.campaigns.needs import (
    CUSTOM_NEED,
    CUSTOM_NUMBERS,
    NEEDS,
    Need,
    name_of_need_of_settings,
    need_field_name,
)
from app.campaigns.settings import CampaignSettings
from app.goals.settings import GOAL_TITLES, NO_GOAL, hint_that_design_has_no_goal_or_empty

GOAL_SETTING = "goal"
COLLECTS_ALL_NOTE = "It collects all judgments."


class NeedText(NamedTuple):
    """Title and summary of a card."""

    title: str
    summary: str


CUSTOM_NEED_TEXT = NeedText("Custom", "A goal of your own, with the selection rule chosen under Advanced.")


@dataclass(frozen=True)
class NeedCard:
    """A need to choose.

    Attributes:
        reason_need_is_impossible_or_empty: Why it cannot be chosen; empty if it can.
        note: What to know about it in this campaign.
        folded_fields: Fields that most researchers leave as they are.
        needs_deciding_criterion: Whether its goal needs a deciding criterion. The page shows `note` or the fields of
            the goal, by whether the same form chooses one.

    """

    name: str
    title: str
    summary: str
    is_chosen: bool
    fields: Sequence[FormField]
    folded_fields: Sequence[FormField] = ()
    reason_need_is_impossible_or_empty: str = ""
    note: str = ""
    needs_deciding_criterion: bool = False

    def is_about_goal(self, field: FormField) -> bool:
        """Return whether a field says when the goal is reached."""
        return field.name.rpartition(".")[2].startswith(GOAL_SETTING)

    @property
    def has_open_fold(self) -> bool:
        goal = next((field.value for field in self.folded_fields if field.name.endswith(GOAL_SETTING)), NO_GOAL)
        return goal != NO_GOAL or any(field.error for field in self.folded_fields)


@dataclass(frozen=True)
class NeedForm:
    """A form of needs: the settings of its campaign, what was entered, and the errors at its fields."""

    settings: CampaignSettings
    values: Mapping[str, str]
    errors: Mapping[str, str]
    has_plain_items: bool

    @property
    def chosen_need_name(self) -> str:
        return self.values.get(NEED_FIELD) or name_of_need_of_settings(self.settings)

    @property
    def no_goal_note_or_empty(self) -> str:
        """Return why the campaign has no goal without a deciding criterion, and what it does instead; else empty."""
        hint = hint_that_design_has_no_goal_or_empty(
            self.settings.design_with_settings, lacks_deciding_criterion=bool(self.settings.criteria)
        )
        return hint and f"{hint} {COLLECTS_ALL_NOTE}"

    @property
    def settings_with_deciding_criterion(self) -> CampaignSettings:
        """Return the settings as if a deciding criterion were chosen, where the campaign has criteria."""
        if not self.settings.criteria:
            return self.settings
        return self.settings.model_copy(update={ASKED_BY_SETTING: self.settings.criteria[0]["name"]})

    def build_cards(self) -> list[NeedCard]:
        """Return all cards. The last one covers every other combination of goal and rule."""
        return [*map(self.build_card, NEEDS), self.need_card_of_other_combinations()]

    def build_card(self, need: Need) -> NeedCard:
        goals = need.possible_goals(self.settings_with_deciding_criterion)
        has_no_goal = goals == (NO_GOAL,)
        numbers = [name for name in need.numbers if not (has_no_goal and name.startswith(GOAL_SETTING))]
        fields = self.build_need_setting_fields(need.name, numbers)
        is_folded = len(need.goals) > 1
        if is_folded:
            titles: dict[str, str] = {goal: GOAL_TITLES[goal] for goal in goals}
            fields = [replace(it, choices=titles) if it.name.endswith(f".{GOAL_SETTING}") else it for it in fields]
        is_chosen = need.name == self.chosen_need_name
        return NeedCard(
            name=need.name,
            title=need.title,
            summary=need.summary,
            is_chosen=is_chosen,
            reason_need_is_impossible_or_empty=(
                ""
                if is_chosen
                else need.reason_need_is_impossible_or_empty(self.settings, has_plain_items=self.has_plain_items)
            ),
            note=self.no_goal_note_or_empty if NO_GOAL not in need.goals else "",
            needs_deciding_criterion=bool(self.settings.criteria) and not has_no_goal,
            fields=[] if is_folded else fields,
            folded_fields=fields if is_folded else [],
        )

    def need_card_of_other_combinations(self) -> NeedCard:
        return NeedCard(
            name=CUSTOM_NEED,
            title=CUSTOM_NEED_TEXT.title,
            summary=CUSTOM_NEED_TEXT.summary,
            is_chosen=self.chosen_need_name == CUSTOM_NEED,
            fields=self.build_need_setting_fields(CUSTOM_NEED, CUSTOM_NUMBERS),
            needs_deciding_criterion=bool(self.settings.criteria),
        )

    def build_need_setting_fields(self, need_name: str, setting_names: Sequence[str]) -> list[FormField]:
        """Return the fields of a need's settings, with what was entered or else what is stored."""
        properties = json_schema_of_settings(CampaignSettings)["properties"]
        stored_values = self.settings.model_dump(include={*setting_names})
        fields = []
        for name in setting_names:
            field_name = need_field_name(need_name, name)
            plain_field = build_form_field(name, properties[name], self.values, {})
            value = self.values.get(field_name, format_setting_value(name, stored_values[name]))
            error = self.errors.get(field_name)
            fields.append(replace(plain_field, name=field_name, value=value, error=error, required=False))
        return fields
