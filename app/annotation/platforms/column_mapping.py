"""Column mapping for answer files with any column names: proposing a role for each column, and applying it. Pure."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from app.annotation.platforms.cell_reading import ReadingNotes, ReadingOptions
from app.errors import Invalid, join_names, shorten_echo, shortened_names_that_message_shows
from app.uploads import UploadedRow, UploadedTable, format_cell

REQUIRED_ROLES = ("item", "value")
OPTIONAL_ROLES = (
    *("annotator", "hit", "issued_at", "submitted_at", "position", "segment", "criterion", "not_applicable"),
    "reason",
)
COLUMN_ROLES = (*REQUIRED_ROLES, *OPTIONAL_ROLES)
# These roles get the likeliest column if the uploader names none.
ROLES_MAPPED_BY_DEFAULT = ("annotator", "hit", "issued_at", "submitted_at")
NO_COLUMN_MARK = "-"  # instead of a column's name: map no column, not even the likeliest
NUMBER_WILDCARD = "*"  # in a column's name, stands for 1, 2, ...
# Names of these columns in other tools, in lowercase, likeliest first.
COLUMN_ALIASES = {
    role: names.split()
    for role, names in {
        "item": (
            "item item_id itemid id text_id doc_id document_id example_id sentence_id system text "
            "sentence example content sent question prompt image image_url url"
        ),
        "value": (
            "value score rating accept_text accept answer label choice category sentiment response "
            "judgment judgement range slider grade annotation"
        ),
        "annotator": (
            "annotator annotator_id workerid worker_id worker _annotator_id completed_by annotatorid "
            "user user_id userid username rater rater_id coder judge evaluator participant "
            "participant_id participantid prolific_pid email _session_id"
        ),
        "hit": "hit assignmentid assignment_id annotation_id hit_id _task_hash response_id responseid",
        "issued_at": "issued_at accepttime start_time started_at starttime start startdate",
        "submitted_at": (
            "submitted_at submittime end_time ended_at endtime end enddate created_at _timestamp "
            "timestamp received_at completed_at time date"
        ),
        "segment": "segment segment_id seg_id",
        "criterion": "criterion",
        "position": "position",
        "not_applicable": "not_applicable",
        "reason": "reason",
    }.items()
}
NOT_VALUE_COLUMN_PATTERN = re.compile(
    r"comment|feedback|remark|note|time|browser|agent|device|survey|suggest", re.IGNORECASE
)
NUMBERED_NAME_PATTERN = re.compile(r"(.*?)([1-9]\d{0,3})")
MTURK_STATUS_COLUMN = "AssignmentStatus"
REJECTED_STATUS = "rejected"


def likeliest_column_by_role(columns: Sequence[str]) -> dict[str, str]:
    """Return the likeliest column of a table for each role that has one."""
    inputs, answers = ([name for name in columns if name.startswith(prefix)] for prefix in ("Input.", "Answer."))
    other_columns = [name for name in columns if name not in (*inputs, *answers)]
    proposed = {
        role: name for role in COLUMN_ROLES if (name := column_with_likeliest_name_or_empty(role, other_columns))
    }
    if answers:
        proposed |= propose_columns_by_role_of_template(
            inputs, [name for name in answers if not NOT_VALUE_COLUMN_PATTERN.search(name)]
        )
    return {role: proposed[role] for role in COLUMN_ROLES if role in proposed}


def propose_columns_by_role_of_template(inputs: Sequence[str], answers: Sequence[str]) -> dict[str, str]:
    """Return the item and value columns of a Mechanical Turk result file: numbered families of equal size, or one each.

    Args:
        inputs: Columns with the inputs of the HIT template.
        answers: Columns with answers.

    """
    input_sizes, answer_sizes = size_by_numbered_family_of_columns(inputs), size_by_numbered_family_of_columns(answers)
    family_pairs = [
        (input_family, answer_family)
        for input_family, input_size in input_sizes.items()
        for answer_family, answer_size in answer_sizes.items()
        if input_size == answer_size > 1
    ]
    if family_pairs:
        base_names = [input_family.replace(NUMBER_WILDCARD, "") for input_family, _ in family_pairs]
        item_family, value_family = family_pairs[
            base_names.index(column_with_likeliest_name_or_empty("item", base_names) or base_names[0])
        ]
        return {"item": item_family, "value": value_family}
    item, value = (
        column_with_likeliest_name_or_empty("item", inputs),
        column_with_likeliest_name_or_empty("value", answers),
    )
    proposal = {
        "item": item or only_name_or_empty_if_several(inputs),
        "value": value or only_name_or_empty_if_several(answers),
    }
    return {role: name for role, name in proposal.items() if name}


def only_name_or_empty_if_several(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ""


def column_with_likeliest_name_or_empty(role: str, columns: Sequence[str]) -> str:
    """Return the column with the likeliest name for a role; empty if none has one."""
    names_by_alias = {re.sub(r"^(input|answer|data)\.", "", name.strip().lower()): name for name in reversed(columns)}
    return next((names_by_alias[alias] for alias in COLUMN_ALIASES[role] if alias in names_by_alias), "")


def size_by_numbered_family_of_columns(columns: Sequence[str]) -> dict[str, int]:
    """Return the size of each family of columns that are numbered from 1 without gaps."""
    numbers: dict[str, set[int]] = {}
    for name in columns:
        if match := NUMBERED_NAME_PATTERN.fullmatch(name):
            numbers.setdefault(match[1] + NUMBER_WILDCARD, set()).add(int(match[2]))
    return {
        family: len(family_numbers)
        for family, family_numbers in numbers.items()
        if family_numbers == set(range(1, len(family_numbers) + 1))
    }


def expand_number_wildcard_to_column_names(name: str, columns: Sequence[str]) -> list[str]:
    """Expand `*` in a column name to the numbered columns; a name without `*` returns itself."""
    if NUMBER_WILDCARD not in name or name in columns:
        return [name]
    count = size_by_numbered_family_of_columns(columns).get(name, 0) if name.endswith(NUMBER_WILDCARD) else 0
    if not count:
        count = next(k for k in range(1, len(columns) + 2) if name.replace(NUMBER_WILDCARD, str(k)) not in columns) - 1
    return [name.replace(NUMBER_WILDCARD, str(k)) for k in range(1, count + 1)]


def table_with_easel_columns_or_refuse(
    upload: UploadedTable, options: ReadingOptions, notes: ReadingNotes
) -> UploadedTable:
    """Return the table with the columns of Easel's own files instead of its own.

    Args:
        upload: The table; its records are read lazily, while those of the result are read.
        options: The chosen columns; for `ROLES_MAPPED_BY_DEFAULT` the likeliest is taken if none was chosen.
        notes: Gets the mapping.

    Raises:
        Invalid: `column_unknown` or `columns_unequal`; `result_columns` if neither the options nor the names tell
            which columns hold item, value and annotator.

    """
    chosen_columns = {role: name for role, name in options.columns.items() if name}
    proposed = likeliest_column_by_role(upload.columns)
    likely_columns = {role: proposed[role] for role in ROLES_MAPPED_BY_DEFAULT if role in proposed}
    mapping = {role: name for role, name in (likely_columns | chosen_columns).items() if name != NO_COLUMN_MARK}
    if not {*REQUIRED_ROLES, "annotator"} <= mapping.keys():
        refuse_unmapped_columns(upload.columns, proposed)
    families = {role: expand_number_wildcard_to_column_names(name, upload.columns) for role, name in mapping.items()}
    refuse_wrong_mapped_columns(families, mapping, upload.columns)
    notes.columns = ", ".join(f"{role} from {mapping[role]}" for role in COLUMN_ROLES if role in mapping)
    read = {MTURK_STATUS_COLUMN, *(name for names in families.values() for name in names)}
    notes.passed_over = join_names([name for name in upload.columns if name not in read])
    columns = ("hit", *(role for role in COLUMN_ROLES if role in mapping and role != "hit"))
    return replace(upload, columns=columns, rows=iterate_rows_with_one_item_each(upload.rows, families))


def refuse_wrong_mapped_columns(
    families: Mapping[str, Sequence[str]], mapping: Mapping[str, str], columns: Sequence[str]
) -> None:
    """Raise `Invalid` (`column_unknown`, `columns_unequal`) if the mapping does not fit the table."""
    for role, names in families.items():
        if missing := [name for name in names or [mapping[role]] if name not in columns]:
            raise Invalid(
                f"There is no column {join_names(missing)}. The columns are: {join_names(columns)}. "
                "Nothing was imported.",
                code="column_unknown",
                columns=shortened_names_that_message_shows(columns),
            )
    sizes = {len(names) for role, names in families.items() if len(names) > 1}
    if len(sizes) > 1 or (sizes and len(families["item"]) != len(families["value"])):
        raise Invalid(
            f"{mapping['item']} stands for {len(families['item'])} columns, but {mapping['value']} for "
            f"{len(families['value'])}. Each item needs a value. Nothing was imported.",
            code="columns_unequal",
        )


def iterate_rows_with_one_item_each(
    records: Iterator[UploadedRow], families: Mapping[str, Sequence[str]]
) -> Iterator[UploadedRow]:
    """Yield a row for each item. Without a `hit` column each record is a HIT, named by its content."""
    size, hit_name = len(families["item"]), make_hit_namer_by_content()
    for record in records:
        cells = {
            role: [format_cell(record.values.get(name)).strip() for name in names] for role, names in families.items()
        }
        hit = cells["hit"][0] if "hit" in cells else hit_name(record.values)
        for place in range(size):
            item_cells = {role: values[place if len(values) > 1 else 0] for role, values in cells.items()}
            if item_cells["item"] or item_cells["value"] or size == 1:
                yield UploadedRow(record.line, item_cells | {"hit": hit})


def make_hit_namer_by_content() -> Callable[[Mapping[str, object]], str]:
    """Return a function that names records by a digest of their content; duplicates get a running number."""
    counts_by_digest: dict[str, int] = {}

    def name_record(values: Mapping[str, object]) -> str:
        record_text = "\0".join(f"{name}\1{format_cell(value)}" for name, value in values.items())
        digest = hashlib.sha256(record_text.encode()).hexdigest()[:16]
        counts_by_digest[digest] = counts_by_digest.get(digest, 0) + 1
        return f"row-{digest}" + (f"-{counts_by_digest[digest]}" if counts_by_digest[digest] > 1 else "")

    return name_record


def refuse_unmapped_columns(columns: Sequence[str], proposed: Mapping[str, str]) -> NoReturn:
    """Refuse a table whose columns have no known roles, and propose some."""
    required_roles = (*REQUIRED_ROLES, "annotator")
    missing_roles = [role for role in required_roles if role not in proposed]
    likely = ", ".join(f"{role}_column={shorten_echo(proposed[role])}" for role in COLUMN_ROLES if role in proposed)
    advice = f" Likely: {likely}." if proposed else ""
    lacking = f" No column looks right for {join_names(missing_roles)}." if missing_roles else ""
    raise Invalid(
        f"This file has the columns {join_names(columns)}. Name the columns for item, value and annotator "
        f"(item_column, value_column and annotator_column).{advice}{lacking} A file with the columns hit, "
        "annotator, item and value, or a result file of Mechanical Turk with Input.id1, ... and Answer.range1, ... "
        "needs no such options. Nothing was imported.",
        code="result_columns",
        columns=shortened_names_that_message_shows(columns),
        proposal={f"{role}_column": name for role, name in proposed.items()},
    )
