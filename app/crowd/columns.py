"""Tables of answers with columns of any names: which column holds what, proposed and applied. Pure."""

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NoReturn

from app.crowd.reading import ReadingNotes, ReadingOptions
from app.errors import Invalid, listed, shortened, some_of
from app.upload import Upload, UploadedRow, as_text

NEEDED = ("item", "value")
OTHERS = (
    *("annotator", "hit", "issued_at", "submitted_at", "position", "segment", "criterion", "not_applicable"),
    "reason",
)
MAPPED = (*NEEDED, *OTHERS)
TAKEN_UNSAID = ("annotator", "hit", "issued_at", "submitted_at")  # from the likeliest column, if none is named
NO_COLUMN = "-"  # in the place of a name: none, not even the likeliest
ALL_NUMBERS = "*"  # in the name of a column, stands for 1, 2, ...
# What other tools call these columns, in small letters, likeliest first.
ALIASES = {
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
NOT_VALUES = re.compile(r"comment|feedback|remark|note|time|browser|agent|device|survey|suggest", re.IGNORECASE)
NUMBERED = re.compile(r"(.*?)([1-9]\d{0,3})")
STATUS = "AssignmentStatus"
REJECTED = "rejected"


def propose(columns: Sequence[str]) -> dict[str, str]:
    """Return by what Easel calls it the likeliest column of a table, for all that have a likely one."""
    inputs, answers = ([name for name in columns if name.startswith(prefix)] for prefix in ("Input.", "Answer."))
    rest = [name for name in columns if name not in (*inputs, *answers)]
    proposed = {role: name for role in MAPPED if (name := likeliest_column(role, rest))}
    if answers:
        proposed |= propose_of_template(inputs, [name for name in answers if not NOT_VALUES.search(name)])
    return {role: proposed[role] for role in MAPPED if role in proposed}


def propose_of_template(inputs: Sequence[str], answers: Sequence[str]) -> dict[str, str]:
    """Return the columns of item and value in a result file of Mechanical Turk: a numbered family of each of the same
    size, or one of each.
    """
    families = [(into, given) for into in numbered_families(inputs) for given in numbered_families(answers)]
    sizes = {**numbered_families(inputs), **numbered_families(answers)}
    same = [(into, given) for into, given in families if sizes[into] == sizes[given] > 1]
    if same:
        into = likeliest_column("item", [into.replace(ALL_NUMBERS, "") for into, _ in same]) or same[0][0].replace(
            ALL_NUMBERS, ""
        )
        found = next(pair for pair in same if pair[0].replace(ALL_NUMBERS, "") == into)
        return {"item": found[0], "value": found[1]}
    item, value = likeliest_column("item", inputs), likeliest_column("value", answers)
    alone = {"item": item or single_name(inputs), "value": value or single_name(answers)}
    return {role: name for role, name in alone.items() if name}


def single_name(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ""


def likeliest_column(role: str, columns: Sequence[str]) -> str:
    """Return the column with the likeliest name for a role; empty if none has one."""
    plain = {re.sub(r"^(input|answer|data)\.", "", name.strip().lower()): name for name in reversed(columns)}
    return next((plain[alias] for alias in ALIASES[role] if alias in plain), "")


def numbered_families(columns: Sequence[str]) -> dict[str, int]:
    """Return the families of columns numbered from 1 on without gaps, with their sizes."""
    numbers: dict[str, set[int]] = {}
    for name in columns:
        if match := NUMBERED.fullmatch(name):
            numbers.setdefault(match[1] + ALL_NUMBERS, set()).add(int(match[2]))
    return {family: len(found) for family, found in numbers.items() if found == set(range(1, len(found) + 1))}


def columns_of_family(name: str, columns: Sequence[str]) -> list[str]:
    """Return the columns that a name stands for: those with a number in the place of its `*`, or the one itself."""
    if ALL_NUMBERS not in name or name in columns:
        return [name]
    count = numbered_families(columns).get(name, 0) if name.endswith(ALL_NUMBERS) else 0
    if not count:
        count = next(k for k in range(1, len(columns) + 2) if name.replace(ALL_NUMBERS, str(k)) not in columns) - 1
    return [name.replace(ALL_NUMBERS, str(k)) for k in range(1, count + 1)]


def map_columns(upload: Upload, options: ReadingOptions, notes: ReadingNotes) -> Upload:
    """Return a table with the columns of Easel's own files, made from one with columns of other names.

    Args:
        upload: Its records are read while those of the result are.
        options: Which columns were chosen; for `TAKEN_UNSAID` the likeliest are taken if none was.
        notes: Takes what was read from which column.

    Raises:
        Invalid: `column_unknown` or `columns_unequal`; `result_columns` where neither the options nor the names tell
            which columns hold item, value and annotator.

    """
    chosen = {role: name for role, name in options.columns.items() if name}
    proposed = propose(upload.columns)
    likely = {role: proposed[role] for role in TAKEN_UNSAID if role in proposed}
    mapping = {role: name for role, name in (likely | chosen).items() if name != NO_COLUMN}
    if not {*NEEDED, "annotator"} <= mapping.keys():
        refuse_unmapped(upload.columns, proposed)
    families = {role: columns_of_family(name, upload.columns) for role, name in mapping.items()}
    check_mapping(families, mapping, upload.columns)
    notes.columns = ", ".join(f"{role} from {mapping[role]}" for role in MAPPED if role in mapping)
    read = {STATUS, *(name for names in families.values() for name in names)}
    notes.passed_over = listed([name for name in upload.columns if name not in read])
    columns = ("hit", *(role for role in MAPPED if role in mapping and role != "hit"))
    return replace(upload, columns=columns, records=long_rows(upload.records, families))


def check_mapping(families: Mapping[str, Sequence[str]], mapping: Mapping[str, str], columns: Sequence[str]) -> None:
    """Raises `Invalid` (`column_unknown`, `columns_unequal`)."""
    for role, names in families.items():
        if missing := [name for name in names or [mapping[role]] if name not in columns]:
            raise Invalid(
                f"There is no column {listed(missing)}. The columns are: {listed(columns)}. Nothing was imported.",
                code="column_unknown",
                columns=some_of(columns),
            )
    sizes = {len(names) for role, names in families.items() if len(names) > 1}
    if len(sizes) > 1 or (sizes and len(families["item"]) != len(families["value"])):
        raise Invalid(
            f"{mapping['item']} stands for {len(families['item'])} columns, and {mapping['value']} for "
            f"{len(families['value'])}. Each item needs a value. Nothing was imported.",
            code="columns_unequal",
        )


def long_rows(records: Iterator[UploadedRow], families: Mapping[str, Sequence[str]]) -> Iterator[UploadedRow]:
    """Yield a row for each item. Without a column for it, each record is a HIT, known by all that it says."""
    size, same = len(families["item"]), hit_names()
    for record in records:
        cells = {role: [as_text(record.values.get(name)).strip() for name in names] for role, names in families.items()}
        hit = cells["hit"][0] if "hit" in cells else same(record.values)
        for place in range(size):
            own = {role: values[place if len(values) > 1 else 0] for role, values in cells.items()}
            if own["item"] or own["value"] or size == 1:
                yield UploadedRow(record.line, own | {"hit": hit})


def hit_names() -> Callable[[Mapping[str, object]], str]:
    """Return a function that names records by what they say, and records that say the same by how many came before."""
    seen: dict[str, int] = {}

    def name_of(values: Mapping[str, object]) -> str:
        said = "\0".join(f"{name}\1{as_text(value)}" for name, value in values.items())
        digest = hashlib.sha256(said.encode()).hexdigest()[:16]
        seen[digest] = seen.get(digest, 0) + 1
        return f"row-{digest}" + (f"-{seen[digest]}" if seen[digest] > 1 else "")

    return name_of


def refuse_unmapped(columns: Sequence[str], proposed: Mapping[str, str]) -> NoReturn:
    """Refuse a table whose columns have no known use, and propose one."""
    needs = (*NEEDED, "annotator")
    lacks = [role for role in needs if role not in proposed]
    likely = ", ".join(f"{role}_column={shortened(proposed[role])}" for role in MAPPED if role in proposed)
    advice = f" Likely: {likely}." if proposed else ""
    raise Invalid(
        f"This file has the columns {listed(columns)}. Say which of them holds what: item_column, value_column and "
        f"annotator_column are needed.{advice}{f' It lacks a likely one for {listed(lacks)}.' if lacks else ''} A file "
        "with the columns hit, annotator, item and value, or a result file of Mechanical Turk with Input.id1, ... and "
        "Answer.range1, ... needs no such words. Nothing was imported.",
        code="result_columns",
        columns=some_of(columns),
        proposal={f"{role}_column": name for role, name in proposed.items()},
    )
