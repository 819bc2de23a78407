"""Converters from annotation files of other tools to plain tables with a row for each annotation. Pure.

Supported are Label Studio (JSON), Prodigy (JSON lines), Appraise (its CSV of scores, which has no header), choices
between two candidates (CSV of No More Marking), and answers of crowd elements in result files of Mechanical Turk. To
support another tool, add two functions and an entry in
`TOOL_READERS`.
"""

import hashlib
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, islice
from typing import Any, BinaryIO, Protocol

from app.annotation.platforms.cell_reading import ReadingNotes
from app.errors import Invalid
from app.uploads import UploadedRow, UploadedTable, format_cell, raise_upload_refusal_at_line

APPRAISE_COLUMNS = (
    *("annotator", "system", "segment", "type", "source_language", "target_language", "score", "document"),
    *("is_document", "start_time", "end_time"),
)
APPRAISE_ROW_PATTERN = re.compile(
    rb'"?[^,"]+"?,"?[^,"]*"?,"?[^,"]*"?,"?(TGT|REF|CHK|BAD[^,"]*|TUT)"?,"?[a-z-]+"?,"?[a-z-]+"?,"?[-0-9.]+"?,',
    re.IGNORECASE,
)
MAX_ROWS_FOR_COLUMN_NAMES = 1_000
TASK_ANSWERS_COLUMN = "Answer.taskAnswers"
CHOICE_COLUMNS = {"judge", "candidate_chosen", "candidate_not_chosen"}
BUTTON_STATES = frozenset(("true", "false", "on", "off", ""))
CHOSEN_BUTTON_STATES = frozenset(("true", "on"))
LABEL_STUDIO_VALUE_KINDS = ("rating", "choices", "number", "text", "taxonomy")


def file_with_appraise_header_if_missing(file: BinaryIO) -> BinaryIO:
    """Return Appraise's file of scores with a header; any other file unchanged."""
    first = file.readline(10_000)
    file.seek(0)
    if not APPRAISE_ROW_PATTERN.match(first):
        return file
    more = first.count(b",") + 1 - len(APPRAISE_COLUMNS)
    names = [
        *APPRAISE_COLUMNS[: len(APPRAISE_COLUMNS) + min(more, 0)],
        *(f"column_{len(APPRAISE_COLUMNS) + k + 1}" for k in range(more)),
    ]
    return io.BytesIO(",".join(names).encode() + b"\n" + file.read())


def table_with_row_per_annotation(upload: UploadedTable, notes: ReadingNotes) -> UploadedTable:
    """Return a tool's table with a row for each annotation; any other table unchanged.

    Args:
        upload: The table; its records are read lazily, while those of the result are read.
        notes: Gets the number of annotations left out.

    """
    first = next(upload.rows, None)
    if first is None:
        return upload
    upload = replace(upload, rows=chain([first], upload.rows))
    for is_own_record, iter_rows in TOOL_READERS:
        if is_own_record(first.values):
            return table_of_read_annotation_rows(upload, partial(iter_rows, notes=notes))
    return upload


AnnotationRows = Iterator[dict[str, Any]]


class AnnotationRowReader(Protocol):
    """Function that yields the rows of a record."""

    def __call__(self, record: UploadedRow, notes: ReadingNotes) -> AnnotationRows: ...


def table_of_read_annotation_rows(
    upload: UploadedTable, read_rows: Callable[[UploadedRow], AnnotationRows]
) -> UploadedTable:
    """Return a table with the rows that `read_rows` yields; its columns are those of the first rows."""
    records = (UploadedRow(record.line, row) for record in upload.rows for row in read_rows(record))
    first = list(islice(records, MAX_ROWS_FOR_COLUMN_NAMES))
    if not first:
        raise Invalid("This file has no finished annotations. Nothing was imported.", code="file_empty")
    columns = dict.fromkeys(name for record in first for name in record.values)
    return replace(upload, columns=tuple(columns), rows=chain(first, records))


# Label Studio


def is_label_studio_record(values: Mapping[str, Any]) -> bool:
    annotations = values.get("annotations", values.get("completions"))
    return isinstance(annotations, list) and all(
        isinstance(annotation, dict) and isinstance(annotation.get("result"), list) for annotation in annotations
    )


def iterate_rows_of_label_studio_record(record: UploadedRow, notes: ReadingNotes) -> AnnotationRows:
    """Yield a row for each annotation of a task: the task's data, the annotator, and a column for each control."""
    values = dict(record.values)
    annotations = values.pop("annotations", None) or values.pop("completions", None)
    data = values.pop("data", {})
    task_fields = {
        **(data if isinstance(data, dict) else {}),
        **{k: v for k, v in values.items() if k != "predictions"},
    }
    for annotation in annotations if isinstance(annotations, list) else []:
        if not isinstance(annotation, dict):
            raise_upload_refusal_at_line(
                "json_unreadable", record.line, "an annotation of this task is not a JSON object."
            )
        if annotation.get("was_cancelled"):
            notes.rejected += 1
            continue
        annotator = annotation.get("completed_by")
        row = {
            **{name: value for name, value in task_fields.items() if isinstance(value, str | int | float)},
            "annotator": annotator.get("email", annotator.get("id")) if isinstance(annotator, dict) else annotator,
            "annotation_id": annotation.get("id"),
            "created_at": annotation.get("created_at"),
        }
        for part in annotation["result"] if isinstance(annotation.get("result"), list) else []:
            name, value = (part.get("from_name"), part.get("value")) if isinstance(part, dict) else (None, None)
            if isinstance(name, str) and isinstance(value, dict):
                row[name] = single_value_of_control_or_refuse(record.line, name, value)
        yield row


def single_value_of_control_or_refuse(line: int, name: str, value: Mapping[str, Any]) -> Any:
    """Return the value of a control such as {"rating": 4} or {"choices": ["good"]}.

    Raises:
        Invalid: `answer_several`.

    """
    control_value = next((value[kind] for kind in value if kind in LABEL_STUDIO_VALUE_KINDS), None)
    if not isinstance(control_value, list):
        return control_value
    if len(control_value) > 1:
        raise_upload_refusal_at_line(
            "answer_several", line, f"several answers were given to “{name}”, but a value is a single answer."
        )
    return control_value[0] if control_value else None


# Prodigy


def is_prodigy_record(values: Mapping[str, Any]) -> bool:
    return "_task_hash" in values and "answer" in values


def iterate_rows_of_prodigy_record(record: UploadedRow, notes: ReadingNotes) -> AnnotationRows:
    """Yield the answered example, with the choice as `accept` (its id) and `accept_text`; nothing if it was ignored or
    the choice was rejected.
    """
    values = dict(record.values)
    accepted, options = values.pop("accept", None), values.pop("options", None)
    options = options if isinstance(options, list) else []
    if values.get("answer") == "ignore" or (accepted is not None and values.get("answer") != "accept"):
        notes.rejected += 1
        return
    row: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, str | int | float)}
    if isinstance(accepted, list):
        if len(accepted) > 1:
            raise_upload_refusal_at_line(
                "answer_several", record.line, "several options were chosen, but a value is a single option."
            )
        chosen = accepted[0] if accepted else None
        texts = {format_cell(option.get("id")): option.get("text") for option in options if isinstance(option, dict)}
        row |= {"accept": chosen, "accept_text": texts.get(format_cell(chosen), chosen)}
    yield row


# Appraise


def is_appraise_record(values: Mapping[str, Any]) -> bool:
    return set(APPRAISE_COLUMNS[:7]) <= values.keys()


def iterate_rows_of_appraise_record(record: UploadedRow, notes: ReadingNotes) -> AnnotationRows:
    """Yield the score of a segment; nothing for a control (such as BAD) or a whole document."""
    values = record.values
    if format_cell(values.get("type")).upper() != "TGT" or format_cell(values.get("is_document")).lower() == "true":
        notes.rejected += 1
        return
    yield values


# No More Marking


def is_comparison_choice_record(values: Mapping[str, Any]) -> bool:
    return {normalized_choice_column_name(name) for name in values} >= CHOICE_COLUMNS


def normalized_choice_column_name(name: str) -> str:
    """Return the name of a column as No More Marking documents it, from one with blanks or capitals."""
    return name.strip().lower().replace(" ", "_")


def iterate_choice_rows(record: UploadedRow, notes: ReadingNotes) -> AnnotationRows:
    """Yield the two candidates of a choice as a HIT: place 1 for the chosen one, 2 for the other.

    The file does not say which one was on the left, so their order is that of their names. The time is not kept.
    Equal rows are told apart by counting them: a later file may have the same choices on other lines.
    """
    notes.has_choices = True
    texts = {normalized_choice_column_name(name): format_cell(value).strip() for name, value in record.values.items()}
    places = {texts["candidate_chosen"]: 1, texts["candidate_not_chosen"]: 2}
    choice = (texts["judge"], *places, texts.get("time_taken", ""))
    notes.choice_repeats[choice] += 1
    parts = (notes.choice_repeats[choice], *choice)
    hit = hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
    for item, place in sorted(places.items()):
        yield {"hit": hit, "annotator": texts["judge"], "item": item, "value": place}


# Mechanical Turk: crowd elements


def is_record_with_crowd_elements(values: Mapping[str, Any]) -> bool:
    return any(name.startswith("Answer.") for name in values)


def iterate_rows_of_task_answer_record(record: UploadedRow, notes: ReadingNotes) -> AnnotationRows:  # noqa: ARG001  (AnnotationRowReader)
    """Yield the result with an `Answer.` column for each answer of its crowd elements.

    A group of radio buttons, which have a column each, gets one column with the name of the chosen button.
    """
    values = dict(record.values)
    if TASK_ANSWERS_COLUMN in values:
        task_answers_json = values.pop(TASK_ANSWERS_COLUMN)
        values |= {
            f"Answer.{name}": answer
            for name, answer in iterate_flat_names_and_answers(
                answer_by_crowd_element_or_refuse(record.line, task_answers_json)
            )
        }
    yield values_with_merged_radio_columns(values)


def answer_by_crowd_element_or_refuse(line: int, raw_answers: Any) -> Mapping[str, Any]:
    """Return the answers of crowd elements. Raises `Invalid` (`json_unreadable`)."""
    try:
        answers = json.loads(raw_answers) if isinstance(raw_answers, str) else raw_answers
    except ValueError:
        answers = None
    if isinstance(answers, list):
        answers = {name: value for part in answers if isinstance(part, dict) for name, value in part.items()}
    if not isinstance(answers, dict):
        raise_upload_refusal_at_line(
            "json_unreadable", line, f"{TASK_ANSWERS_COLUMN} is not the JSON of crowd elements."
        )
    return answers


def iterate_flat_names_and_answers(answers: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all nested values, with dots in their names."""
    for name, value in answers.items():
        if isinstance(value, dict):
            yield from iterate_flat_names_and_answers(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


@lru_cache(maxsize=16)  # rows of most files have the same columns
def radio_buttons_by_group_of_columns(columns: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Return the buttons of each group of columns `Answer.name.button`, by `Answer.name`."""
    groups: dict[str, tuple[str, ...]] = {}
    for name in columns:
        group, dot, button = name.rpartition(".")
        if name.startswith("Answer.") and dot and group != "Answer":
            groups[group] = (*groups.get(group, ()), button)
    return groups


def values_with_merged_radio_columns(values: dict[str, Any]) -> dict[str, Any]:
    """Return the result with one column for each group `Answer.name.button` of truth values, or `Answer.name.label`."""
    for group, buttons in radio_buttons_by_group_of_columns(tuple(values)).items():
        texts = {button: format_cell(values[f"{group}.{button}"]).strip().lower() for button in buttons}
        if buttons == ("label",):
            values[group] = values.pop(f"{group}.label")
        elif set(texts.values()) <= BUTTON_STATES and CHOSEN_BUTTON_STATES & set(texts.values()) and len(texts) > 1:
            chosen = [button for button, text in texts.items() if text in CHOSEN_BUTTON_STATES]
            for button in buttons:
                del values[f"{group}.{button}"]
            values[group] = chosen[0] if len(chosen) == 1 else None
    return values


TOOL_READERS: tuple[tuple[Callable[[Mapping[str, Any]], bool], AnnotationRowReader], ...] = (
    (is_label_studio_record, iterate_rows_of_label_studio_record),
    (is_prodigy_record, iterate_rows_of_prodigy_record),
    (is_appraise_record, iterate_rows_of_appraise_record),
    (is_comparison_choice_record, iterate_choice_rows),
    (is_record_with_crowd_elements, iterate_rows_of_task_answer_record),
)
