"""The methods of analysis by name: one place that says which there are.

Every one is a pure function of a campaign's `Answers`. What cannot be estimated at all raises `Inestimable`, with a
sentence for a researcher and a stable code; it says nothing about the other methods. What there is to know of a method
stands in its own module (see `contracts`); page, command, API and exports read it from here.
"""

from collections.abc import Iterator

from app.analysis import agreement_table, annotator_table, consistency, graded, labels, pairwise, scores
from app.analysis.contracts import MethodExport, ScoreMethod, TableMethod, TableSection
from app.inference.online.laws import ONLINE

SCORES: dict[str, ScoreMethod] = {
    "mean": scores.MEAN,
    "ordinal_median": scores.MEDIAN,
    "z_scores": scores.Z_SCORES,
    **{law.name: scores.of_law(law) for law in ONLINE.values()},
    "bradley_terry": pairwise.BRADLEY_TERRY,
    "rao_kupper": pairwise.RAO_KUPPER,
    "thurstone": pairwise.THURSTONE,
    "elo": pairwise.ELO,
    "expected_wins": pairwise.EXPECTED_WINS,
    "hopkins_may": pairwise.HOPKINS_MAY,
}

TABLES: dict[str, TableMethod] = {
    "agreement": agreement_table.AGREEMENT,
    "annotators": annotator_table.ANNOTATORS,
    "consistency": consistency.CONSISTENCY,
    "scale": consistency.SCALE,
    "labels": labels.PREVALENCE,
    "label_annotators": labels.ANNOTATORS,
    "label_items": labels.ITEMS,
    "graded_response": graded.SYSTEMS,
    "graded_response_annotators": graded.ANNOTATORS,
    "graded_response_segments": graded.SEGMENTS,
}


def sections() -> dict[TableSection, dict[str, TableMethod]]:
    """The tables of each section, in the order in which the sections first come."""
    found: dict[TableSection, dict[str, TableMethod]] = {}
    for name, method in TABLES.items():
        found.setdefault(method.section, {})[name] = method
    return found


def exports() -> Iterator[tuple[str, MethodExport]]:
    """Every export of a table, with the table's name."""
    for name, method in TABLES.items():
        for one in method.exports:
            yield name, one
