"""The methods of analysis by name: one place that says which there are.

Every one is a pure function of a campaign's `Answers`. What cannot be estimated at all raises `Inestimable`, with a
sentence for a researcher and a stable code; it says nothing about the other methods. What there is to know of a method
stands in its own module (see `contracts`); page, command, API and exports read it from here.
"""

from collections.abc import Iterator, Mapping

from app.analysis import (
    agreement_table,
    annotator_table,
    consistency,
    counts,
    graded,
    group_tables,
    halo_table,
    implied,
    labels,
    pairwise,
    scores,
    system_table,
)
from app.analysis.contracts import MethodExport, ScoreMethod, TableMethod, TableSection
from app.inference.online.laws import ONLINE

SCORES: dict[str, ScoreMethod] = {
    "mean": scores.MEAN,
    "ordinal_median": scores.MEDIAN,
    "z_scores": scores.Z_SCORES,
    "geometric_mean": scores.GEOMETRIC_MEAN,
    # Where classes are counted, the score is how sure the likeliest one is, which is no place on a scale.
    **{law.name: scores.of_law(law) for law in ONLINE.values() if not law.family.counts_classes},
    "bradley_terry": pairwise.BRADLEY_TERRY,
    "rao_kupper": pairwise.RAO_KUPPER,
    "thurstone": pairwise.THURSTONE,
    "elo": pairwise.ELO,
    "expected_wins": pairwise.EXPECTED_WINS,
    "hopkins_may": pairwise.HOPKINS_MAY,
    "best_worst_counts": counts.BEST_WORST,
}

TABLES: dict[str, TableMethod] = {
    "systems": system_table.SYSTEMS,
    "agreement": agreement_table.AGREEMENT,
    "annotators": annotator_table.ANNOTATORS,
    "groups": group_tables.GROUPS,
    "group_items": group_tables.ITEMS,
    "consistency": consistency.CONSISTENCY,
    "scale": consistency.SCALE,
    "halo": halo_table.HALO,
    "implied": implied.IMPLIED,
    "labels": labels.PREVALENCE,
    "label_annotators": labels.ANNOTATORS,
    "label_items": labels.ITEMS,
    "graded_response": graded.SYSTEMS,
    "graded_response_annotators": graded.ANNOTATORS,
    "graded_response_segments": graded.SEGMENTS,
}


ALL_SCORES = MethodExport(
    "scores",
    "Scores",
    "Every item with its score and 95 % interval by every method of analysis. Large campaigns take minutes.",
)


def every_export() -> list[MethodExport]:
    """Every download that needs a fit, whatever a campaign reaches."""
    return [ALL_SCORES, *(one for _, one in exports_of(TABLES))]


def tells_of_people(name: str) -> bool:
    """Whether a table, or all tables of a part of the page, are `of_people`."""
    those = [table for own, table in TABLES.items() if name in (own, table.section.name)]
    return bool(those) and all(table.of_people for table in those)


def sections_of(tables: Mapping[str, TableMethod]) -> dict[TableSection, dict[str, TableMethod]]:
    """The tables of each section, in the order in which the sections first come."""
    found: dict[TableSection, dict[str, TableMethod]] = {}
    for name, method in tables.items():
        found.setdefault(method.section, {})[name] = method
    return found


def exports_of(tables: Mapping[str, TableMethod]) -> Iterator[tuple[str, MethodExport]]:
    """Every export of these tables, with the table's name."""
    for name, method in tables.items():
        for one in method.exports:
            yield name, one
