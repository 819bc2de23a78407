"""Methods and tables that a campaign's answers support; page, command, API and exports all offer the same."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.answer_kinds import notes_on_reading_as_kind, refuse_unreadable_answers
from app.analysis.item_noun import notes_with_noun
from app.analysis.load_answers import has_item_with_all_columns
from app.analysis.method_types import MethodExport, OptionName, ScoreMethod, TableMethod, TableSection
from app.analysis.methods import (
    ALL_SCORES_EXPORT,
    SCORE_METHODS,
    TABLE_METHODS,
    iterate_exports_with_table_names,
    tables_by_section,
)
from app.analysis.result_types import Answers, Options, ResultTable, Scores
from app.annotation.onboarding.entry_questions import parse_only_questions_with_choices
from app.designs.campaign import Campaign
from app.designs.criteria import Criterion
from app.designs.design import Design
from app.designs.several_labels import asks_yes_or_no
from app.inference.observations.judgment_kinds import CLASS_KINDS, READABLE_KINDS, can_law_read_answers


@dataclass(frozen=True)
class AvailableMethods:
    """Methods and tables by name, in their order.

    Attributes:
        scores: Methods that score items.
        tables: Tables of the analysis.
        label_count: Number of labels to choose from, 0 if annotators choose none.
        has_baseline: Whether the design fixes the baseline.
        default_method: Method shown next to the campaign's own law by default; empty if the design names none.

    """

    scores: Mapping[str, ScoreMethod]
    tables: Mapping[str, TableMethod]
    label_count: int = 0
    has_baseline: bool = False
    default_method: str = ""

    @property
    def sections(self) -> dict[TableSection, dict[str, TableMethod]]:
        """The tables of each part of the analysis page."""
        return tables_by_section(self.tables)

    @property
    def exports(self) -> list[MethodExport]:
        """The downloads that need a fit."""
        return [
            *([ALL_SCORES_EXPORT] if self.scores else []),
            *(one for _, one in iterate_exports_with_table_names(self.tables)),
        ]

    def visible_methods(self, *, can_see_annotators: bool) -> "AvailableMethods":
        """Return the methods for a reader who may, or may not, see single annotators."""
        return replace(
            self,
            tables={name: one for name, one in self.tables.items() if can_see_annotators or not one.shows_annotators},
        )

    def options_not_fixed_by_design(self, section: TableSection) -> tuple[OptionName, ...]:
        """Return the options to choose in a part of the page, without those that the design fixes."""
        is_decided = {"classes": self.label_count > 0, "baseline": self.has_baseline}
        return tuple(option for option in section.options if not is_decided[option])


ALL_METHODS = AvailableMethods(SCORE_METHODS, TABLE_METHODS)


def available_methods_for_design(design: Design, items_per_hit: int | None = None) -> AvailableMethods:
    """Return what the answers of a design support, whatever columns its items have.

    Args:
        design: The campaign's design.
        items_per_hit: Number of items asked about at once; a single item has no order.

    """
    kinds = {kind for kind in READABLE_KINDS[design.value_kind] if kind != "order" or items_per_hit != 1}
    class_count = len(design.classes) if design.value_kind in CLASS_KINDS else 0
    scores = {
        name: method
        for name, method in SCORE_METHODS.items()
        if method.reads in kinds
        and (method.can_cut_scores or can_law_read_answers(method.reads, design.value_kind, class_count))
    }
    tables = {
        name: table
        for name, table in TABLE_METHODS.items()
        if kinds.intersection(table.reads)
        and (design.compares_pairs or not table.needs_free_pairs)
        and (design.value_kind == "order" or not table.needs_order)
        and (asks_yes_or_no(design) or not table.needs_yes_or_no)
    }
    return AvailableMethods(scores, tables, class_count, bool(design.always_shown), design.default_method)


async def load_available_methods(connection: AsyncConnection, criterion: Criterion[Campaign]) -> AvailableMethods:
    """Return what a campaign's design supports, without tables that need columns which no item has.

    If an item is in every HIT, all others are compared with it, whatever their columns.
    """
    design = criterion.design
    available = available_methods_for_design(design, criterion.campaign.items_per_hit)
    if not criterion.campaign.segment_count:
        available = replace(
            available, tables={name: one for name, one in available.tables.items() if not one.needs_systems}
        )
        if not design.compares_pairs:
            available = replace(
                available,
                tables={name: one for name, one in available.tables.items() if not one.compares_systems_or_pairs},
            )
    if not criterion.campaign.has_criteria:
        available = replace(
            available, tables={name: one for name, one in available.tables.items() if not one.needs_criteria}
        )
    if not parse_only_questions_with_choices(criterion.campaign.questions):
        available = replace(
            available, tables={name: one for name, one in available.tables.items() if not one.needs_groups}
        )
    if design.always_shown:
        return available
    needs = {table.required_columns for table in available.tables.values() if table.required_columns}
    missing_columns = {
        columns for columns in needs if not await has_item_with_all_columns(connection, criterion.campaign, columns)
    }
    return replace(
        available,
        tables={name: one for name, one in available.tables.items() if one.required_columns not in missing_columns},
    )


def fit_scores_with_reading_notes(method: ScoreMethod, answers: Answers) -> Scores:
    """Fit a method, and return its scores with notes on how it read the answers.

    Raises:
        Inestimable: `method_reads_other_answers`, or the reason of the method.

    """
    refuse_unreadable_answers(method.title, [method.reads], answers)
    scores = method.fit(answers)
    notes = (*notes_on_reading_as_kind(answers, method.reads), *scores.notes)
    return replace(scores, notes=notes_with_noun(notes, answers))


def fit_table_or_refuse(method: TableMethod, answers: Answers, options: Options) -> ResultTable:
    """Fit a method, and return its table. Raises as `fit_scores_with_reading_notes` does."""
    refuse_unreadable_answers(method.title, method.reads, answers, as_given=method.needs_order)
    return method.fit(answers, options)
