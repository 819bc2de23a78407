"""What a campaign's answers reach: the methods and tables that page, command, API and exports offer, all alike."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy.ext.asyncio import AsyncConnection

from app.analysis.answers import has_uploaded
from app.analysis.coarsened import read_as, refuse_other_answers
from app.analysis.contracts import MethodExport, Option, ScoreMethod, TableMethod, TableSection
from app.analysis.findings import Answers, Options, ResultTable, Scores
from app.analysis.methods import ALL_SCORES, SCORES, TABLES, exports_of, sections_of
from app.designs.design import Design
from app.designs.registry import design_of
from app.inference.observations.coarsening import CLASSES, REACHES, readable
from app.visit.asked_once import questions_with_choices


@dataclass(frozen=True)
class Offer:
    """By name and in order. classes: how many labels there are to choose from, 0 where annotators choose none.
    has_baseline: whether the design says what others are compared with. usual: the method that is shown beside the
    campaign's own law where nobody has chosen, empty where the design names none.
    """

    scores: Mapping[str, ScoreMethod]
    tables: Mapping[str, TableMethod]
    classes: int = 0
    has_baseline: bool = False
    usual: str = ""

    @property
    def sections(self) -> dict[TableSection, dict[str, TableMethod]]:
        """The tables of each part of the analysis page."""
        return sections_of(self.tables)

    @property
    def exports(self) -> list[MethodExport]:
        """The downloads that need a fit."""
        return [*([ALL_SCORES] if self.scores else []), *(one for _, one in exports_of(self.tables))]

    def seen(self, *, people: bool) -> "Offer":
        """What is left of it for somebody who may see single annotators, or may not."""
        return replace(self, tables={name: one for name, one in self.tables.items() if people or not one.of_people})

    def asked(self, section: TableSection) -> tuple[Option, ...]:
        """The options to choose in a part of the page, but what the design has decided."""
        decided = {"classes": self.classes > 0, "baseline": self.has_baseline}
        return tuple(option for option in section.asks if not decided[option])


EVERYTHING = Offer(SCORES, TABLES)


def reached_by(design: Design, items_per_hit: int | None = None) -> Offer:
    """What the answers of a design reach, whatever its items came with. items_per_hit: how many are asked about at
    once, of which one alone has no order.
    """
    kinds = {kind for kind in REACHES[design.yields] if kind != "order" or items_per_hit != 1}
    count = len(design.classes) if design.yields in CLASSES else 0
    scores = {
        name: method
        for name, method in SCORES.items()
        if method.reads in kinds and (method.cuts or readable(method.reads, design.yields, count))
    }
    tables = {
        name: table
        for name, table in TABLES.items()
        if kinds.intersection(table.reads) and (design.compares_pairs or not table.of_pairs)
    }
    return Offer(scores, tables, count, bool(design.always_shown), design.usual_method)


async def offered(connection: AsyncConnection, campaign: Any) -> Offer:
    """What a campaign's design reaches, without the tables that need columns which no item came with. An item that is
    in every HIT is compared with all others, whatever their columns.
    """
    design = design_of(campaign)
    found = reached_by(design, campaign.items_per_hit)
    if not campaign.segment_count:
        found = replace(found, tables={name: one for name, one in found.tables.items() if not one.of_systems})
    if not campaign.criteria:
        found = replace(found, tables={name: one for name, one in found.tables.items() if not one.of_criteria})
    if not questions_with_choices(campaign.questions):
        found = replace(found, tables={name: one for name, one in found.tables.items() if not one.of_groups})
    if design.always_shown:
        return found
    needs = {table.needs for table in found.tables.values() if table.needs}
    lacking = {columns for columns in needs if not await has_uploaded(connection, campaign, columns)}
    return replace(found, tables={name: one for name, one in found.tables.items() if one.needs not in lacking})


def scored(method: ScoreMethod, answers: Answers) -> Scores:
    """The scores of a method, and how it read the answers. Raises `Inestimable`, `method_reads_other_answers` too."""
    refuse_other_answers(method.title, [method.reads], answers)
    found = method.fit(answers)
    return replace(found, notes=(*read_as(answers, method.reads), *found.notes))


def tabled(method: TableMethod, answers: Answers, options: Options) -> ResultTable:
    """A table. Raises as `scored` does."""
    refuse_other_answers(method.title, method.reads, answers)
    return method.fit(answers, options)
