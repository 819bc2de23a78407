"""Registry of the analysis methods by name.

Every method is a pure function of a campaign's `Answers`. If nothing can be estimated, it raises `Inestimable` with a
sentence for a researcher and a stable code; this does not affect other methods. All facts about a method are in its
own module (see `method_types`); page, command, API and exports read them from here.
"""

from collections.abc import Iterator, Mapping

from app.analysis import (
    agreement_table,
    annotator_table,
    aware_comparison_scores,
    best_worst_scores,
    consistency_tables,
    graded_response_tables,
    group_tables,
    halo_table,
    implied_pairs_table,
    label_set_tables,
    label_tables,
    misfit_tables,
    pairwise_tables,
    reliability_table,
    scores,
    shrunken_scores,
    system_table,
    win_loss_table,
)
from app.analysis.method_types import MethodExport, ScoreMethod, TableMethod, TableSection
from app.inference.online.laws import ONLINE_LAWS

SCORE_METHODS: dict[str, ScoreMethod] = {
    "mean": scores.MEAN_METHOD,
    "shrunken_mean": shrunken_scores.SHRUNKEN_MEAN_METHOD,
    "ordinal_median": scores.MEDIAN_METHOD,
    "z_scores": scores.Z_SCORES_METHOD,
    "geometric_mean": scores.GEOMETRIC_MEAN_METHOD,
    # Not laws that count classes: their score is the share of the likeliest class, not a position on a scale.
    **{law.name: scores.score_method_of_law(law) for law in ONLINE_LAWS.values() if not law.family.counts_classes},
    "bradley_terry": pairwise_tables.BRADLEY_TERRY,
    "aware_bradley_terry": aware_comparison_scores.AWARE_BRADLEY_TERRY,
    "rao_kupper": pairwise_tables.RAO_KUPPER,
    "thurstone": pairwise_tables.THURSTONE,
    "elo": pairwise_tables.ELO,
    "expected_wins": pairwise_tables.EXPECTED_WINS,
    "hopkins_may": pairwise_tables.HOPKINS_MAY,
    "best_worst_counts": best_worst_scores.BEST_WORST_METHOD,
}

TABLE_METHODS: dict[str, TableMethod] = {
    "systems": system_table.SYSTEM_RANK_TABLE,
    "win_loss": win_loss_table.WIN_LOSS_TABLE,
    "agreement": agreement_table.AGREEMENT_TABLE,
    "reliability": reliability_table.RELIABILITY_TABLE,
    "misfit_items": misfit_tables.ITEM_MISFIT_TABLE,
    "annotators": annotator_table.ANNOTATOR_TABLE,
    "misfit_annotators": misfit_tables.ANNOTATOR_MISFIT_TABLE,
    "groups": group_tables.GROUP_TABLE,
    "group_items": group_tables.GROUP_ITEM_TABLE,
    "consistency": consistency_tables.CONSISTENCY_TABLE,
    "scale": consistency_tables.PREFERENCE_SCALE_TABLE,
    "halo": halo_table.HALO_TABLE,
    "implied": implied_pairs_table.IMPLIED_PAIRS_TABLE,
    "label_sets": label_set_tables.LABEL_SET_TABLE,
    "item_label_sets": label_set_tables.ITEM_LABEL_SET_TABLE,
    "labels": label_tables.PREVALENCE_TABLE,
    "label_annotators": label_tables.LABEL_ANNOTATOR_TABLE,
    "label_items": label_tables.LABEL_ITEM_TABLE,
    "graded_response": graded_response_tables.GRADED_SYSTEM_TABLE,
    "graded_response_annotators": graded_response_tables.GRADED_ANNOTATOR_TABLE,
    "graded_response_segments": graded_response_tables.GRADED_SEGMENT_TABLE,
}


ALL_SCORES_EXPORT = MethodExport(
    "scores",
    "Scores",
    "Every item with its score and 95 % interval by every method of analysis. Large campaigns take minutes.",
)


def all_method_exports() -> list[MethodExport]:
    """Return every download that needs a fit, whatever a campaign supports."""
    return [ALL_SCORES_EXPORT, *(one for _, one in iterate_exports_with_table_names(TABLE_METHODS))]


def is_about_annotators(table_or_section: str) -> bool:
    """Return whether a table, or all tables of a part of the page, show single annotators."""
    tables = [table for own, table in TABLE_METHODS.items() if table_or_section in (own, table.section.name)]
    return bool(tables) and all(table.shows_annotators for table in tables)


def tables_by_section(tables: Mapping[str, TableMethod]) -> dict[TableSection, dict[str, TableMethod]]:
    """Return the tables of each section, in the order in which the sections first appear."""
    sections: dict[TableSection, dict[str, TableMethod]] = {}
    for name, method in tables.items():
        sections.setdefault(method.section, {})[name] = method
    return sections


def iterate_exports_with_table_names(tables: Mapping[str, TableMethod]) -> Iterator[tuple[str, MethodExport]]:
    """Yield every export of these tables, with the table's name."""
    for name, method in tables.items():
        for export in method.exports:
            yield name, export
