"""The export of items: one row per item with its posterior, and the EASL program's own file."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis import calibrated_intervals
from app.analysis.result_types import to_cell_columns
from app.database.bulk import NumberColumn, fetch_array_by_column_on_driver, iterate_prefetching_next
from app.database.session import driver_of
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.exports.adjudicated_labels import ADJUDICATED_COLUMN, LABEL_SOURCE_COLUMN, label_source_or_none
from app.exports.goal_columns import GoalColumns, load_goal_columns
from app.exports.responses import CRITERION_COLUMN, LABEL_COLUMN
from app.exports.unjudged import UNJUDGED_EXPORT_COLUMNS, load_unjudged_cell_formatter_or_none
from app.goals.settings import RELEASE_ITEMS
from app.inference.ground.arrays import Array, distinct_row_positions_with_codes
from app.inference.online.law import PosteriorFamily
from app.inference.ratings.moderated_means import ModeratedMeans
from app.inference.ratings.shrunken_means import ItemShrinkage
from app.quality.adjudications import load_adjudicated_label_by_item
from app.text.table_formats import EXPORT_ROWS_PER_BATCH, RowCells, TableStream

SETTLED_EXPORT_COLUMNS = ("settled",)
DEVIATION_EXPORT_COLUMNS = ("standard_deviation",)  # of a posterior
EASL_COLUMNS = ("alpha", "beta", "mode", "var")
EASL_COLUMN_ALIASES = ("mu", "sigma")  # what its documentation calls mode and var

UnjudgedCells = Callable[[Sequence[int]], Sequence[Sequence[Any]]]


@dataclass(frozen=True)
class ItemBlock:
    """Some items, column by column: ids, shown texts, uploaded rows, and `numbers` by the columns of the posteriors."""

    ids: Sequence[str]
    shown: Sequence[str]
    uploaded_rows: Sequence[dict[str, Any]]
    numbers: dict[str, NumberColumn]

    def uploaded_columns(self, columns: Sequence[str]) -> list[list[Any]]:
        """Return uploaded values, column by column; None where an item has no such value."""
        return [[row.get(name) for row in self.uploaded_rows] for name in columns]


def has_alpha_beta_posterior(criterion: Criterion[Campaign]) -> bool:
    """Return whether the released EASL program could read the campaign's posteriors."""
    return criterion.law.family.parameter_names == EASL_COLUMNS[:2]


async def open_items_export_table(connection: AsyncConnection, campaign: Campaign) -> TableStream:
    """Export one row per item: id, shown, the uploaded columns, the posterior, the mean and the goal.

    The posterior has its parameters, score, standard deviation and interval; without judgments only its parameters,
    those of the prior. The mean of the given values has its standard error and calibrated interval; the shrunken score
    and its interval are right for items chosen by their scores, too. All are in points, or in the other unit that pages
    show. If the posterior counts classes, the final label and its share are added: the one
    that a researcher chose, else the likeliest; if values have no order, there
    is no mean. If annotators may mark an item as impossible to judge, the row says how many did and why. With several
    criteria, there is a row per item by the first, then by the next.
    """
    unjudged = await load_unjudged_cell_formatter_or_none(connection, campaign)
    uploaded = [name for name in await load_uploaded_column_names(connection, campaign.id) if name != "id"]
    parts = [
        await load_item_row_formatter(connection, criterion, unjudged, uploaded) for criterion in campaign.criteria
    ]
    own_columns = ("id", "shown", *parts[0].columns)
    renamed = [
        free_name_for_uploaded_column(name, {*own_columns, *uploaded}) if name in own_columns else name
        for name in uploaded
    ]

    async def chunks() -> AsyncIterator[list[RowCells]]:
        for part in parts:
            async with aclosing(iterate_item_row_blocks(connection, part.criterion, part.format_rows)) as blocks:
                async for rows in blocks:
                    yield rows

    return TableStream((*own_columns[:2], *renamed, *own_columns[2:]), chunks())


@dataclass(frozen=True)
class ItemRowFormatter:
    """Rows of the export of items by one criterion.

    Attributes:
        intervals: Calibrated intervals of all items.
        shrinkage: Shrunken means of all items.
        unjudged_cells: Function from `load_unjudged_cell_formatter_or_none`, or None.
        uploaded_columns: Names of the uploaded columns.
        goal_columns: Columns that a goal adds.
        adjudicated_label_by_item: Labels that researchers chose, by the item's number.

    """

    criterion: Criterion[Campaign]
    intervals: ModeratedMeans
    shrinkage: ItemShrinkage
    unjudged_cells: UnjudgedCells | None
    uploaded_columns: Sequence[str]
    goal_columns: GoalColumns
    adjudicated_label_by_item: Mapping[int, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns after the uploaded ones."""
        law, design = self.criterion.law, self.criterion.design
        family = law.family
        criterion = (CRITERION_COLUMN,) if self.criterion.name else ()
        label = self.label_column_names
        unit = design.score_unit(law)
        deviation = DEVIATION_EXPORT_COLUMNS if unit.can_express_standard_errors else ()
        score = unit.score_column or family.score_name
        posterior = (*family.parameter_names, *label, score, *deviation, "low_95", "high_95", "judgments")
        means = tuple(self.mean_columns_by_name_or_empty_without_order([]))
        unjudged = UNJUDGED_EXPORT_COLUMNS if self.unjudged_cells else ()
        return (
            *criterion,
            *posterior,
            *means,
            *unjudged,
            *(SETTLED_EXPORT_COLUMNS if self.releases_settled_items else ()),
            *self.goal_columns.names,
        )

    @property
    def label_column_names(self) -> tuple[str, ...]:
        """Columns of labels; the update laws of ordered labels have no likeliest label."""
        if self.criterion.law.family.counts_classes:
            return (LABEL_COLUMN, ADJUDICATED_COLUMN, LABEL_SOURCE_COLUMN)
        return (ADJUDICATED_COLUMN,) if self.criterion.campaign.has_item_labels else ()

    def label_columns(self, state: Array, numbers: Mapping[str, NumberColumn]) -> list[list[str | None]]:
        """Return the cells of `label_column_names`, column by column."""
        adjudicated = [self.adjudicated_label_by_item.get(number) for number in numbers["number"].tolist()]
        if not self.criterion.law.family.counts_classes:
            return [adjudicated] if self.label_column_names else []
        likeliest = likeliest_label_or_none_of_items(self.criterion, state, numbers["judgments"])
        final = [label if chosen is None else chosen for label, chosen in zip(likeliest, adjudicated, strict=True)]
        return [final, adjudicated, [*map(label_source_or_none, likeliest, adjudicated)]]

    @property
    def releases_settled_items(self) -> bool:
        """Whether the campaign releases settled items."""
        return bool(self.criterion.campaign.when_reached == RELEASE_ITEMS or self.criterion.campaign.releases)

    def mean_columns_by_name_or_empty_without_order(self, item_numbers: npt.ArrayLike) -> dict[str, Array]:
        """Return the plain and the shrunken means of some items by column, (n,) each; none for values without order."""
        unit = self.criterion.design.unit
        if not self.criterion.design.is_ordered:
            return {}
        intervals = self.intervals.select_items(item_numbers)
        shrunken_shares = calibrated_intervals.shrunken_scores_and_interval_ends(
            self.shrinkage.shrink_items(item_numbers)
        )
        shrunken = map(unit.shares_to_unit_values, shrunken_shares)
        return calibrated_intervals.calibrated_columns_by_name_in_unit(unit, intervals) | dict(
            zip(calibrated_intervals.SHRUNKEN_COLUMNS, shrunken, strict=True)
        )

    def format_rows(self, block: ItemBlock) -> list[RowCells]:
        """Return the rows of some items, with the cells that every item has."""
        criterion, numbers = self.criterion, block.numbers
        law, design = criterion.law, criterion.design
        family = law.family
        state = [numbers[name] for name in family.parameter_names]
        unit = design.score_unit(law)
        deviation = (np.sqrt(numbers["variance"]),) if unit.can_express_standard_errors else ()
        known = (numbers["score"], *deviation, *posterior_interval_ends(family, state))
        shown = (unit.shares_to_unit_values(np.where(numbers["judgments"] > 0, column, np.nan)) for column in known)
        names = [[criterion.name] * len(block.ids)] if criterion.name else []
        labels = self.label_columns(np.array(state), numbers)
        posterior = to_cell_columns(*shown, numbers["judgments"])
        mean_values = self.mean_columns_by_name_or_empty_without_order(numbers["number"]).values()
        unjudged = self.unjudged_cells(numbers["number"].tolist()) if self.unjudged_cells else []
        settled = [(numbers["settled"] > 0).tolist()] if self.releases_settled_items else []
        columns = (
            *names,
            *to_cell_columns(*state),
            *labels,
            *posterior,
            *to_cell_columns(*mean_values),
            *unjudged,
            *settled,
        )
        columns += (*self.goal_columns.cell_columns_of_items(numbers["number"]),)
        return list(zip(block.ids, block.shown, *block.uploaded_columns(self.uploaded_columns), *columns, strict=True))


async def load_item_row_formatter(
    connection: AsyncConnection,
    criterion: Criterion[Campaign],
    unjudged_cells: UnjudgedCells | None,
    uploaded_columns: Sequence[str],
) -> ItemRowFormatter:
    """Return the formatter from all judgments; it keeps only the numbers of each item that rows need."""
    evidence = await calibrated_intervals.load_calibrated_evidence_extending_previous(connection, criterion)
    goal_values = await load_goal_columns(connection, criterion, evidence)
    shrinkage = await evidence.fit_shrinkage_in_thread()
    adjudicated = await load_adjudicated_label_by_item(connection, criterion)
    return ItemRowFormatter(
        criterion, evidence.intervals, shrinkage, unjudged_cells, uploaded_columns, goal_values, adjudicated
    )


def likeliest_label_or_none_of_items(
    criterion: Criterion[Campaign], state: Array, judgments: NumberColumn
) -> list[str | None]:
    """Return the likeliest label of each item from `state`, (K, N); None without judgments, or where no label leads."""
    classes = criterion.design.classes
    class_numbers = criterion.law.family.most_counted_class_of_each_item(state)
    return [
        classes[number] if number >= 0 and count else None
        for number, count in zip(class_numbers.tolist(), judgments.tolist(), strict=True)
    ]


def free_name_for_uploaded_column(name: str, taken_names: set[str]) -> str:
    """Return another name for an uploaded column whose name the export uses itself."""
    while name in taken_names:
        name = f"uploaded_{name}"
    return name


async def open_easl_program_table(connection: AsyncConnection, criterion: Criterion[Campaign]) -> TableStream:
    """Export the file that the released EASL program continues from: the uploaded columns, then alpha, beta, mode and
    var.
    """
    columns = await load_uploaded_column_names(connection, criterion.campaign.id)
    replaced = {"id", *EASL_COLUMNS, *(EASL_COLUMN_ALIASES if set(EASL_COLUMNS[:2]) <= set(columns) else ())}
    kept_columns = [name for name in columns if name not in replaced]

    def cells(items: ItemBlock) -> list[RowCells]:
        posterior = to_cell_columns(*(items.numbers[name] for name in (*EASL_COLUMNS[:2], "score", "variance")))
        return list(zip(items.ids, *items.uploaded_columns(kept_columns), *posterior, strict=True))

    return TableStream(("id", *kept_columns, *EASL_COLUMNS), iterate_item_row_blocks(connection, criterion, cells))


def posterior_interval_ends(family: PosteriorFamily, state: Sequence[Array]) -> tuple[Array, Array]:
    """Return both ends for each posterior. Many are equal, and finding these takes less time than their intervals."""
    first, positions = distinct_row_positions_with_codes(state)
    low, high = family.interval(*(column[first] for column in state))
    return low[positions], high[positions]


async def load_uploaded_column_names(connection: AsyncConnection, campaign_id: int) -> list[str]:
    """Return all uploaded columns of items, in the order in which they first appeared."""
    return list(await connection.scalars(FIND_UPLOADED_COLUMNS, {"campaign": campaign_id}))


async def iterate_item_row_blocks(
    connection: AsyncConnection, criterion: Criterion[Campaign], format_rows: Callable[[ItemBlock], list[RowCells]]
) -> AsyncGenerator[list[RowCells]]:
    """Stream the rows of all items, block by block.

    While one block is written, the next is formatted in a thread, and the one after that is read.
    """
    driver = await driver_of(connection)
    starts = count(0, EXPORT_ROWS_PER_BATCH)
    names = criterion.law.family.parameter_names
    posteriors = FIND_ITEM_POSTERIORS.format(state=", ".join(f"state[{k}]" for k, _ in enumerate(names, start=1)))
    kinds = {"number": "i4", **dict.fromkeys((*names, "score", "variance"), "f8"), "judgments": "i4", "settled": "i4"}

    async def read() -> tuple[str, dict[str, NumberColumn]] | None:
        start = next(starts)
        arguments = (criterion.campaign.id, start, start + EXPORT_ROWS_PER_BATCH - 1)
        if texts := await driver.fetchval(FIND_ITEM_TEXTS, *arguments):
            return texts, await fetch_array_by_column_on_driver(
                driver, posteriors, (*arguments, criterion.number), **kinds
            )
        return None

    async def made() -> list[RowCells] | None:
        block = await anext(blocks, None)
        return await asyncio.to_thread(lambda: format_rows(parse_item_block(*block))) if block else None

    async with (
        aclosing(iterate_prefetching_next(read)) as blocks,
        aclosing(iterate_prefetching_next(made)) as tables,
    ):
        async for rows in tables:
            yield rows


def parse_item_block(texts: str, numbers: dict[str, NumberColumn]) -> ItemBlock:
    ids, shown, uploaded = zip(*json.loads(texts), strict=True)
    return ItemBlock(ids, shown, uploaded, numbers)


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
