"""Types of analysis methods: their texts, the answers they read, how they are shown and drawn, and their exports.

Pages, command, API and exports know methods only by these types; no other code names a single method.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.analysis.chart_axes import Axis
from app.analysis.label_columns import FoldedColumns
from app.analysis.result_types import Answers, Cell, Options, ResultTable, Scores
from app.analysis.scatter import Scatter
from app.inference.observations.judgment_kinds import JudgmentKind

OptionName = Literal["classes", "baseline"]


@dataclass(frozen=True)
class ScoreMethod:
    """A method that scores items.

    Attributes:
        assumes: What the method takes for granted, in one sentence.
        unit: Unit of the scores, in words.
        fit: Returns the scores. Raises `Inestimable` if no item has a score.
        is_default: Shown by default; of two such methods, the later one is shown next to the campaign's own law.
        reads: Kind of answers that the method takes. It is offered if the design's answers can be read as this kind.
        can_cut_scores: Whether scores may be cut into classes for a method that reads classes.

    """

    title: str
    assumes: str
    unit: str
    fit: Callable[[Answers], Scores]
    is_default: bool = False
    reads: JudgmentKind = "points"
    can_cut_scores: bool = True


@dataclass(frozen=True)
class TableSection:
    """A part of the analysis page that consists of tables: all that name it, in their order.

    `options` lists the options to choose here, for all parts that read them.
    """

    name: str
    title: str
    options: tuple[OptionName, ...] = ()


@dataclass(frozen=True)
class DotPlotColumn:
    """The column of a table whose figures are drawn as dots on a line.

    Attributes:
        column: Name of the column.
        axis: Axis of the line; None for one that holds all figures.
        axes_by_measure: If each row is its own quantity, the rows with another axis; None for rows that are not drawn.

    """

    column: str
    axis: Axis | None = None
    axes_by_measure: Mapping[str, Axis | None] = field(default_factory=dict)


@dataclass(frozen=True)
class LazyTable:
    """A table whose `row_count` rows are made as needed; `make_rows` returns those from one place to before another."""

    columns: Sequence[str]
    row_count: int
    make_rows: Callable[[int, int], Sequence[tuple[Cell, ...]]]


@dataclass(frozen=True)
class MethodExport:
    """A download.

    Attributes:
        name: Name of the export.
        contents: Contents in a sentence.
        fit: Function that returns the rows; None for the rows of the table.
        can_cut_scores: Whether it contains labels into which scores are cut if annotators choose none.
        has_final_labels: Whether it has columns with the labels of items that researchers chose.

    """

    name: str
    title: str
    contents: str
    fit: Callable[[Answers, Options], LazyTable] | None = None
    can_cut_scores: bool = False
    has_final_labels: bool = False


@dataclass(frozen=True)
class TableMethod:
    """A table of the analysis.

    Attributes:
        section: Part of the page to which the table belongs.
        explanation: What the table shows and what it cannot show, in sentences.
        fit: Returns the table. Raises `Inestimable` if no row can be estimated.
        reads: Kinds of answers that the table takes; one is enough. Its notes say how it reads other kinds.
        options: Options that change the table.
        per_item: Whether there is a row per item, so that the table may be long.
        needs_systems: Only for campaigns whose items are outputs of systems.
        needs_criteria: Only for campaigns with several criteria, and made of all of them: the same for each.
        needs_yes_or_no: Only for questions with the answers no and yes, such as labels that are ticked.
        needs_groups: Only for campaigns with a profile question that has choices.
        shows_annotators: Shows single annotators, or sorts them by their profile, so that not all roles may see it.
        required_columns: Uploaded columns that the estimate needs, unless an item is in every HIT.
        needs_order: Only for designs whose answers are orders and nothing else.
        needs_free_pairs: Reads only answers to two items at a time, where any two items may be compared.
        compares_systems_or_pairs: Only for campaigns of systems, and for designs that compare free pairs.
        shade_of_cell: Returns the shade of a cell, 0 to 10, None for none; for tables that are a matrix.
        dot_plot: The column that is drawn, if any.
        folded_columns: Columns of labels that pages show as one where there are many labels.
        draw_picture: Draws all rows; returns None if there is nothing to draw.
        exports: Files that need the same fit.

    """

    section: TableSection
    title: str
    explanation: str
    fit: Callable[[Answers, Options], ResultTable]
    reads: tuple[JudgmentKind, ...] = ("points",)
    options: tuple[OptionName, ...] = ()
    per_item: bool = False
    needs_systems: bool = False
    needs_criteria: bool = False
    needs_yes_or_no: bool = False
    needs_groups: bool = False
    shows_annotators: bool = False
    required_columns: tuple[str, ...] = ()
    needs_order: bool = False
    needs_free_pairs: bool = False
    compares_systems_or_pairs: bool = False
    shade_of_cell: Callable[[Cell], int | None] | None = None
    dot_plot: DotPlotColumn | None = None
    folded_columns: FoldedColumns | None = None
    draw_picture: Callable[[ResultTable], Scatter | None] | None = None
    exports: tuple[MethodExport, ...] = ()

    def relevant_options(self, options: Options) -> Options:
        """Return the options that change this table; the others keep their defaults."""
        return Options(**{name: getattr(options, name) for name in self.options})
