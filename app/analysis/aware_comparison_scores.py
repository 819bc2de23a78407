"""Scores from pairs that account for their annotators, and each annotator's reliability from the same fit."""

import numpy as np

from app.analysis.method_types import ScoreMethod
from app.analysis.pairwise_tables import Z, preference_pair_columns
from app.analysis.result_types import Answers, AnyArray, Column, Scores, cache_last_result
from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note, notes_with_names
from app.inference.observations.pair_weights import independent_pair_weights
from app.inference.preferences.aware_bradley_terry import AwareComparisonFit
from app.inference.preferences.aware_bradley_terry_draws import fit_with_sampled_errors

DISCRIMINATION_COLUMNS = (
    Column("discrimination", "Discrimination (1: same as others, 0: at random)"),
    Column("discrimination_error", "Standard error of discrimination"),
    Column("discrimination_low", "Discrimination, low (95 %)"),
    Column("discrimination_high", "Discrimination, high (95 %)"),
    Column("random", "Probability of answering at random"),
    Column("reversed", "Probability of reversed answers"),
)
MIN_NOTED_PROBABILITY = 0.5


@cache_last_result
def fit_annotator_aware_comparisons(answers: Answers, _options: None) -> AwareComparisonFit:
    """Return the fit to all pairs of a campaign; scores and the table of annotators share it.

    Raises:
        Inestimable: `no_judgments`, `no_pairs`.

    """
    first, second, outcomes, hits = preference_pair_columns(answers)
    weights = independent_pair_weights(answers.hit, answers.scores_between_0_and_1)
    return fit_with_sampled_errors(
        *(first, second, outcomes, answers.annotator_index_of_each_hit[hits]),
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        rng=answers.seeded_rng(),
        weights=weights[hits],
    )


def annotator_aware_bradley_terry_scores(answers: Answers) -> Scores:
    """Return scores with 95 % intervals, and a note on annotators whose answers hardly count or count reversed."""
    fit = fit_annotator_aware_comparisons(answers, None)
    low, high = (fit.score + side * Z * fit.standard_error for side in (-1.0, 1.0))
    notes = (*notes_with_names(fit.notes, {"item": answers.ids}), *notes_on_careless_annotator_count(fit))
    return Scores(fit.score, answers.has_judgments, low, high, fit.standard_error, notes)


def notes_on_careless_annotator_count(fit: AwareComparisonFit) -> tuple[Note, ...]:
    """Return a note on how many annotators are probably careless, without their names, which not all roles may see."""
    careless = int((np.nan_to_num(fit.random + fit.reversed) >= MIN_NOTED_PROBABILITY).sum())
    if not careless:
        return ()
    people = "1 annotator probably answers" if careless == 1 else f"{careless} annotators probably answer"
    sentence = f"{people} at random or in reverse. Random answers hardly count, and reversed ones count in reverse."
    return (Note("careless_annotators", sentence),)


def discrimination_columns_and_notes(answers: Answers) -> tuple[tuple[AnyArray, ...], tuple[Note, ...]]:
    """Return discrimination with its standard error and interval, and the probabilities of random and reversed answers,
    (A,) each, with notes.
    """
    try:
        fit = fit_annotator_aware_comparisons(answers, None)
    except Inestimable as reason:
        missing: Array = np.full(answers.n_annotators, np.nan)
        return (missing,) * len(DISCRIMINATION_COLUMNS), (Note("no_discrimination", f"No discrimination: {reason}"),)
    columns = (
        fit.discrimination,
        fit.discrimination_error,
        fit.discrimination_low,
        fit.discrimination_high,
        fit.random,
        fit.reversed,
    )
    return columns, ()


AWARE_BRADLEY_TERRY = ScoreMethod(
    "Annotator-aware Bradley-Terry",
    "Like Bradley-Terry, but annotators who often contradict the others count less, and those who answer at random not "
    "at all.",
    "log odds of a typical annotator, mean 0",
    annotator_aware_bradley_terry_scores,
    reads="order",
)
