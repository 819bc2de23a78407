"""Codebook of exported files: a row for each column that was written, with its meaning, unit and allowed values."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from app.analysis.methods import SCORE_METHODS
from app.analysis.result_types import Column
from app.annotation.onboarding.entry_questions import parse_question_lines
from app.annotation.platforms.easel_results import ENTRY_ANSWER_PREFIX
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.exports.codebook_entries import (
    COMMON_ENTRIES,
    COUNT_VALUES,
    ENTRIES_BY_FILE,
    NOT_FOR_REPORTS,
    NUMBER_VALUES,
    ONE_AT_MOST,
    PROBABILITY,
    PROBABILITY_PREFIXES,
    REPORT_IF_EVEN,
    REPORT_IF_SELECTED,
    TABLE_ENTRIES,
    TABLE_ENTRIES_BY_FILE,
    ColumnEntry,
)
from app.inference.online.laws import ONLINE_LAWS
from app.text.table_formats import RowCells

CODEBOOK_COLUMNS = ("file", "column", "meaning", "unit", "values")
INTERVAL_END_WORDS = {"_low": "Lower end of the 95 % interval of", "_high": "Upper end of the 95 % interval of"}
VALUES_BY_COLUMN_KIND = {"count": COUNT_VALUES, "number": NUMBER_VALUES}
INTERVAL_ADVICE_BY_METHOD = {
    "mean": REPORT_IF_EVEN,
    "shrunken_mean": REPORT_IF_SELECTED,
    **dict.fromkeys(ONLINE_LAWS, NOT_FOR_REPORTS),
}
UPLOADED_ENTRY = ColumnEntry("Your own column, as uploaded")
UNTITLED_COLUMN = "Name of the row"
UPLOADED_PREFIX = "uploaded_"  # of own columns whose name the export uses itself


def codebook_rows(
    path: str,
    columns: Sequence[str],
    criterion: Criterion[Campaign],
    *,
    uploaded_columns: Sequence[str] = (),
    table_columns: Sequence[Column] = (),
) -> list[RowCells]:
    """Return the rows of a file; the meaning is empty where a column has no entry.

    Args:
        path: Path of the file in the zip.
        columns: The columns that were written, in order.
        criterion: The criterion of the file, else the first, whose units hold.
        uploaded_columns: Names of the columns that the researcher uploaded.
        table_columns: Columns of the table of the analysis that the file holds, if any.

    """
    export_name = path.rpartition("/")[2].partition(".")[0]
    title_by_name = {column.name: column for column in table_columns}
    rows: list[RowCells] = []
    for name in columns:
        entry = (
            entry_of_table_column(export_name, title_by_name[name])
            if name in title_by_name
            else find_column_entry(export_name, name, criterion, uploaded_columns)
        )
        rows.append((path, name, entry.meaning, entry.unit, entry.values))
    return rows


def entry_of_table_column(export_name: str, column: Column) -> ColumnEntry:
    """Return the entry of a column of the analysis; if it has none of its own, its title says what it means."""
    entry = TABLE_ENTRIES_BY_FILE.get(export_name, {}).get(column.name) or TABLE_ENTRIES.get(column.name)
    if entry is not None:
        return entry
    if column.name.startswith(PROBABILITY_PREFIXES):
        return ColumnEntry(column.title, PROBABILITY, ONE_AT_MOST)
    return ColumnEntry(column.title or UNTITLED_COLUMN, values=VALUES_BY_COLUMN_KIND.get(column.kind, ""))


def find_column_entry(
    export_name: str, name: str, criterion: Criterion[Campaign], uploaded_columns: Sequence[str]
) -> ColumnEntry:
    """Return the entry of a column of an export; without a meaning if there is none."""
    design, law = criterion.design, criterion.law
    entry = ENTRIES_BY_FILE.get(export_name, {}).get(name) or COMMON_ENTRIES.get(name)
    if export_name == "scores" and (method_entry := entry_of_score_method_or_none(name)):
        return method_entry
    if name in law.family.parameter_names and law.family.counts_classes:
        label = design.classes[law.family.parameter_names.index(name)]
        return ColumnEntry(f"Count of the label “{label}” in the posterior", values="above 0")
    if entry is not None:
        units = {"score": design.score_unit(law).axis_title, "mean": design.unit.axis_title}
        values = design.allowed_values_text if (export_name, name) == ("responses", "score") else entry.values
        return replace(entry, unit=entry.unit.format(**units), values=values)
    if name.startswith(ENTRY_ANSWER_PREFIX):
        return entry_of_question(name.removeprefix(ENTRY_ANSWER_PREFIX), criterion.campaign.questions)
    if name in uploaded_columns or name.removeprefix(UPLOADED_PREFIX) in uploaded_columns:
        return UPLOADED_ENTRY
    return ColumnEntry("")


def entry_of_question(name: str, question_lines: Sequence[str]) -> ColumnEntry:
    """Return the entry of the answers to an entry question, with its text and its choices."""
    question = next((question for question in parse_question_lines(question_lines) if question.name == name), None)
    if question is None:
        return ColumnEntry(f"The annotator's answer to the question “{name}”")
    values = "a number" if question.number else ", ".join(question.choices)
    return ColumnEntry(f"The annotator's answer to the question “{question.question}”", values=values)


def entry_of_score_method_or_none(name: str) -> ColumnEntry | None:
    """Return the entry of a method's score, or of an end of its interval; None for other columns."""
    ends: Mapping[str, str] = INTERVAL_END_WORDS
    for ending, words in {"": "", **ends}.items():
        method_name = name.removesuffix(ending) if ending and name.endswith(ending) else name
        method = SCORE_METHODS.get(method_name)
        if method is not None:
            meaning = f"{words} the score by {method.title}" if words else f"Score by {method.title}. {method.assumes}"
            meaning += f"; {advice}" if words and (advice := INTERVAL_ADVICE_BY_METHOD.get(method_name)) else ""
            return ColumnEntry(meaning, method.unit, VALUES_BY_COLUMN_KIND["number"])
    return None
