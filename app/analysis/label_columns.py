"""Columns with a figure for each label: pages fold them into one cell where a design has many labels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.analysis.result_types import Cell, Column, ResultTable
from app.analysis.view import column_values, decimals_for_values, finite_number_or_none, format_table_cell
from app.errors import pluralize

MAX_COLUMNS_OF_LABELS = 5  # more do not fit on a screen
LABELS_IN_SUMMARY = 3
MIN_SHARE_IN_SUMMARY = 0.005  # smaller ones read 0.00


@dataclass(frozen=True)
class LabelColumnGroup:
    """Columns of a table with the same figure for each label.

    Attributes:
        name_prefix: Beginning of their names, before the number of the label.
        title_prefix: Beginning of their titles, before the label.
        title: Title of the figure without a label.

    """

    name_prefix: str
    title_prefix: str
    title: str

    def select_columns(self, table: ResultTable) -> list[Column]:
        return [column for column in table.columns if column.name.startswith(self.name_prefix)]


@dataclass(frozen=True)
class FoldedColumns:
    """All columns of labels of a table, which pages show as one.

    Attributes:
        column: The one column.
        groups: The columns that it replaces.
        shows_largest: Whether its cells name the labels with the largest figures; otherwise they say how many there
            are.

    """

    column: Column
    groups: tuple[LabelColumnGroup, ...]
    shows_largest: bool = False

    def replaced_names(self, table: ResultTable) -> set[str]:
        """Return the names of the columns that the page folds; none if there are few labels."""
        if len(self.groups[0].select_columns(table)) <= MAX_COLUMNS_OF_LABELS:
            return set()
        return {column.name for group in self.groups for column in group.select_columns(table)}


@dataclass(frozen=True)
class LabelFigures:
    """Figures of a label, as text."""

    label: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class LabelFigureFormatter:
    """Formats the figures of labels of a table's rows, each group with the same decimals in all rows."""

    folded: FoldedColumns
    columns: Sequence[Sequence[Column]]
    decimals: Sequence[int]

    @classmethod
    def of_table(cls, folded: FoldedColumns, table: ResultTable) -> "LabelFigureFormatter":
        columns = [group.select_columns(table) for group in folded.groups]
        values = [[cell for column in group for cell in column_values(table, column.name)] for group in columns]
        return cls(folded, columns, [decimals_for_values(group) for group in values])

    def figures_of_row(self, cells: Mapping[str, Cell]) -> tuple[LabelFigures, ...]:
        """Return the figures of all labels, in the order of the labels."""
        words_by_group = [
            [format_table_cell(column, cells[column.name], decimals) for column in group]
            for group, decimals in zip(self.columns, self.decimals, strict=True)
        ]
        prefix = self.folded.groups[0].title_prefix
        labels = [column.title.removeprefix(prefix) for column in self.columns[0]]
        return tuple(
            LabelFigures(label, words) for label, words in zip(labels, zip(*words_by_group, strict=True), strict=True)
        )

    def summary_of_row(self, cells: Mapping[str, Cell]) -> str:
        """Return the labels with the largest figures, such as "sport 0.71, news 0.12", or the number of labels."""
        if not self.folded.shows_largest:
            return pluralize(len(self.columns[0]), "label")
        shares = [finite_number_or_none(cells[column.name]) or 0.0 for column in self.columns[0]]
        first, *others = sorted(range(len(shares)), key=lambda place: -shares[place])[:LABELS_IN_SUMMARY]
        figures = self.figures_of_row(cells)
        named = [first, *(place for place in others if shares[place] >= MIN_SHARE_IN_SUMMARY)]
        return ", ".join(f"{figures[place].label} {shares[place]:.2f}" for place in named)
