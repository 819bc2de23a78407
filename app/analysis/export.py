"""Exports: items with their posteriors, responses one item a row, assignments, settings, the EASL program's own file.

Everything is streamed from one snapshot, in memory that does not grow with the campaign. No export holds a platform's
worker id: annotators appear under their pseudonyms. Assignments are named as the platform does, for paying them.

`spreadsheet=True` writes CSV for spreadsheet programs (see `formats`); text that annotators sent is always guarded.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from typing import Any, Literal

import numpy as np
from sqlalchemy import Row, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.alerts.settings import AlertSettings
from app.analysis import calibrated_intervals
from app.analysis.assignments_export import export_assignments
from app.analysis.fit_cache import FitCache
from app.analysis.fitted_exports import FitRequest, fitted_export_openers
from app.analysis.formats import (
    BYTE_ORDER_MARK,
    EXPORT_ROWS_PER_BATCH,
    RowCells,
    TableStream,
    format_csv_rows,
    format_json_lines,
    format_spreadsheet_rows,
    format_utc_time,
)
from app.analysis.goal_columns import GoalColumns, load_goal_columns
from app.analysis.remarks_export import export_remarks
from app.analysis.responses_export import CRITERION_COLUMN, LABEL_COLUMN, export_responses
from app.analysis.result_types import Options, to_cell_columns
from app.analysis.segments_export import export_segments
from app.analysis.unanswered_export import export_unanswered_hits
from app.analysis.unjudged_export import UNJUDGED_EXPORT_COLUMNS, load_unjudged_cells
from app.analysis.visits_export import export_visits
from app.annotation.onboarding.settings import VisitSettings
from app.database.audit_log import load_changes_since_launch, log_change
from app.database.bulk import NumberColumn, fetch_arrays_on_driver, open_snapshot, prefetch
from app.database.campaign import load_campaign_by_slug
from app.database.session import driver_of
from app.database.tables import campaigns
from app.designs.criteria import criterion_number, criterion_views, find_criterion
from app.designs.registry import design_of
from app.errors import Conflict, NotFound, shorten_echo
from app.field_flags import is_private_field
from app.goals.settings import RELEASE_ITEMS
from app.inference.ground.arrays import Array, distinct_rows
from app.inference.online.law import PosteriorFamily
from app.inference.ratings.moderated_means import ModeratedMeans
from app.record.campaign_law import law_of

EXPORT_MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson", "json": "application/json"}
COLUMNS_WITHOUT_SETTING = (
    *("id", "slug", "link_key", "status", "iteration"),  # the link key opens the task, so it is not handed around
    *("created_at", "launched_at", "finished_at", "archived_at", "revision", "decided", "fewest_items", "goal_reached"),
    *("always_shown", "tried_at", "rehearsal_of", "segment_count", "asked_criterion", "visit_version", "has_checks"),
    *("releases", "newest_plan"),
)
SETTLED_EXPORT_COLUMNS = ("settled",)
DEVIATION_EXPORT_COLUMNS = ("standard_deviation",)  # of a posterior
EASL_COLUMNS = ("alpha", "beta", "mode", "var")
EASL_COLUMN_ALIASES = ("mu", "sigma")  # what its documentation calls mode and var

ExportFormat = Literal["csv", "jsonl", "json"]
UnjudgedCells = Callable[[Sequence[int]], Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class ItemBlock:
    """Some items, column by column: their ids, what was shown, the uploaded rows; `numbers` as `NUMBERS` has them."""

    ids: Sequence[str]
    shown: Sequence[str]
    uploaded_rows: Sequence[dict[str, Any]]
    numbers: dict[str, NumberColumn]

    def uploaded_columns(self, columns: Sequence[str]) -> list[list[Any]]:
        """What was uploaded, column by column; None where an item has no such value."""
        return [[row.get(name) for row in self.uploaded_rows] for name in columns]


@dataclass(frozen=True)
class ExportFile:
    """A file to send, piece by piece. criterion: that which it is of, where it is of one."""

    slug: str
    name: str
    extension: str
    chunks: AsyncGenerator[str, None]
    criterion: str = ""

    @property
    def media_type(self) -> str:
        return EXPORT_MEDIA_TYPES[self.extension]


async def open_export(
    engine: AsyncEngine,
    slug: str,
    export_name: str,
    format_: ExportFormat = "csv",
    *,
    spreadsheet: bool = False,
    fits: FitCache | None = None,
    options: Options = Options(),
    criterion: str = "",
) -> ExportFile:
    """An export of `names`; settings are JSON and the `easl` file is CSV, whatever the format.

    The audit log notes who downloaded an export about single annotators.

    fits: where those that are `fitted` come from. criterion: the name of that which they and the `easl` file are of,
    the first if it is empty; the others have all. Raises before the first piece: `NotFound` (`campaign_not_found`,
    `criterion_not_found`, `export_not_found`), `Conflict` (`not_launched`: no posteriors yet, `no_beta_posterior`: the
    law has none that the EASL program could read; `no_segments`: the items are no systems; with the code of an
    `Inestimable`: nothing can be fitted).
    """
    async with engine.connect() as connection:
        campaign = await load_campaign_by_slug(connection, slug)
        settings_changes = await load_changes_since_launch(connection, campaign.id) if export_name == "settings" else ()
    criterion_view = find_criterion(campaign, criterion)
    criterion_name = criterion_view.criterion_name if campaign.criteria else ""
    if export_name == "settings":
        return ExportFile(slug, export_name, "json", stream_one_text(format_settings_json(campaign, settings_changes)))
    if export_name not in export_names() or format_ not in ("csv", "jsonl"):
        raise NotFound(
            f"There is no export “{shorten_echo(export_name)}” as {format_}.",
            code="export_not_found",
            exports=[*export_names()],
        )
    file_name = f"{export_name}-excel" if spreadsheet and format_ == "csv" else export_name
    if open_table := fitted_export_openers().get(export_name):
        table = await open_table(FitRequest(fits or FitCache(), engine, slug, options, criterion))
        pieces = stream_table_text(table, format_, spreadsheet=spreadsheet)
        return ExportFile(slug, file_name, format_, pieces, criterion_name)
    if export_name in ("items", "easl") and campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: it has no posteriors yet.", code="not_launched")
    if export_name == "segments" and not campaign.segment_count:
        raise Conflict(f"The items of “{campaign.name}” are no systems, so there are no segments.", code="no_segments")
    if export_name == "easl":
        if not has_beta_posteriors(campaign):
            raise Conflict(
                f"The update law {campaign.update_law} has no alpha and beta that the EASL program could read.",
                code="no_beta_posterior",
            )
        pieces = stream_table_from_snapshot(engine, criterion_view, export_easl_file, "csv", spreadsheet=spreadsheet)
        return ExportFile(slug, file_name, "csv", pieces, criterion_name)
    if export_name in EXPORTS_ABOUT_ANNOTATORS:
        async with engine.begin() as connection:
            await log_change(connection, "people.downloaded", campaign, about=f"{export_name}.{format_}")
    chunks = stream_table_from_snapshot(engine, campaign, TABLE_EXPORTS[export_name], format_, spreadsheet=spreadsheet)
    return ExportFile(slug, file_name, format_, chunks)


def has_beta_posteriors(campaign: Any) -> bool:
    """Whether the posteriors are such as the released EASL program could read."""
    return law_of(campaign).family.parameter_names == EASL_COLUMNS[:2]


async def stream_table_from_snapshot(
    engine: AsyncEngine, campaign: Any, open_table: "TableOpener", format_: ExportFormat, *, spreadsheet: bool
) -> AsyncGenerator[str, None]:
    """A table as text. It has a snapshot of its own, since a request's transaction ends before its reply is sent."""
    async with open_snapshot(engine) as connection:
        async for piece in stream_table_text(await open_table(connection, campaign), format_, spreadsheet=spreadsheet):
            yield piece


async def stream_table_text(
    table: TableStream, format_: ExportFormat, *, spreadsheet: bool
) -> AsyncGenerator[str, None]:
    """A table as text."""
    format_rows = (
        format_json_lines if format_ == "jsonl" else format_spreadsheet_rows if spreadsheet else format_csv_rows
    )
    if format_ == "csv":
        yield BYTE_ORDER_MARK * spreadsheet + format_rows(table.columns, [table.columns])
    async for rows in table.chunks:
        yield await asyncio.to_thread(format_rows, table.columns, rows)


async def export_items(connection: AsyncConnection, campaign: Row[Any]) -> TableStream:
    """One row per item: id, shown, the uploaded columns, then the posterior's parameters, its score, standard deviation
    and interval, and the mean of what was given with its standard error and calibrated interval: all in points, or in
    the other unit that pages show. Where the posterior counts classes, the likeliest label and its share; where values
    have no order, no mean. Where annotators may say that an item cannot be judged, how many did and why; what a goal
    says of it. Of several criteria, a row per item by the first, then by the next.
    """
    unjudged = await load_unjudged_cells(connection, campaign)
    uploaded = [name for name in await load_uploaded_columns(connection, campaign.id) if name != "id"]
    parts = [await load_item_row_formatter(connection, one, unjudged, uploaded) for one in criterion_views(campaign)]
    own_columns = ("id", "shown", *parts[0].columns)
    renamed = [
        unused_column_name(name, {*own_columns, *uploaded}) if name in own_columns else name for name in uploaded
    ]

    async def chunks() -> AsyncIterator[list[RowCells]]:
        for part in parts:
            async with aclosing(stream_item_rows(connection, part.campaign, part.format_rows)) as blocks:
                async for rows in blocks:
                    yield rows

    return TableStream((*own_columns[:2], *renamed, *own_columns[2:]), chunks())


@dataclass(frozen=True)
class ItemRowFormatter:
    """What the export of items says by one criterion. known: calibrated intervals. unjudged: see `unjudged_cells`."""

    campaign: Any
    intervals: ModeratedMeans
    unjudged_cells: UnjudgedCells | None
    uploaded_columns: Sequence[str]
    goal_columns: GoalColumns

    @property
    def columns(self) -> tuple[str, ...]:
        """After the uploaded ones."""
        law, design = law_of(self.campaign), design_of(self.campaign)
        family = law.family
        criterion = (CRITERION_COLUMN,) if self.campaign.criteria else ()
        label = (LABEL_COLUMN,) if family.counts_classes else ()
        unit = design.score_unit(law)
        deviation = DEVIATION_EXPORT_COLUMNS if unit.has_standard_errors else ()
        score = unit.score_column or family.score_name
        posterior = (*family.parameter_names, *label, score, *deviation, "low_95", "high_95", "judgments")
        means = (
            tuple(calibrated_intervals.calibrated_columns_in_unit(design.unit, self.intervals.select_items([])))
            if design.is_ordered
            else ()
        )
        unjudged = UNJUDGED_EXPORT_COLUMNS if self.unjudged_cells else ()
        return (
            *criterion,
            *posterior,
            *means,
            *unjudged,
            *(SETTLED_EXPORT_COLUMNS if self.has_settled_items else ()),
            *self.goal_columns.names,
        )

    @property
    def has_settled_items(self) -> bool:
        """Whether it matters which items are settled."""
        return bool(self.campaign.when_reached == RELEASE_ITEMS or self.campaign.releases)

    def format_rows(self, block: ItemBlock) -> list[RowCells]:
        """Of some items, with the cells that every item has."""
        campaign, numbers = self.campaign, block.numbers
        law, design = law_of(campaign), design_of(campaign)
        family = law.family
        state = [numbers[name] for name in family.parameter_names]
        unit = design.score_unit(law)
        deviation = (np.sqrt(numbers["variance"]),) if unit.has_standard_errors else ()
        shown = map(unit.to_file_values, (numbers["score"], *deviation, *posterior_intervals(family, state)))
        criterion = [[campaign.criterion_name] * len(block.ids)] if campaign.criteria else []
        labels = [likeliest_labels(campaign, np.array(state), numbers["judgments"])] if family.counts_classes else []
        posterior = to_cell_columns(*shown, numbers["judgments"])
        calibrated_values = (
            calibrated_intervals.calibrated_columns_in_unit(
                design.unit, self.intervals.select_items(numbers["number"])
            ).values()
            if design.is_ordered
            else ()
        )
        unjudged = self.unjudged_cells(numbers["number"].tolist()) if self.unjudged_cells else []
        settled = [(numbers["settled"] > 0).tolist()] if self.has_settled_items else []
        columns = (
            *criterion,
            *to_cell_columns(*state),
            *labels,
            *posterior,
            *to_cell_columns(*calibrated_values),
            *unjudged,
            *settled,
        )
        columns += (*self.goal_columns.cells(numbers["number"]),)
        return list(zip(block.ids, block.shown, *block.uploaded_columns(self.uploaded_columns), *columns, strict=True))


async def load_item_row_formatter(
    connection: AsyncConnection, campaign: Any, unjudged_cells: UnjudgedCells | None, uploaded_columns: Sequence[str]
) -> ItemRowFormatter:
    """Of what all judgments say; what is needed of each item is kept, and no more."""
    evidence = await calibrated_intervals.load_calibrated_evidence(connection, campaign)
    goal_values = await load_goal_columns(connection, campaign, evidence)
    return ItemRowFormatter(campaign, evidence.intervals, unjudged_cells, uploaded_columns, goal_values)


def likeliest_labels(campaign: Any, state: Array, judgments: NumberColumn) -> list[str | None]:
    """The likeliest label of each item, (K, N); None where nobody has judged, or no label leads."""
    classes = design_of(campaign).classes
    class_numbers = law_of(campaign).family.most_counted_class(state)
    return [
        classes[one] if one >= 0 and count else None
        for one, count in zip(class_numbers.tolist(), judgments.tolist(), strict=True)
    ]


def unused_column_name(name: str, taken_names: set[str]) -> str:
    """Another name for an uploaded column that is called like one of ours."""
    while name in taken_names:
        name = f"uploaded_{name}"
    return name


async def export_easl_file(connection: AsyncConnection, campaign: Any) -> TableStream:
    """The file that the released EASL program continues from: the uploaded columns, then alpha, beta, mode and var."""
    columns = await load_uploaded_columns(connection, campaign.id)
    replaced = {"id", *EASL_COLUMNS, *(EASL_COLUMN_ALIASES if set(EASL_COLUMNS[:2]) <= set(columns) else ())}
    kept_columns = [name for name in columns if name not in replaced]

    def cells(items: ItemBlock) -> list[RowCells]:
        posterior = to_cell_columns(*(items.numbers[name] for name in (*EASL_COLUMNS[:2], "score", "variance")))
        return list(zip(items.ids, *items.uploaded_columns(kept_columns), *posterior, strict=True))

    return TableStream(("id", *kept_columns, *EASL_COLUMNS), stream_item_rows(connection, campaign, cells))


def posterior_intervals(family: PosteriorFamily, state: Sequence[Array]) -> tuple[Array, Array]:
    """Both ends for each posterior; many are alike, and an interval takes longer than to find that out."""
    first, positions = distinct_rows(state)
    low, high = family.interval(*(column[first] for column in state))
    return low[positions], high[positions]


async def load_uploaded_columns(connection: AsyncConnection, campaign_id: int) -> list[str]:
    """All columns that items came with, in the order in which they first appeared."""
    return list(await connection.scalars(FIND_UPLOADED_COLUMNS, {"campaign": campaign_id}))


async def stream_item_rows(
    connection: AsyncConnection, campaign: Any, format_rows: Callable[[ItemBlock], list[RowCells]]
) -> AsyncGenerator[list[RowCells]]:
    """What `cells` makes of so many items at a time: while one block is written, the next is made, in a thread, and the
    one after that is read.
    """
    driver = await driver_of(connection)
    starts = count(0, EXPORT_ROWS_PER_BATCH)
    names = law_of(campaign).family.parameter_names
    posteriors = FIND_ITEM_POSTERIORS.format(state=", ".join(f"state[{k}]" for k, _ in enumerate(names, start=1)))
    kinds = {"number": "i4", **dict.fromkeys((*names, "score", "variance"), "f8"), "judgments": "i4", "settled": "i4"}

    async def read() -> tuple[str, dict[str, NumberColumn]] | None:
        start = next(starts)
        arguments = (campaign.id, start, start + EXPORT_ROWS_PER_BATCH - 1)
        if texts := await driver.fetchval(FIND_ITEM_TEXTS, *arguments):
            return texts, await fetch_arrays_on_driver(
                driver, posteriors, (*arguments, criterion_number(campaign)), **kinds
            )
        return None

    async def made() -> list[RowCells] | None:
        block = await anext(blocks, None)
        return await asyncio.to_thread(lambda: format_rows(parse_item_block(*block))) if block else None

    async with aclosing(prefetch(read)) as blocks, aclosing(prefetch(made)) as tables:
        async for rows in tables:
            yield rows


def parse_item_block(texts: str, numbers: dict[str, NumberColumn]) -> ItemBlock:
    ids, shown, uploaded = zip(*json.loads(texts), strict=True)
    return ItemBlock(ids, shown, uploaded, numbers)


async def stream_one_text(text_: str) -> AsyncGenerator[str, None]:
    yield text_


def format_settings_json(campaign: Row[Any], changes: Sequence[Row[Any]]) -> str:
    """All settings by name, and what became of the campaign, with what was changed since its launch after how many
    HITs, but not by whom; `settings` can be given to a new one.
    """
    facts = {name: getattr(campaign, name) for name in ("slug", "status", "created_at", "launched_at", "finished_at")}
    fields = {**AlertSettings.model_fields, **VisitSettings.model_fields}
    left_out = {*COLUMNS_WITHOUT_SETTING, *(name for name, field in fields.items() if is_private_field(field))}
    settings = {c.name: getattr(campaign, c.name) for c in campaigns.columns if c.name not in left_out}
    change_fields = ("noted_at", "answers", "action", "before", "after")
    facts |= {
        "settings": settings,
        "changes": [{name: getattr(line, name) for name in change_fields} for line in changes],
    }
    return json.dumps(facts, ensure_ascii=False, indent=2, default=format_utc_time) + "\n"


TableOpener = Callable[[AsyncConnection, Any], Awaitable[TableStream]]
TABLE_EXPORTS: dict[str, TableOpener] = {
    "items": export_items,
    "responses": export_responses,
    "segments": export_segments,
    "unanswered": export_unanswered_hits,
    "assignments": export_assignments,
    "visits": export_visits,
    "remarks": export_remarks,
    "easl": export_easl_file,
}
EXPORTS_ABOUT_ANNOTATORS = ("responses", "unanswered", "assignments", "visits", "remarks")


def export_names() -> tuple[str, ...]:
    """What can be exported."""
    return (*TABLE_EXPORTS, *fitted_export_openers(), "settings")


# Numbers run from 0 without gaps, so a block is a range of both primary keys; each item of a launched campaign has a
# posterior. All texts of a block come as one, and its numbers as arrays: to make a value of each cell, row by row,
# takes longer than all else.
FIND_ITEM_TEXTS = """
    SELECT json_agg(json_build_array(external_id, shown, fields) ORDER BY number)::text FROM items
    WHERE campaign_id = $1 AND number BETWEEN $2 AND $3
"""
FIND_ITEM_POSTERIORS = """
    SELECT number, {state}, score, variance, judgments, CAST(settled AS int) FROM current_posteriors
    WHERE campaign_id = $1 AND number BETWEEN $2 AND $3 AND criterion = $4 ORDER BY number
"""

FIND_UPLOADED_COLUMNS = text("""
    SELECT uploaded.name FROM items, json_object_keys(fields) WITH ORDINALITY AS uploaded (name, place)
    WHERE campaign_id = :campaign GROUP BY uploaded.name ORDER BY min(number), min(place)
""")
