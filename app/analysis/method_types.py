"""What a method of analysis says of itself: its words, what it reads, how it is shown and drawn, what it exports.

Pages, command, API and exports know methods by these alone; no other place knows one by its name.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.analysis.result_types import Answers, Cell, Options, ResultTable, Scores
from app.analysis.scatter import Scatter
from app.chart_axes import Axis
from app.inference.observations.judgment_kinds import JudgmentKind

OptionName = Literal["classes", "baseline"]


@dataclass(frozen=True)
class ScoreMethod:
    """title: for people. assumes: what it takes for granted, one sentence. unit: of its scores, in words.

    fit: raises `Inestimable` if there is no score at all. usual: shown where nobody has chosen another; of two such,
    the later one stands beside the campaign's own. reads: the kind of answers it takes; it is offered where those of a
    design can be read so. cuts: whether scores may be cut into the classes that it reads, if it reads classes.
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
    """A part of the analysis page that is made of tables: of all whose entries name it, in their order.

    asks: the options that people choose here, for all parts that read them.
    """

    name: str
    title: str
    options: tuple[OptionName, ...] = ()


@dataclass(frozen=True)
class ExpectedRows:
    """How many rows a page will show of items and of annotators, and into how many classes scores are cut."""

    items: int
    annotators: int
    classes: int


@dataclass(frozen=True)
class DotPlotColumn:
    """The column of a table whose figures are drawn as dots on a line.

    axis: of the line; None for one that holds all figures. measures: of a table in which each row is a quantity of its
    own, those on another axis; None for one that is not drawn.
    """

    column: str
    axis: Axis | None = None
    axes_by_measure: Mapping[str, Axis | None] = field(default_factory=dict)


@dataclass(frozen=True)
class LazyTable:
    """A table whose rows are made as they are needed. rows: those from a place to before another; there are `count`."""

    columns: Sequence[str]
    row_count: int
    make_rows: Callable[[int, int], Sequence[tuple[Cell, ...]]]


@dataclass(frozen=True)
class MethodExport:
    """A download. title, contents: for people, the second in a sentence. fit: its rows; None for those of the table.
    cuts: whether it is of labels, into which scores are cut where annotators choose none.
    """

    name: str
    title: str
    contents: str
    fit: Callable[[Answers, Options], LazyTable] | None = None
    can_cut_scores: bool = False


def estimate_no_rows(_expected: ExpectedRows) -> int:
    return 0


@dataclass(frozen=True)
class TableMethod:
    """section: what it belongs to on a page. explanation: what it shows and what it cannot, in sentences.

    fit: raises `Inestimable` if nothing of it can be estimated. reads: the kinds of answers that it takes, of which one
    is enough; what it makes of another kind, it says. options: those that change it. per_item: whether it has a row per
    item, so that it may be long. of_systems: whether it is only for campaigns whose items are systems. of_criteria:
    whether only for those with several criteria. of_groups: whether only for those that ask annotators something once
    that has choices. needs: uploaded columns without which there is nothing to estimate, where no item is in every HIT.
    of_people: whether it tells of single annotators, or sorts them by what they said of themselves, so that not all may
    see it. of_pairs: whether it reads only answers to two items at a time, any two of which may be compared.
    drawn: the column that is drawn, if one is; picture: a drawing of all rows, None where there is nothing to draw.
    room: about how many rows there will be, for which a page keeps room. exports: files that need the same fit.
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
    needs_groups: bool = False
    shows_annotators: bool = False
    required_columns: tuple[str, ...] = ()
    needs_free_pairs: bool = False
    dot_plot: DotPlotColumn | None = None
    draw_picture: Callable[[ResultTable], Scatter | None] | None = None
    estimated_rows: Callable[[ExpectedRows], int] = estimate_no_rows
    exports: tuple[MethodExport, ...] = ()

    def relevant_options(self, options: Options) -> Options:
        """The options that change this table; the others as if nobody had chosen."""
        return Options(**{name: getattr(options, name) for name in self.options})
