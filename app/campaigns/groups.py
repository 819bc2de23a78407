"""Which settings of a campaign stand together in its form, and under which heading."""

from dataclasses import dataclass

from app.alerts.settings import AlertSettings
from app.crowd.settings import RETURN_SETTING_NAMES
from app.designs.remarks import RemarkSettings
from app.goals.settings import GoalSettings
from app.visit.settings import VisitSettings

DESIGN_SETTINGS = "design_settings"  # stands for the fields of all designs
CRITERIA = "criteria"  # stands for the fields of each criterion
GOAL_NUMBERS = [name for name in GoalSettings.model_fields if name.startswith("goal_")]
CRITERIA_SHOWN, ASKED_BY = "criteria_shown", "asked_by"


@dataclass(frozen=True)
class FieldGroup:
    """Fields under one heading; the advanced ones are folded away."""

    title: str
    plain: tuple[str, ...]
    advanced: tuple[str, ...] = ()
    seen: bool = False  # whether annotators see what is chosen here


GROUPS = (
    FieldGroup(
        "What annotators see",
        (
            *("name", "question", "instructions", "content", "design", DESIGN_SETTINGS),
            *("low_label", "high_label", "items_per_hit"),
        ),
        (
            *(CRITERIA, CRITERIA_SHOWN),
            *("in_short", "middle_label", "show_numbers", "language"),
            *("cannot_be_judged", "unjudged_reasons"),
            *("source_column", "reference_column", "differences", "https_media", "latex"),
        ),
        seen=True,
    ),
    FieldGroup(
        "How much is asked, and of whom",
        ("judgments_per_item", "repeat_items", "hits_per_annotator"),
        ("unjudged_people", "implied_asked_percent", "lease_minutes"),
    ),
    FieldGroup(
        "Pay, pace, and the way back",
        ("minutes_per_hit", "pay", RETURN_SETTING_NAMES[0]),
        ("pay_per_hit", "currency", "leave_early", "undo", "break_minutes", *RETURN_SETTING_NAMES[1:]),
        seen=True,
    ),
    FieldGroup("Comments and flags", (), tuple(RemarkSettings.model_fields), seen=True),
    FieldGroup("Before the work: what annotators see and agree to first", (), tuple(VisitSettings.model_fields)),
    FieldGroup("How answers become scores", (), ("update_law", "prior", "gamma", "epsilon", "tie_margin_points")),
    FieldGroup(
        "What is asked next, and when enough is known",
        ("goal", "rule", "best_items", "threshold", "when_reached"),
        (*GOAL_NUMBERS, ASKED_BY, "selection", "hits_per_iteration", "leaders_as_companions", "seed"),
    ),
    FieldGroup(
        "Who can be relied on", ("quality_preset", "checks_percent"), ("gold_feedback", "quality_rules", "false_alarms")
    ),
    FieldGroup("What you should hear of", (), tuple(AlertSettings.model_fields)),
)
