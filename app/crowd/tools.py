"""Files in which other tools keep annotations, as plain tables with a row for each annotation. Pure.

Label Studio (JSON), Prodigy (JSON lines), Appraise (its CSV of scores, which has no header), and the answers of crowd
elements in result files of Mechanical Turk. To read another tool's, add a function here and to `READERS`.
"""

import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, islice
from typing import Any, BinaryIO, Protocol

from app.crowd.reading import ReadingNotes
from app.errors import Invalid
from app.upload import Upload, UploadedRow, as_text, refuse

APPRAISE = (
    *("annotator", "system", "segment", "type", "source_language", "target_language", "score", "document"),
    *("is_document", "start_time", "end_time"),
)
APPRAISE_ROW = re.compile(
    rb'"?[^,"]+"?,"?[^,"]*"?,"?[^,"]*"?,"?(TGT|REF|CHK|BAD[^,"]*|TUT)"?,"?[a-z-]+"?,"?[a-z-]+"?,"?[-0-9.]+"?,',
    re.IGNORECASE,
)
ROWS_FOR_COLUMNS = 1_000
TASK_ANSWERS = "Answer.taskAnswers"
BOOLEANS = frozenset(("true", "false", "on", "off", ""))
CHOSEN = frozenset(("true", "on"))


def with_header(file: BinaryIO) -> BinaryIO:
    """Return the file of scores that Appraise writes with names of its columns; any other file as it is."""
    first = file.readline(10_000)
    file.seek(0)
    if not APPRAISE_ROW.match(first):
        return file
    more = first.count(b",") + 1 - len(APPRAISE)
    names = [*APPRAISE[: len(APPRAISE) + min(more, 0)], *(f"column_{len(APPRAISE) + k + 1}" for k in range(more))]
    return io.BytesIO(",".join(names).encode() + b"\n" + file.read())


def plain_table(upload: Upload, notes: ReadingNotes) -> Upload:
    """Return another tool's table with a row for each annotation; any other table as it is.

    Args:
        upload: Its records are read while those of the result are.
        notes: Takes how many annotations are left out.

    """
    first = next(upload.records, None)
    if first is None:
        return upload
    upload = replace(upload, records=chain([first], upload.records))
    for recognises, rows_of in READERS:
        if recognises(first.values):
            return from_rows(upload, partial(rows_of, notes=notes))
    return upload


Rows = Iterator[dict[str, Any]]


class RowsOf(Protocol):
    """Makes rows of a record."""

    def __call__(self, record: UploadedRow, notes: ReadingNotes) -> Rows: ...


def from_rows(upload: Upload, rows_of: Callable[[UploadedRow], Rows]) -> Upload:
    """Return a table of what `rows_of` makes of each record; its columns are those of its first rows."""
    records = (UploadedRow(record.line, row) for record in upload.records for row in rows_of(record))
    first = list(islice(records, ROWS_FOR_COLUMNS))
    if not first:
        raise Invalid("This file has no finished annotations. Nothing was imported.", code="file_empty")
    columns = dict.fromkeys(name for record in first for name in record.values)
    return replace(upload, columns=tuple(columns), records=chain(first, records))


# Label Studio


def is_label_studio(values: Mapping[str, Any]) -> bool:
    annotations = values.get("annotations", values.get("completions"))
    return isinstance(annotations, list) and all(
        isinstance(one, dict) and isinstance(one.get("result"), list) for one in annotations
    )


def label_studio_rows(record: UploadedRow, notes: ReadingNotes) -> Rows:
    """Yield a row for each annotation of a task: its data, who annotated, and what by the name of the control."""
    values = dict(record.values)
    annotations = values.pop("annotations", None) or values.pop("completions", None)
    data = values.pop("data", {})
    known = {**(data if isinstance(data, dict) else {}), **{k: v for k, v in values.items() if k != "predictions"}}
    for one in annotations if isinstance(annotations, list) else []:
        if not isinstance(one, dict):
            refuse("json_unreadable", record.line, "an annotation of this task is no JSON object.")
        if one.get("was_cancelled"):
            notes.rejected += 1
            continue
        by = one.get("completed_by")
        row = {
            **{name: value for name, value in known.items() if isinstance(value, str | int | float)},
            "annotator": by.get("email", by.get("id")) if isinstance(by, dict) else by,
            "annotation_id": one.get("id"),
            "created_at": one.get("created_at"),
        }
        for part in one["result"] if isinstance(one.get("result"), list) else []:
            name, value = (part.get("from_name"), part.get("value")) if isinstance(part, dict) else (None, None)
            if isinstance(name, str) and isinstance(value, dict):
                row[name] = only_value(record.line, name, value)
        yield row


def only_value(line: int, name: str, value: Mapping[str, Any]) -> Any:
    """Return what a control gave: {"rating": 4} or {"choices": ["good"]}. Raises `Invalid` (`answer_several`)."""
    kept = [given for kind, given in value.items() if kind in ("rating", "choices", "number", "text", "taxonomy")]
    given = kept[0] if kept else None
    if not isinstance(given, list):
        return given
    if len(given) > 1:
        refuse("answer_several", line, f"several answers were given to “{name}”, and a value is one of them.")
    return given[0] if given else None


# Prodigy


def is_prodigy(values: Mapping[str, Any]) -> bool:
    return "_task_hash" in values and "answer" in values


def prodigy_rows(record: UploadedRow, notes: ReadingNotes) -> Rows:
    """Yield an answered example, with what was chosen as `accept` (its id) and `accept_text`; none if it was ignored,
    or a choice was rejected.
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
            refuse("answer_several", record.line, "several options were chosen, and a value is one of them.")
        chosen = accepted[0] if accepted else None
        texts = {as_text(one.get("id")): one.get("text") for one in options if isinstance(one, dict)}
        row |= {"accept": chosen, "accept_text": texts.get(as_text(chosen), chosen)}
    yield row


# Appraise


def is_appraise(values: Mapping[str, Any]) -> bool:
    return set(APPRAISE[:7]) <= values.keys()


def appraise_rows(record: UploadedRow, notes: ReadingNotes) -> Rows:
    """Yield a score of a segment; none of a control (such as BAD), or of a whole document."""
    values = record.values
    if as_text(values.get("type")).upper() != "TGT" or as_text(values.get("is_document")).lower() == "true":
        notes.rejected += 1
        return
    yield values


# Mechanical Turk: crowd elements


def has_task_answers(values: Mapping[str, Any]) -> bool:
    return any(name.startswith("Answer.") for name in values)


def task_answer_rows(record: UploadedRow, notes: ReadingNotes) -> Rows:  # noqa: ARG001  (all are called alike)
    """Yield a result with an `Answer.` column for each answer of its crowd elements; of a group of radio buttons, which
    have a column each, one with the name of the button that was chosen.
    """
    values = dict(record.values)
    if TASK_ANSWERS in values:
        given = values.pop(TASK_ANSWERS)
        values |= {f"Answer.{name}": answer for name, answer in leaves(task_answers(record.line, given))}
    yield with_choices(values)


def task_answers(line: int, given: Any) -> Mapping[str, Any]:
    """Raises `Invalid` (`json_unreadable`)."""
    try:
        answers = json.loads(given) if isinstance(given, str) else given
    except ValueError:
        answers = None
    if isinstance(answers, list):
        answers = {name: value for one in answers if isinstance(one, dict) for name, value in one.items()}
    if not isinstance(answers, dict):
        refuse("json_unreadable", line, f"{TASK_ANSWERS} is not the JSON of crowd elements.")
    return answers


def leaves(answers: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values inside, by their names with dots."""
    for name, value in answers.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{before}{name}.")
        else:
            yield before + name, value


def with_choices(values: dict[str, Any]) -> dict[str, Any]:
    """Return a result with one column for a group `Answer.name.button` of truth values, and for `Answer.name.label`."""
    groups: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        above, dot, button = name.rpartition(".")
        if name.startswith("Answer.") and dot and above != "Answer":
            groups.setdefault(above, {})[button] = value
    for above, buttons in groups.items():
        texts = {button: as_text(value).strip().lower() for button, value in buttons.items()}
        if [*buttons] == ["label"]:
            values[above] = values.pop(f"{above}.label")
        elif set(texts.values()) <= BOOLEANS and CHOSEN & set(texts.values()) and len(texts) > 1:
            chosen = [button for button, text in texts.items() if text in CHOSEN]
            for button in buttons:
                del values[f"{above}.{button}"]
            values[above] = chosen[0] if len(chosen) == 1 else None
    return values


READERS: tuple[tuple[Callable[[Mapping[str, Any]], bool], RowsOf], ...] = (
    (is_label_studio, label_studio_rows),
    (is_prodigy, prodigy_rows),
    (is_appraise, appraise_rows),
    (has_task_answers, task_answer_rows),
)
