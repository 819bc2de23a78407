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
from app.analysis import calibrated
from app.analysis.assignments_export import assignments_table
from app.analysis.findings import Options, columns_of
from app.analysis.fits import Fits
from app.analysis.fitted_exports import Fitting, fitted
from app.analysis.formats import (
    BYTE_ORDER_MARK,
    ROWS_AT_ONCE,
    Cells,
    TableFile,
    as_text,
    csv_lines,
    json_lines,
    spreadsheet_lines,
)
from app.analysis.goal_columns import GoalColumns, goal_columns
from app.analysis.remarks_export import remarks_table
from app.analysis.responses_export import CRITERION, LABEL, responses_table
from app.analysis.segments_export import segments_table
from app.analysis.unanswered_export import unanswered_table
from app.analysis.unjudged_export import UNJUDGED_COLUMNS, unjudged_cells
from app.analysis.visits_export import visits_table
from app.database.audit_log import note, since_launch
from app.database.bulk import Numbers, ahead, numbers_of, snapshot
from app.database.campaign import campaign_by_slug
from app.database.session import driver_of
from app.database.tables import campaigns
from app.designs.criteria import criteria_of, named, number_of
from app.designs.registry import design_of
from app.errors import Conflict, NotFound, shortened
from app.fields import is_private
from app.goals.settings import RELEASE
from app.inference.ground.arrays import Array, distinct
from app.inference.online.law import Family
from app.inference.ratings.moderated import Moderated
from app.record.law import law_of
from app.visit.settings import VisitSettings

MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "jsonl": "application/x-ndjson", "json": "application/json"}
NOT_SETTINGS = (
    *("id", "slug", "link_key", "status", "iteration"),  # the link key opens the task, so it is not handed around
    *("created_at", "launched_at", "finished_at", "archived_at", "revision", "decided", "fewest_items", "goal_reached"),
    *("always_shown", "tried_at", "rehearsal_of", "segment_count", "asked_criterion", "visit_version", "has_checks"),
    *("releases", "newest_plan"),
)
SETTLED = ("settled",)
DEVIATION = ("standard_deviation",)  # of a posterior
EASL_COLUMNS = ("alpha", "beta", "mode", "var")
EASL_OTHER_NAMES = ("mu", "sigma")  # what its documentation calls mode and var

Format = Literal["csv", "jsonl", "json"]
Unjudged = Callable[[Sequence[int]], Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class Items:
    """Some items, column by column: their ids, what was shown, the uploaded rows; `numbers` as `NUMBERS` has them."""

    ids: Sequence[str]
    shown: Sequence[str]
    uploaded: Sequence[dict[str, Any]]
    numbers: dict[str, Numbers]

    def values(self, columns: Sequence[str]) -> list[list[Any]]:
        """What was uploaded, column by column; None where an item has no such value."""
        return [[row.get(name) for row in self.uploaded] for name in columns]


@dataclass(frozen=True)
class Export:
    """A file to send, piece by piece. criterion: that which it is of, where it is of one."""

    slug: str
    kind: str
    ending: str
    chunks: AsyncGenerator[str, None]
    criterion: str = ""

    @property
    def media_type(self) -> str:
        return MEDIA_TYPES[self.ending]


async def export(
    engine: AsyncEngine,
    slug: str,
    what: str,
    format_: Format = "csv",
    *,
    spreadsheet: bool = False,
    fits: Fits | None = None,
    options: Options = Options(),
    criterion: str = "",
) -> Export:
    """An export of `names`; settings are JSON and the `easl` file is CSV, whatever the format.

    The audit log notes who downloaded an export about single annotators.

    fits: where those that are `fitted` come from. criterion: the name of that which they and the `easl` file are of,
    the first if it is empty; the others have all. Raises before the first piece: `NotFound` (`campaign_not_found`,
    `criterion_not_found`, `export_not_found`), `Conflict` (`not_launched`: no posteriors yet, `no_beta_posterior`: the
    law has none that the EASL program could read; `no_segments`: the items are no systems; with the code of an
    `Inestimable`: nothing can be fitted).
    """
    async with engine.connect() as connection:
        campaign = await campaign_by_slug(connection, slug)
        changed = await since_launch(connection, campaign.id) if what == "settings" else ()
    read_by = named(campaign, criterion)
    of = read_by.criterion_name if campaign.criteria else ""
    if what == "settings":
        return Export(slug, what, "json", one_piece(settings_json(campaign, changed)))
    if what not in names() or format_ not in ("csv", "jsonl"):
        raise NotFound(
            f"There is no export “{shortened(what)}” as {format_}.", code="export_not_found", exports=[*names()]
        )
    kind = f"{what}-excel" if spreadsheet and format_ == "csv" else what
    if made := fitted().get(what):
        table = await made(Fitting(fits or Fits(), engine, slug, options, criterion))
        pieces = written(table, format_, spreadsheet=spreadsheet)
        return Export(slug, kind, format_, pieces, of)
    if what in ("items", "easl") and campaign.status == "draft":
        raise Conflict(f"“{campaign.name}” is a draft: it has no posteriors yet.", code="not_launched")
    if what == "segments" and not campaign.segment_count:
        raise Conflict(f"The items of “{campaign.name}” are no systems, so there are no segments.", code="no_segments")
    if what == "easl":
        if not has_beta(campaign):
            raise Conflict(
                f"The update law {campaign.update_law} has no alpha and beta that the EASL program could read.",
                code="no_beta_posterior",
            )
        pieces = streamed(engine, read_by, easl_table, "csv", spreadsheet=spreadsheet)
        return Export(slug, kind, "csv", pieces, of)
    if what in ABOUT_PEOPLE:
        async with engine.begin() as connection:
            await note(connection, "people.downloaded", campaign, about=f"{what}.{format_}")
    chunks = streamed(engine, campaign, EXPORTS[what], format_, spreadsheet=spreadsheet)
    return Export(slug, kind, format_, chunks)


def has_beta(campaign: Any) -> bool:
    """Whether the posteriors are such as the released EASL program could read."""
    return law_of(campaign).family.parameter_names == EASL_COLUMNS[:2]


async def streamed(
    engine: AsyncEngine, campaign: Any, table_of: "TableOf", format_: Format, *, spreadsheet: bool
) -> AsyncGenerator[str, None]:
    """A table as text. It has a snapshot of its own, since a request's transaction ends before its reply is sent."""
    async with snapshot(engine) as connection:
        async for piece in written(await table_of(connection, campaign), format_, spreadsheet=spreadsheet):
            yield piece


async def written(table: TableFile, format_: Format, *, spreadsheet: bool) -> AsyncGenerator[str, None]:
    """A table as text."""
    write = json_lines if format_ == "jsonl" else spreadsheet_lines if spreadsheet else csv_lines
    if format_ == "csv":
        yield BYTE_ORDER_MARK * spreadsheet + write(table.columns, [table.columns])
    async for rows in table.chunks:
        yield await asyncio.to_thread(write, table.columns, rows)


async def items_table(connection: AsyncConnection, campaign: Row[Any]) -> TableFile:
    """One row per item: id, shown, the uploaded columns, then the posterior's parameters, its score, standard deviation
    and interval, and the mean of what was given with its standard error and calibrated interval: all in points, or in
    the other unit that pages show. Where the posterior counts classes, the likeliest label and its share; where values
    have no order, no mean. Where annotators may say that an item cannot be judged, how many did and why; what a goal
    says of it. Of several criteria, a row per item by the first, then by the next.
    """
    told_of_unjudged = await unjudged_cells(connection, campaign)
    uploaded = [name for name in await uploaded_columns(connection, campaign.id) if name != "id"]
    parts = [await item_cells(connection, one, told_of_unjudged, uploaded) for one in criteria_of(campaign)]
    own = ("id", "shown", *parts[0].columns)
    renamed = [apart(name, {*own, *uploaded}) if name in own else name for name in uploaded]

    async def chunks() -> AsyncIterator[list[Cells]]:
        for part in parts:
            async with aclosing(in_blocks(connection, part.campaign, part.rows)) as blocks:
                async for rows in blocks:
                    yield rows

    return TableFile((*own[:2], *renamed, *own[2:]), chunks())


@dataclass(frozen=True)
class ItemCells:
    """What the export of items says by one criterion. known: calibrated intervals. unjudged: see `unjudged_cells`."""

    campaign: Any
    known: Moderated
    unjudged: Unjudged | None
    uploaded: Sequence[str]
    of_goal: GoalColumns

    @property
    def columns(self) -> tuple[str, ...]:
        """After the uploaded ones."""
        law, design = law_of(self.campaign), design_of(self.campaign)
        family = law.family
        criterion = (CRITERION,) if self.campaign.criteria else ()
        label = (LABEL,) if family.counts_classes else ()
        unit = design.unit_of(law)
        deviation = DEVIATION if unit.standard_errors else ()
        score = unit.score_column or family.score_name
        posterior = (*family.parameter_names, *label, score, *deviation, "low_95", "high_95", "judgments")
        means = tuple(calibrated.columns_in(design.unit, self.known.of([]))) if design.ordered else ()
        unjudged = UNJUDGED_COLUMNS if self.unjudged else ()
        return (*criterion, *posterior, *means, *unjudged, *(SETTLED if self.releases else ()), *self.of_goal.names)

    @property
    def releases(self) -> bool:
        """Whether it matters which items are settled."""
        return bool(self.campaign.when_reached == RELEASE or self.campaign.releases)

    def rows(self, items: Items) -> list[Cells]:
        """Of some items, with the cells that every item has."""
        campaign, n = self.campaign, items.numbers
        law, design = law_of(campaign), design_of(campaign)
        family = law.family
        state = [n[name] for name in family.parameter_names]
        unit = design.unit_of(law)
        deviation = (np.sqrt(n["variance"]),) if unit.standard_errors else ()
        shown = map(unit.in_files, (n["score"], *deviation, *interval(family, state)))
        criterion = [[campaign.criterion_name] * len(items.ids)] if campaign.criteria else []
        labels = [likeliest_labels(campaign, np.array(state), n["judgments"])] if family.counts_classes else []
        posterior = columns_of(*shown, n["judgments"])
        known = calibrated.columns_in(design.unit, self.known.of(n["number"])).values() if design.ordered else ()
        unable = self.unjudged(n["number"].tolist()) if self.unjudged else []
        settled = [(n["settled"] > 0).tolist()] if self.releases else []
        told = (*criterion, *columns_of(*state), *labels, *posterior, *columns_of(*known), *unable, *settled)
        told += (*self.of_goal.cells(n["number"]),)
        return list(zip(items.ids, items.shown, *items.values(self.uploaded), *told, strict=True))


async def item_cells(
    connection: AsyncConnection, campaign: Any, unjudged: Unjudged | None, uploaded: Sequence[str]
) -> ItemCells:
    """Of what all judgments say; what is needed of each item is kept, and no more."""
    counted = await calibrated.newest(connection, campaign)
    of_goal = await goal_columns(connection, campaign, counted)
    return ItemCells(campaign, counted.intervals, unjudged, uploaded, of_goal)


def likeliest_labels(campaign: Any, state: Array, judgments: Numbers) -> list[str | None]:
    """The likeliest label of each item, (K, N); None where nobody has judged, or no label leads."""
    classes = design_of(campaign).classes
    which = law_of(campaign).family.likeliest(state)
    return [
        classes[one] if one >= 0 and count else None
        for one, count in zip(which.tolist(), judgments.tolist(), strict=True)
    ]


def apart(name: str, taken: set[str]) -> str:
    """Another name for an uploaded column that is called like one of ours."""
    while name in taken:
        name = f"uploaded_{name}"
    return name


async def easl_table(connection: AsyncConnection, campaign: Any) -> TableFile:
    """The file that the released EASL program continues from: the uploaded columns, then alpha, beta, mode and var."""
    columns = await uploaded_columns(connection, campaign.id)
    replaced = {"id", *EASL_COLUMNS, *(EASL_OTHER_NAMES if set(EASL_COLUMNS[:2]) <= set(columns) else ())}
    kept = [name for name in columns if name not in replaced]

    def cells(items: Items) -> list[Cells]:
        posterior = columns_of(*(items.numbers[name] for name in (*EASL_COLUMNS[:2], "score", "variance")))
        return list(zip(items.ids, *items.values(kept), *posterior, strict=True))

    return TableFile(("id", *kept, *EASL_COLUMNS), in_blocks(connection, campaign, cells))


def interval(family: Family, state: Sequence[Array]) -> tuple[Array, Array]:
    """Both ends for each posterior; many are alike, and an interval takes longer than to find that out."""
    first, which = distinct(state)
    low, high = family.interval(*(column[first] for column in state))
    return low[which], high[which]


async def uploaded_columns(connection: AsyncConnection, campaign_id: int) -> list[str]:
    """All columns that items came with, in the order in which they first appeared."""
    return list(await connection.scalars(UPLOADED_COLUMNS, {"campaign": campaign_id}))


async def in_blocks(
    connection: AsyncConnection, campaign: Any, cells: Callable[[Items], list[Cells]]
) -> AsyncGenerator[list[Cells]]:
    """What `cells` makes of so many items at a time: while one block is written, the next is made, in a thread, and the
    one after that is read.
    """
    driver = await driver_of(connection)
    starts = count(0, ROWS_AT_ONCE)
    names = law_of(campaign).family.parameter_names
    posteriors = POSTERIORS.format(state=", ".join(f"state[{k}]" for k, _ in enumerate(names, start=1)))
    kinds = {"number": "i4", **dict.fromkeys((*names, "score", "variance"), "f8"), "judgments": "i4", "settled": "i4"}

    async def read() -> tuple[str, dict[str, Numbers]] | None:
        start = next(starts)
        arguments = (campaign.id, start, start + ROWS_AT_ONCE - 1)
        if texts := await driver.fetchval(TEXTS, *arguments):
            return texts, await numbers_of(driver, posteriors, (*arguments, number_of(campaign)), **kinds)
        return None

    async def made() -> list[Cells] | None:
        block = await anext(blocks, None)
        return await asyncio.to_thread(lambda: cells(in_columns(*block))) if block else None

    async with aclosing(ahead(read)) as blocks, aclosing(ahead(made)) as tables:
        async for rows in tables:
            yield rows


def in_columns(texts: str, numbers: dict[str, Numbers]) -> Items:
    ids, shown, uploaded = zip(*json.loads(texts), strict=True)
    return Items(ids, shown, uploaded, numbers)


async def one_piece(text_: str) -> AsyncGenerator[str, None]:
    yield text_


def settings_json(campaign: Row[Any], changed: Sequence[Row[Any]]) -> str:
    """All settings by name, and what became of the campaign, with what was changed since its launch after how many
    HITs, but not by whom; `settings` can be given to a new one.
    """
    facts = {name: getattr(campaign, name) for name in ("slug", "status", "created_at", "launched_at", "finished_at")}
    fields = {**AlertSettings.model_fields, **VisitSettings.model_fields}
    left_out = {*NOT_SETTINGS, *(name for name, field in fields.items() if is_private(field))}
    settings = {c.name: getattr(campaign, c.name) for c in campaigns.columns if c.name not in left_out}
    told = ("noted_at", "answers", "action", "before", "after")
    facts |= {"settings": settings, "changes": [{name: getattr(line, name) for name in told} for line in changed]}
    return json.dumps(facts, ensure_ascii=False, indent=2, default=as_text) + "\n"


TableOf = Callable[[AsyncConnection, Any], Awaitable[TableFile]]
EXPORTS: dict[str, TableOf] = {
    "items": items_table,
    "responses": responses_table,
    "segments": segments_table,
    "unanswered": unanswered_table,
    "assignments": assignments_table,
    "visits": visits_table,
    "remarks": remarks_table,
    "easl": easl_table,
}
ABOUT_PEOPLE = ("responses", "unanswered", "assignments", "visits", "remarks")


def names() -> tuple[str, ...]:
    """What can be exported."""
    return (*EXPORTS, *fitted(), "settings")


# Numbers run from 0 without gaps, so a block is a range of both primary keys; each item of a launched campaign has a
# posterior. All texts of a block come as one, and its numbers as arrays: to make a value of each cell, row by row,
# takes longer than all else.
TEXTS = """
    SELECT json_agg(json_build_array(external_id, shown, fields) ORDER BY number)::text FROM items
    WHERE campaign_id = $1 AND number BETWEEN $2 AND $3
"""
POSTERIORS = """
    SELECT number, {state}, score, variance, judgments, CAST(settled AS int) FROM current_posteriors
    WHERE campaign_id = $1 AND number BETWEEN $2 AND $3 AND criterion = $4 ORDER BY number
"""

UPLOADED_COLUMNS = text("""
    SELECT uploaded.name FROM items, json_object_keys(fields) WITH ORDINALITY AS uploaded (name, place)
    WHERE campaign_id = :campaign GROUP BY uploaded.name ORDER BY min(number), min(place)
""")
