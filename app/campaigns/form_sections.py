"""Sections of the settings form: which settings are together, under which heading."""

from dataclasses import dataclass

from app.alerts.settings import AlertSettings
from app.annotation.onboarding.settings import VisitSettings
from app.annotation.platforms.settings import RETURN_SETTING_NAMES
from app.campaigns.tags import TagSettings
from app.designs.remarks import RemarkSettings
from app.goals.settings import GoalSettings

DESIGN_SETTINGS_SETTING = "design_settings"  # stands for the fields of all designs
CRITERIA_SETTING = "criteria"  # stands for the fields of each criterion
GOAL_NUMBER_SETTINGS = [name for name in GoalSettings.model_fields if name.startswith("goal_")]
CRITERIA_SHOWN_SETTING, ASKED_BY_SETTING = "criteria_shown", "asked_by"
# Help about a group of settings, by one of the group.
HELP_BY_SETTING = {
    "question": "/admin/help/researchers/settings#what-you-ask",
    "judgments_per_item": "/admin/help/researchers/settings#how-much-you-ask",
    "minutes_per_hit": "/admin/help/researchers/visit#how-a-visit-ends",
    "comment_on": "/admin/help/researchers/annotating#comments-and-flags",
    "consent": "/admin/help/researchers/visit",
    "update_law": "/admin/help/researchers/settings#how-answers-become-scores",
    "goal": "/admin/help/researchers/goals",
    "quality_preset": "/admin/help/researchers/quality",
    "tags": "/admin/help/researchers/campaigns#find-a-campaign",
    "alert_emails": "/admin/help/researchers/alerts",
}


@dataclass(frozen=True)
class SettingGroup:
    """Fields under one heading; the advanced ones are folded away."""

    title: str
    basic_settings: tuple[str, ...]
    advanced_settings: tuple[str, ...] = ()
    is_visible_to_annotators: bool = False

    @property
    def help_url(self) -> str:
        return next(
            HELP_BY_SETTING[name] for name in self.basic_settings + self.advanced_settings if name in HELP_BY_SETTING
        )


FORM_FIELD_GROUPS = (
    SettingGroup(
        "What annotators see",
        (
            *("name", "question", "instructions", "content", "design", DESIGN_SETTINGS_SETTING),
            *("low_label", "high_label", "items_per_hit"),
        ),
        (
            *(CRITERIA_SETTING, CRITERIA_SHOWN_SETTING),
            *("in_short", "middle_label", "show_numbers", "language"),
            *("cannot_be_judged", "unjudged_reasons"),
            *("source_column", "reference_column", "differences", "https_media", "latex"),
        ),
        is_visible_to_annotators=True,
    ),
    SettingGroup(
        "Amount",
        ("judgments_per_item", "repeat_items", "hits_per_annotator"),
        ("unjudged_people", "implied_asked_percent", "lease_minutes"),
    ),
    SettingGroup(
        "Pay and completion",
        ("minutes_per_hit", "pay", RETURN_SETTING_NAMES[0]),
        ("pay_per_hit", "currency", "leave_early", "undo", "break_minutes", *RETURN_SETTING_NAMES[1:]),
        is_visible_to_annotators=True,
    ),
    SettingGroup("Comments and flags", (), tuple(RemarkSettings.model_fields), is_visible_to_annotators=True),
    SettingGroup("Before the first HIT", (), tuple(VisitSettings.model_fields)),
    SettingGroup("How answers become scores", (), ("update_law", "prior", "gamma", "epsilon", "tie_margin_points")),
    SettingGroup(
        "Goal and selection",
        ("goal", "rule", "best_items", "threshold", "when_reached"),
        (*GOAL_NUMBER_SETTINGS, ASKED_BY_SETTING, "selection", "hits_per_iteration", "leaders_as_companions", "seed"),
    ),
    SettingGroup("Quality", ("quality_preset", "checks_percent"), ("gold_feedback", "quality_rules", "false_alarms")),
    SettingGroup("Notifications", (), tuple(AlertSettings.model_fields)),
    SettingGroup("List of campaigns", (), tuple(TagSettings.model_fields)),
)
