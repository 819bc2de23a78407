"""Questions and practice items as a table to read, where they can no longer be changed."""

from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

from app.annotation.onboarding.entry_questions import EntryQuestion, format_number_parts, parse_question_lines
from app.campaigns.settings import CampaignSettings
from app.uploads import format_cell, read_table

REASON_BY_FIXED_SETTING = {
    "questions": "Fixed, so that everyone answers the same questions. To ask others, copy the campaign.",
    "training": "Fixed, so that everyone learns from the same items. To use other items, copy the campaign.",
    "qualification": "Fixed, so that everyone passes the same test. To use another test, copy the campaign.",
}


class ReadableTable(NamedTuple):
    """A table on a page of settings.

    Attributes:
        reason: Why it can no longer be changed.

    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    reason: str


def readable_visit_table_by_setting(settings: CampaignSettings) -> dict[str, ReadableTable]:
    """Return the questions, the training and the qualification as tables, by the name of the setting; without those
    that the campaign does not have.
    """
    tables = {}
    if settings.questions:
        questions = parse_question_lines(settings.questions)
        tables["questions"] = ReadableTable(
            ("Question", "Answer", "Required", "Asked"), [readable_question_row(one) for one in questions], ""
        )
    for name in ("training", "qualification"):
        if table := getattr(settings, name):
            tables[name] = readable_table_of_practice_items(table)
    return {name: table._replace(reason=REASON_BY_FIXED_SETTING[name]) for name, table in tables.items()}


def readable_question_row(question: EntryQuestion) -> tuple[str, str, str, str]:
    """Return the text of a question, its possible answers, whether it must be answered, and when it is asked."""
    if question.number:
        answer = ", ".join(format_number_parts(question.number))
    else:
        answer = " · ".join(
            f"{choice} (screened out)" if question.screens_out(choice) else choice for choice in question.choices
        )
    condition = question.only_if
    asked = "always" if condition is None else f"only if {condition.question} is {' or '.join(condition.answers)}"
    return question.question, answer or "text", "no" if question.optional else "yes", asked


def readable_table_of_practice_items(table: str) -> ReadableTable:
    """Return practice items with the columns of their table."""
    upload = read_table(BytesIO(table.strip().encode()), "table.csv", max_mb=1)
    rows = [[format_cell(row.values.get(column)) for column in upload.columns] for row in upload.rows]
    return ReadableTable([column.capitalize() for column in upload.columns], rows, "")
