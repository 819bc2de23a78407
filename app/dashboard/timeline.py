"""Timeline of a campaign: its newest edits and decisions, and when its goal was reached."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.choice_titles import choice_title_by_value
from app.campaigns.settings import CampaignSettings
from app.database.alerts import ALERT_SENTENCES
from app.database.audit_log import LoggedFacts, describe_log_line, names_with_old_and_new_value_texts
from app.errors import join_with_and, pluralize
from app.quality.registry import QUALITY_RULES

MAX_TIMELINE_ENTRIES = 10  # the log has all
MAX_SETTING_CHARACTERS, MAX_RULES_CHARACTERS = 40, 160
TIMELINE_KINDS = ("campaign", "settings", "items", "answers")
ANNOTATOR_ACTIONS = ("answers.exclude", "answers.include", "answers.hold", "answers.release")
SETTINGS_ACTION, IMPORT_ACTION = "settings.changed", "items.imported"
GOAL_ALERTS = ("goal", "missed")

LIST_NEWEST_LOG_LINES = text("""
    SELECT * FROM audit_log WHERE campaign_id = :campaign AND split_part(action, '.', 1) = ANY(CAST(:kinds AS text[]))
    ORDER BY id DESC LIMIT :limit
""")

LIST_GOAL_ALERTS = text("""
    SELECT kind, about, raised_at FROM alerts WHERE campaign_id = :campaign AND kind = ANY(CAST(:kinds AS text[]))
    ORDER BY id DESC LIMIT :limit
""")


@dataclass(frozen=True)
class TimelineEntry:
    """An edit, a decision or an event.

    Attributes:
        who: Name of the person, or of the server.
        text: What they did, or what happened.
        annotator: The annotator whom it is about, such as A5; empty for others.
        changes: (name, old value, new value) of each changed setting, as text; None where there is no such value.

    """

    at: datetime
    who: str
    text: str
    annotator: str = ""
    changes: Sequence[tuple[str, str | None, str | None]] = ()


def titles_and_values_of_changed_settings(line: Row[Any]) -> list[tuple[str, str | None, str | None]]:
    """Return (title, old value, new value) of each setting that a log line changed, short enough for one line."""
    worded_line = LoggedFacts(facts_in_words(line.before or {}), facts_in_words(line.after or {}))
    changes = zip(worded_line.before | worded_line.after, names_with_old_and_new_value_texts(worded_line), strict=True)
    return [
        (
            title_of_setting(name),
            short_setting_text_or_none_if_unset(before, max_characters_of_setting(name)),
            short_setting_text_or_none_if_unset(after, max_characters_of_setting(name)),
        )
        for name, (_, before, after) in changes
    ]


def facts_in_words(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings in the words of the form: titles of choices, and of rules and their thresholds."""
    worded = {
        name: choice_title_by_value(name).get(value, value) if isinstance(value, str) else value
        for name, value in facts.items()
    }
    if isinstance(lines := facts.get("quality_rules"), list):
        worded["quality_rules"] = [rule_line_in_words(str(line)) for line in lines]
    return worded


def rule_line_in_words(line: str) -> str:
    """Return a custom rule with its titles.

    “gold.careful_percent: 5” becomes “Fails gold items, A careful person may fail (%): 5”. A line of a rule that this
    version does not have is returned as it is.
    """
    name, _, value = line.partition(":")
    rule_name, _, threshold = name.strip().partition(".")
    rule = QUALITY_RULES.get(rule_name)
    field = rule.model_fields.get(threshold) if rule and threshold else None
    if rule is None or (threshold and field is None):
        return line
    return f"{rule.title}{f', {field.title}' if field else ''}: {value.strip()}"


def phrase_of_log_line(line: Row[Any]) -> str:
    """Return a log line in words, with the numbers of imported items, gold items and attention items."""
    phrase = describe_log_line(line)
    counts = line.after or {}
    if line.action != IMPORT_ACTION or not isinstance(counts.get("items"), int):
        return phrase
    checks, gold = counts.get("checks", 0), counts.get("gold", 0)
    numbers = {"item": counts["items"], "gold item": gold, "attention item": checks - gold}
    texts = [pluralize(number, noun) for noun, number in numbers.items() if number]
    return phrase.replace("items", join_with_and(texts or ["0 items"]), 1)


def title_of_setting(name: str) -> str:
    """Return the title of a setting in the form; for settings of older versions, the name."""
    setting = CampaignSettings.model_fields.get(name)
    return (setting and setting.title) or name.replace("_", " ")


def max_characters_of_setting(name: str) -> int:
    """Return how long the text of a setting may be: rules end with their values, which must not be cut off."""
    return MAX_RULES_CHARACTERS if name == "quality_rules" else MAX_SETTING_CHARACTERS


def short_setting_text_or_none_if_unset(value: str | None, max_characters: int) -> str | None:
    """Return a value on one line without the decimals of whole numbers, cut after some characters."""
    if value is None:
        return None
    line = " ".join(value.removesuffix(".0").split())
    return line if len(line) <= max_characters else f"{line[: max_characters - 1]}…"


async def load_newest_timeline_entries(connection: AsyncConnection, campaign_id: int) -> list[TimelineEntry]:
    """Return the newest entries of a campaign's timeline, newest first."""
    parameters = {"campaign": campaign_id, "limit": MAX_TIMELINE_ENTRIES}
    lines = (await connection.execute(LIST_NEWEST_LOG_LINES, parameters | {"kinds": [*TIMELINE_KINDS]})).all()
    alerts = (await connection.execute(LIST_GOAL_ALERTS, parameters | {"kinds": [*GOAL_ALERTS]})).all()
    entries = [
        TimelineEntry(
            line.noted_at,
            line.who,
            phrase_of_log_line(line),
            line.about if line.action in ANNOTATOR_ACTIONS else "",
            titles_and_values_of_changed_settings(line) if line.action == SETTINGS_ACTION else (),
        )
        for line in lines
    ]
    entries += [
        TimelineEntry(alert.raised_at, "", ALERT_SENTENCES[alert.kind].format(about=alert.about)) for alert in alerts
    ]
    return sorted(entries, key=lambda entry: entry.at, reverse=True)[:MAX_TIMELINE_ENTRIES]
