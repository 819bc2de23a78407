"""Steps of the settings form: which settings are together, under which heading."""

from dataclasses import dataclass
from typing import Literal

from app.alerts.settings import AlertSettings
from app.annotation.platforms.settings import CALL_SETTING_NAMES, PANEL_SETTING_NAMES, RETURN_SETTING_NAMES
from app.annotation.platforms.study_settings import PEOPLE_FROM_TITLES, STUDY_PLATFORM, STUDY_SETTING_NAMES
from app.campaigns.person_pay import PERSON_FIELDS, PERSON_MINUTES_SETTING
from app.campaigns.tags import TagSettings
from app.designs.campaign import PeopleFrom
from app.designs.presentation import PresentationSettings
from app.designs.registry import DESIGNS
from app.designs.remarks import RemarkSettings
from app.goals.settings import GoalSettings

DESIGN_SETTINGS_SETTING = "design_settings"  # stands for the fields of all designs
CRITERIA_SETTING = "criteria"  # stands for the fields of each criterion
GOAL_NUMBER_SETTINGS = [name for name in GoalSettings.model_fields if name.startswith("goal_")]
NEED_FIELD = "need"  # the card that stands for a goal and a selection rule
DESIGN_OF_ITEMS_FIELD = "items_per_hit_of"  # the way of asking for which the items per HIT were entered; set by scripts
CRITERIA_SHOWN_SETTING, ASKED_BY_SETTING = "criteria_shown", "asked_by"
# Help about a group of settings, by one of the group.
HELP_BY_SETTING = {
    "question": "/admin/help/researchers/settings#what-you-ask",
    "content": "/admin/help/researchers/settings#what-you-ask",
    "must_play": "/admin/help/researchers/items#files",
    "judgments_per_item": "/admin/help/researchers/settings#how-much-you-ask",
    "pay_per_hit": "/admin/help/researchers/visit#how-a-visit-ends",
    "people_from": "/admin/help/researchers/paying-people#links",
    "prolific_completion_code": "/admin/help/researchers/visit#how-a-visit-ends",
    "leave_early": "/admin/help/researchers/visit#how-a-visit-ends",
    "panel_query": "/admin/help/researchers/paying-people#another-platform",
    "call_completed": "/admin/help/researchers/server-calls",
    "recruiting_title": "/admin/help/researchers/paying-people#links",
    "comment_on": "/admin/help/researchers/annotating#comments-and-flags",
    "consent": "/admin/help/researchers/visit#consent",
    "questions": "/admin/help/researchers/visit",
    "open_link": "/admin/help/researchers/visit",
    "withdrawal": "/admin/help/researchers/personal-data",
    "update_law": "/admin/help/researchers/settings#how-answers-become-scores",
    "rule": "/admin/help/researchers/settings#how-answers-become-scores",
    "goal": "/admin/help/researchers/goals",
    "quality_preset": "/admin/help/researchers/quality",
    "tags": "/admin/help/researchers/campaigns#find-a-campaign",
    "alert_emails": "/admin/help/researchers/alerts",
}

StepName = Literal["question", "visit", "items", "how-much", "quality", "review", "advanced"]
STEP_TITLES: dict[StepName, str] = {
    "question": "Question",
    "visit": "Participants’ visit",
    "items": "Items",
    "how-much": "How much",
    "quality": "Quality",
    "review": "Review and launch",
    "advanced": "Advanced",
}
STEPS_IN_ORDER = tuple(STEP_TITLES)


@dataclass(frozen=True)
class SettingGroup:
    """Fields of a step under one heading; the advanced ones are folded away.

    Attributes:
        people_from: The answer to “Where do people come from?” that needs this group. Empty: all do.

    """

    step: StepName
    title: str
    basic_settings: tuple[str, ...]
    advanced_settings: tuple[str, ...] = ()
    is_visible_to_annotators: bool = False
    people_from: PeopleFrom | Literal[""] = ""

    @property
    def settings(self) -> tuple[str, ...]:
        return self.basic_settings + self.advanced_settings

    @property
    def help_url(self) -> str:
        return next(HELP_BY_SETTING[name] for name in self.settings if name in HELP_BY_SETTING)


PAY_SECTION = "Pay"
PLAYING_SETTINGS = ("must_play", "max_plays", "switch_sounds", "loop")
FORM_FIELD_GROUPS = (
    SettingGroup(
        "question",
        "What annotators see",
        (
            *("question", "name", "instructions", "design", DESIGN_SETTINGS_SETTING),
            *("low_label", "high_label", "items_per_hit"),
        ),
        (
            *(CRITERIA_SETTING, CRITERIA_SHOWN_SETTING),
            *("in_short", "middle_label", "show_numbers", "language"),
            *("cannot_be_judged", "unjudged_reasons"),
        ),
        is_visible_to_annotators=True,
    ),
    SettingGroup("visit", "Recruiting", ("people_from",), is_visible_to_annotators=True),
    SettingGroup(
        "visit",
        PEOPLE_FROM_TITLES[STUDY_PLATFORM],
        (RETURN_SETTING_NAMES[0],),
        tuple(name for name in STUDY_SETTING_NAMES if name != PERSON_MINUTES_SETTING),
        people_from=STUDY_PLATFORM,
    ),
    SettingGroup("visit", "Another platform", PANEL_SETTING_NAMES[:2], PANEL_SETTING_NAMES[2:], people_from="platform"),
    SettingGroup("visit", "Calls to the platform’s server", (), CALL_SETTING_NAMES, people_from="platform"),
    SettingGroup(
        "visit",
        PAY_SECTION,
        ("pay_per_hit", "currency", PERSON_MINUTES_SETTING, "minutes_per_hit"),
        ("pay",),
        is_visible_to_annotators=True,
    ),
    SettingGroup(
        "visit",
        "Consent and people’s data",
        ("study_controller", "study_contact", "study_purpose", "ethics_approval", "consent"),
        ("identifiers_days", "free_text_days", "telemetry_days", "everything_days", "withdrawal"),
    ),
    SettingGroup(
        "visit",
        "Before the first task",
        ("questions", "training"),
        ("quotas", "welcome", "qualification", "pass_percent", "qualification_tries"),
    ),
    SettingGroup(
        "visit",
        "During and after the work",
        (),
        ("leave_early", "undo", "break_minutes", *RETURN_SETTING_NAMES[1:]),
        is_visible_to_annotators=True,
    ),
    SettingGroup(
        "visit",
        "Who can take part",
        ("open_link",),
        ("passphrase", "open_platforms", "people_per_address", "exclude_campaigns", "only_campaigns"),
    ),
    SettingGroup(
        "items",
        "How items are shown",
        ("content",),
        (
            *("source_column", "reference_column", "differences", "https_media", "latex"),
            *(name for name in PresentationSettings.model_fields if name not in PLAYING_SETTINGS),
        ),
        is_visible_to_annotators=True,
    ),
    SettingGroup("items", "Playing of recordings and videos", (), PLAYING_SETTINGS, is_visible_to_annotators=True),
    SettingGroup(
        "how-much",
        "What do you need?",
        ("goal", "best_items", "threshold", *GOAL_NUMBER_SETTINGS, ASKED_BY_SETTING, "when_reached"),
    ),
    SettingGroup(
        "how-much",
        "How many judgments?",
        ("judgments_per_item", "repeat_items", "hits_per_annotator"),
        (
            "assigned_column",
            "fixed_set",
            "fixed_items",
            "fixed_random",
            "condition_column",
            "block_order",
            "tasks_per_block",
            "block_pause",
            "content_column",
            "unjudged_people",
            "implied_asked_percent",
            "lease_minutes",
        ),
    ),
    SettingGroup(
        "quality",
        "Rules and checks",
        ("quality_preset", "checks_percent"),
        ("gold_feedback", "quality_rules", "false_alarms"),
    ),
    SettingGroup(
        "quality", "Comments and flags", (), tuple(RemarkSettings.model_fields), is_visible_to_annotators=True
    ),
    SettingGroup(
        "advanced", "How answers become scores", ("update_law", "prior", "gamma", "epsilon", "tie_margin_points")
    ),
    SettingGroup(
        "advanced",
        "How items are chosen",
        ("rule", "selection", "hits_per_iteration", "leaders_as_companions", "seed"),
    ),
    SettingGroup("advanced", "Notifications", tuple(AlertSettings.model_fields)),
    SettingGroup("advanced", "List of campaigns", tuple(TagSettings.model_fields)),
)
STEP_BY_SETTING: dict[str, StepName] = {name: group.step for group in FORM_FIELD_GROUPS for name in group.settings}


def step_of_field_or_none(field_name: str) -> StepName | None:
    """Return the step that has a field of the form, by the name of the field; None if no step has it."""
    first_part = field_name.partition(".")[0]
    if field_name == DESIGN_OF_ITEMS_FIELD:
        return STEP_BY_SETTING["items_per_hit"]
    if first_part in PERSON_FIELDS:
        return STEP_BY_SETTING[PERSON_MINUTES_SETTING]
    setting = DESIGN_SETTINGS_SETTING if first_part in DESIGNS and "." in field_name else first_part
    return STEP_BY_SETTING.get("goal" if first_part == NEED_FIELD else setting)
