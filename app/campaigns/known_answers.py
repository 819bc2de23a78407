"""Known answers of items: a column of the uploaded table whose values can be the expected answers of gold items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from pydantic import ConfigDict, Field, StringConstraints
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.campaigns.known_answer_limits import DEFAULT_KNOWN_ANSWER_COLUMN, MAX_GOLD_ITEMS_AT_ONCE, MIN_GOLD_ITEMS
from app.designs.campaign import Campaign
from app.designs.design import Design
from app.designs.field_flags import InputModel
from app.errors import Conflict, Invalid, pluralize, shorten_echo
from app.quality.checks import reason_hits_cannot_show_checks_or_empty
from app.quality.expected_answers import (
    ExpectedAnswer,
    expected_answer_of_cells_or_none,
    format_number_without_rounding,
)
from app.uploads import parse_finite_number_or_none

COMMON_TRUE_VALUE_COLUMNS = ("oracle", "truth", "gold", "adjudicated")
ITEMS_READ_FOR_KNOWN_ANSWERS = 10_000
TOP_AND_BOTTOM_PLACES = (1, 2)  # expected of the items with the highest and with the lowest known values

# Items that already have a copy among the gold items are left out.
LIST_KNOWN_VALUES = text("""
    SELECT i.external_id, i.fields ->> CAST(:column AS text) AS cell FROM items i
    WHERE i.campaign_id = :campaign AND i.number < :read AND trim(i.fields ->> CAST(:column AS text)) <> ''
        AND NOT EXISTS (SELECT FROM check_items c
            WHERE c.campaign_id = :campaign AND c.external_id = i.external_id || ' (gold)')
    ORDER BY i.number
""")


class KnownAnswersChoice(InputModel):
    """Which items become gold items by the answers that a column of their table holds."""

    model_config = ConfigDict(extra="forbid")

    column: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200)] = Field(
        default=DEFAULT_KNOWN_ANSWER_COLUMN, description="Column with the known answer of each item."
    )
    count: int = Field(
        default=MIN_GOLD_ITEMS,
        ge=1,
        le=MAX_GOLD_ITEMS_AT_ONCE,
        description="Number of gold items. They are spread evenly over the known answers.",
    )
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = Field(
        default=None, description="As in the column `tolerance` of a table of items. Default: that of the design."
    )
    keep: bool = Field(
        default=False,
        description="Keep the items in the study, too. The gold items are then copies with ids of their own.",
    )

    @property
    def tolerance_cell(self) -> str:
        return "" if self.tolerance is None else format_number_without_rounding(self.tolerance)


@dataclass(frozen=True)
class KnownAnswer:
    """The known answer of an item: as it is in the table, and as a number by which answers are sorted."""

    item_id: str
    cell: str
    rank: float


@dataclass(frozen=True)
class KnownAnswers:
    """Known answers of a column, the lowest first.

    Attributes:
        column: Name of the column.
        answers: Those that the design can be given.
        impossible: The first value that is no possible answer; empty if all are possible.
        impossible_count: Number of such values.
        suspicion: Why the values seem to be on another scale, as a sentence; empty if they do not.

    """

    column: str
    answers: Sequence[KnownAnswer]
    impossible: str = ""
    impossible_count: int = 0
    suspicion: str = ""

    @property
    def default_gold_item_count(self) -> int:
        return min(MIN_GOLD_ITEMS, len(self.answers))

    def summary(self) -> str:
        """Return a sentence on how many answers are known, and which."""
        first, last = self.answers[0].cell, self.answers[-1].cell
        verb = "has" if len(self.answers) == 1 else "have"
        span = f", from {shorten_echo(first)} to {shorten_echo(last)}" if first != last else ""
        left_out = (
            f" {pluralize(self.impossible_count, 'other value')}, such as “{shorten_echo(self.impossible)}”, "
            f"{'is' if self.impossible_count == 1 else 'are'} not possible here."
            if self.impossible_count
            else ""
        )
        return (
            f"{pluralize(len(self.answers), 'item')} {verb} a known answer in the column "
            f"“{shorten_echo(self.column)}”{span}.{left_out}"
        )


async def load_known_answers_of_usual_columns(connection: AsyncConnection, campaign: Campaign) -> list[KnownAnswers]:
    """Return the known answers in each column with one of the usual names; none if the campaign cannot have checks, or
    asks about several criteria.
    """
    takes_items = not (campaign.segment_count or reason_hits_cannot_show_checks_or_empty(campaign))
    if campaign.status != "draft" or campaign.has_criteria or not takes_items:
        return []
    columns = dict.fromkeys((DEFAULT_KNOWN_ANSWER_COLUMN, *COMMON_TRUE_VALUE_COLUMNS))
    offers = [await load_known_answers(connection, campaign, column) for column in columns]
    return [offer for offer in offers if offer.answers and not offer.suspicion]


def refuse_known_answer_column_if_several_criteria(campaign: Campaign) -> None:
    """Raise `Conflict` (`known_answers_by_criteria`) if a known answer would have to name a criterion."""
    if campaign.has_criteria:
        raise Conflict(
            f"“{campaign.name}” asks about several criteria, and a column with known answers is about one question. "
            "Import gold items with an expected answer for each criterion instead. Nothing was changed.",
            code="known_answers_by_criteria",
        )


async def load_known_answers(connection: AsyncConnection, campaign: Campaign, column: str) -> KnownAnswers:
    """Return the known answers that a column holds for a draft's first items."""
    parameters = {"campaign": campaign.id, "column": column, "read": ITEMS_READ_FOR_KNOWN_ANSWERS}
    rows = (await connection.execute(LIST_KNOWN_VALUES, parameters)).all()
    design = campaign.design
    ranks = [known_answer_sort_key_or_none(design, row.cell) for row in rows]
    impossible = [row.cell for row, rank in zip(rows, ranks, strict=True) if rank is None]
    answers = [
        KnownAnswer(row.external_id, row.cell.strip(), rank)
        for row, rank in zip(rows, ranks, strict=True)
        if rank is not None
    ]
    answers.sort(key=lambda answer: answer.rank)
    suspicion = shares_instead_of_points_warning_or_empty(design, column, answers)
    return KnownAnswers(column, answers, impossible[0] if impossible else "", len(impossible), suspicion)


def known_answer_sort_key_or_none(design: Design, cell: str) -> float | None:
    """Return a number that sorts a known answer among the others; None if the design does not have this answer."""
    if design.value_kind == "order":
        return parse_finite_number_or_none(cell)
    try:
        expected = expected_answer_of_cells_or_none(design, cell)
    except Invalid:
        return None
    if expected is None or expected.place is not None:
        return None
    return first_expected_class_number(design, expected) if expected.labels else expected.value


def first_expected_class_number(design: Design, expected: ExpectedAnswer) -> float:
    """Return the number of the first class that is expected."""
    return float(design.classes.index(expected.labels[0]))


def shares_instead_of_points_warning_or_empty(design: Design, column: str, answers: Sequence[KnownAnswer]) -> str:
    """Return why known scores seem to be shares from 0 to 1 instead of points, as a sentence; empty if they do not."""
    if design.value_kind != "points" or not answers or answers[-1].rank > 1 or answers[0].rank == answers[-1].rank:
        return ""
    return (
        f"The values in “{shorten_echo(column)}” run from {answers[0].cell} to {answers[-1].cell}, but scores from 0 "
        "to 100. Multiply them by 100 in the table, and import it again."
    )


def choose_gold_id_and_cell_pairs_or_refuse(
    known_answers: KnownAnswers, design: Design, count: int
) -> list[tuple[str, str]]:
    """Return the ids and expected cells of `count` items, spread evenly over the known answers.

    If the answer is an order, half of the items have the highest known values and are expected before the other half,
    which has the lowest.

    Raises:
        Invalid: `known_answers_missing`, `known_answers_too_few`, `known_answers_other_scale`.

    """
    answers, column = known_answers.answers, shorten_echo(known_answers.column)
    if not answers:
        example = f" Seen: “{shorten_echo(known_answers.impossible)}”." if known_answers.impossible else ""
        message = f"No item has a possible answer in the column “{column}”.{example} Nothing was changed."
        raise Invalid(message, code="known_answers_missing", column=column)
    if known_answers.suspicion:
        raise Invalid(
            f"{known_answers.suspicion} Nothing was changed.", code="known_answers_other_scale", column=column
        )
    if len(answers) < count:
        message = (
            f"You asked for {count:,} gold items, but only {pluralize(len(answers), 'item')} of this draft "
            f"{'has' if len(answers) == 1 else 'have'} a known answer in “{column}”. Nothing was changed."
        )
        raise Invalid(message, code="known_answers_too_few", column=column, known=len(answers))
    if design.value_kind != "order":
        positions = np.linspace(0, len(answers) - 1, count).round().astype(int).tolist()
        return [(answers[position].item_id, answers[position].cell) for position in positions]
    lowest, highest = answers[: count // 2], answers[len(answers) - (count - count // 2) :]
    if not lowest or lowest[-1].rank >= highest[0].rank:
        message = (
            f"In a comparison, the {count - count // 2:,} items with the highest values in “{column}” are expected to "
            f"be ahead of the {count // 2:,} with the lowest. The two groups do not differ: choose a smaller number, "
            "at least 2. Nothing was changed."
        )
        raise Invalid(message, code="known_answers_too_few", column=column, known=len(answers))
    top, bottom = (str(place) for place in TOP_AND_BOTTOM_PLACES)
    return [*((answer.item_id, top) for answer in highest), *((answer.item_id, bottom) for answer in lowest)]
