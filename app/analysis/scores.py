"""Scores of items from a campaign's answers, one function per method, and the comparison of two methods."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from app.analysis.answer_kinds import can_read_answers_as, has_class_labels
from app.analysis.item_noun import notes_with_noun, text_with_noun
from app.analysis.method_types import ScoreMethod
from app.analysis.result_types import Answers, Comparison, Figure, Mask, Scores, cell_or_none_if_not_finite
from app.designs.scale import MAX_POINTS, shares_to_points
from app.designs.unit import RATIO_UNIT, unit_of_order_only_law
from app.inference.agreement import score_comparison
from app.inference.ground.arrays import Array
from app.inference.ground.bootstrap import BOOTSTRAP_DRAWS
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.observations.judgment_kinds import CLASS_KINDS, can_law_read_answers
from app.inference.observations.tally import Tally
from app.inference.online.law import AnsweredHit, Law
from app.inference.online.laws import ONLINE_LAWS
from app.inference.ratings import direct_assessment
from app.inference.ratings import geometric_mean as geometric
from app.inference.ratings.direct_assessment import DirectAssessment
from app.inference.ratings.moderated_means import moderated_means_of_tally

MAX_RESAMPLED_JUDGMENTS = (
    100_000_000  # drawn again in all: some seconds; a large campaign needs fewer draws for steady ends
)
MIN_BOOTSTRAP_DRAWS = 100


def refuse_without_answers(answers: Answers) -> None:
    """Refuse to score before the first answer.

    Raises:
        Inestimable: `no_judgments`.

    """
    if not len(answers.item):
        raise Inestimable("There are no judgments yet.", code="no_judgments")


def choose_bootstrap_draw_count(steps_per_draw: int, max_draws: int = BOOTSTRAP_DRAWS) -> int:
    """Return how many bootstrap draws to make if a draw costs `steps_per_draw` steps."""
    return int(np.clip(MAX_RESAMPLED_JUDGMENTS // max(steps_per_draw, 1), MIN_BOOTSTRAP_DRAWS, max_draws))


def mean_scores(answers: Answers) -> Scores:
    """Return the mean of each item's judgments, in points."""
    assessment = direct_assessment.fit(
        answers.item,
        answers.annotator,
        answers.score,
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        scale=(0.0, MAX_POINTS),
    )
    return scores_from_assessment(assessment)


def median_scores(answers: Answers) -> Scores:
    """Return the median of each item's judgments: of scores in whole points, of classes the points of their place."""
    last = len(answers.classes) - 1 if has_class_labels(answers) else int(MAX_POINTS)
    labels = answers.value if has_class_labels(answers) else np.rint(answers.score)
    medians = direct_assessment.mean_and_median_labels(
        answers.item,
        answers.annotator,
        labels.astype(np.intp),
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        n_labels=last + 1,
    )
    columns = (medians.median, medians.low, medians.high, medians.standard_error)
    points, low, high, error = (values * (MAX_POINTS / last) for values in columns)
    return Scores(
        points, medians.mean.estimable, low, high, error, (*notes_on_display_of_medians(answers), *medians.mean.notes)
    )


def notes_on_display_of_medians(answers: Answers) -> tuple[Note, ...]:
    """Return notes on how a median represents the answers."""
    if has_class_labels(answers):
        first, *_, last = answers.classes
        sentence = f"Medians are labels, shown as points, “{first}” at 0 points and “{last}” at {MAX_POINTS:g}."
        return (Note("labels_in_points", sentence),)
    rounded = (np.rint(answers.score) != answers.score).any()
    return (Note("rounded_to_points", "Scores were rounded to whole points."),) if rounded else ()


def z_scores(answers: Answers) -> Scores:
    """Return the mean of each item's judgments, in standard deviations above the annotator's mean."""
    assessment = direct_assessment.assess_standardised_scores(
        answers.item, answers.annotator, answers.score, n_items=answers.n_items, n_annotators=answers.n_annotators
    )
    return replace(scores_from_assessment(assessment.scores), has_judgments=answers.has_judgments)


def geometric_mean_scores(answers: Answers) -> Scores:
    """Return the geometric mean of each item's ratios to the reference."""
    refuse_without_answers(answers)
    assessment = geometric.fit(
        answers.item,
        answers.annotator,
        answers.scores_between_0_and_1 / (1.0 - answers.scores_between_0_and_1),
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
    )
    return scores_from_assessment(assessment)


def scores_from_assessment(assessment: DirectAssessment) -> Scores:
    """Return an assessment as `Scores`."""
    return Scores(
        assessment.score,
        assessment.estimable,
        assessment.low,
        assessment.high,
        assessment.standard_error,
        assessment.notes,
    )


MEAN_METHOD = ScoreMethod(
    "Mean",
    "All judgments count equally, and a difference of 20 points means the same to every annotator and everywhere on "
    "the scale.",
    "points, 0 to 100",
    mean_scores,
    is_default=True,
)

MEDIAN_METHOD = ScoreMethod(
    "Median",
    "Only the order of the points matters, not how far apart they are, and it is the same for every annotator.",
    "points, 0 to 100",
    median_scores,
    reads="ordered_classes",
)

Z_SCORES_METHOD = ScoreMethod(
    "Mean of z-scores",
    "Annotators differ in strictness and in how much of the scale they use, but have seen items of the same average "
    "quality.",
    "standard deviations of an annotator",
    z_scores,
)

GEOMETRIC_MEAN_METHOD = ScoreMethod(
    "Geometric mean",
    "All judgments count equally, and twice the reference is as far above it as half of it is below.",
    "times the reference",
    geometric_mean_scores,
    reads="ratio",
)

# The online laws


MAX_HITS_TO_REPLAY = 10_000  # a law that learns of annotators takes about a millisecond for each


INTERVAL_OF_ASKING_NOTE = Note(
    "interval_of_asking",
    "The interval reflects the number of judgments, not how much people agree. If each annotator judges an item once, "
    "it is usually wider than that of the mean.",
)


def notes_on_coverage_of_law_intervals(answers: Answers, low: Array, high: Array) -> tuple[Note, ...]:
    """Return a note that compares the intervals of a law of orders with the calibrated ones, with the campaign page's
    figures.

    No note is given while no two annotators differ, or if annotators give no scores that could have a mean. If
    annotators are biased, the share is too low; `ModeratedMeans.expected_coverage_and_width_ratio` says why.
    """
    if not can_read_answers_as("points", answers.value_kind):
        return ()
    tally = Tally.empty(answers.n_items).with_judgments_added(
        answers.item, answers.annotator, answers.scores_between_0_and_1
    )
    share, times = moderated_means_of_tally(tally).expected_coverage_and_width_ratio(low, high)
    if not np.isfinite(share):
        return ()
    wide = f"{times:.1f} times as wide" if f"{times:.1f}" != "1.0" else "about as wide"
    sentence = (
        "This method reads only the order of the items. Judging by how far annotators differ, about "
        f"{100 * share:.0f} in 100 of its intervals contain the mean score that all annotators would give. If some "
        f"annotators are stricter than others, the share is higher. The intervals are {wide} as the calibrated "
        "intervals of the mean, of which 95 in 100 contain it."
    )
    return (Note("intervals_too_narrow", sentence),)


def make_online_score_function(
    law_name: str, *notes: Note, make_notes: Callable[[Answers, Array, Array], tuple[Note, ...]] = lambda *_: ()
) -> Callable[[Answers], Scores]:
    """Return the scores of an update law: stored ones if it is the campaign's own, else a replay of the same answers.

    Args:
        law_name: Name of the law.
        *notes: Notes on all results.
        make_notes: Function that returns more notes from the answers and both ends of the intervals.

    """

    def fit(answers: Answers) -> Scores:
        refuse_without_answers(answers)
        law = law_with_class_count_of_answers(law_name, answers)
        state, family = stored_or_replayed_final_state(law, answers), law.family
        low, high = family.interval(*state)
        has_judgments = answers.has_judgments
        shares = (family.score(*state), low, high, np.sqrt(family.variance(*state)))
        columns = (
            shares_ends_and_errors_to_ratios(*shares) if law.reads == "ratio" else tuple(map(shares_to_points, shares))
        )
        values, low, high, error = (np.where(has_judgments, column, np.nan) for column in columns)
        return Scores(
            values,
            has_judgments,
            low,
            high,
            error,
            (*notes, *make_notes(answers, low, high), *unscored_items_notes(has_judgments)),
        )

    return fit


def shares_ends_and_errors_to_ratios(
    share: Array, low: Array, high: Array, error: Array
) -> tuple[Array, Array, Array, Array]:
    """Convert shares s = r / (1 + r) to ratios r; an error of s is multiplied by the slope, (1 + r)^2."""
    ratio, low, high = map(RATIO_UNIT.shares_to_unit_values, (share, low, high))
    return ratio, low, high, error * (1.0 + ratio) ** 2


def law_with_class_count_of_answers(law_name: str, answers: Answers) -> Law:
    """Return the law of this name, for the classes of these answers if they have any."""
    law = ONLINE_LAWS[law_name]
    return (
        law.law_with_class_count(len(answers.classes))
        if can_law_read_answers(law.reads, answers.value_kind, len(answers.classes))
        else law
    )


def stored_or_replayed_final_state(law: Law, answers: Answers) -> Array:
    """Return the numbers of every item's posterior after all answers, (numbers, N)."""
    if law.name == answers.law and answers.state is not None:
        return answers.state
    if not law.quick and answers.n_hits > MAX_HITS_TO_REPLAY:
        raise Inestimable(
            f"{answers.n_hits:,} tasks are too many to replay with {law.name}, which learns about annotators from each "
            "one. A campaign that uses this update law gets these scores without a replay.",
            code="too_many_hits",
        )
    beliefs = law.initial_beliefs([*campaign_or_default_prior_state(law, answers)], answers.parameters)
    beliefs.apply_hits(answered_hits(answers, answer_values_in_kind_of_law(law, answers)))
    return beliefs.state


def campaign_or_default_prior_state(law: Law, answers: Answers) -> Array:
    """Return the campaign's priors if they are of the law's kind, else the law's own, (numbers, N)."""
    campaign_prior, family = answers.prior, law.family
    if law_with_class_count_of_answers(answers.law, answers).family is family and all(
        map(family.is_valid_prior, *campaign_prior.tolist())
    ):
        return campaign_prior
    return np.repeat(np.array(family.default_prior)[:, None], answers.n_items, axis=1)


def answer_values_in_kind_of_law(law: Law, answers: Answers) -> Array:
    """Return the values that the law reads, (J,)."""
    return answers.value if law.reads in CLASS_KINDS else answers.scores_between_0_and_1


def answered_hits(answers: Answers, values: Array) -> list[AnsweredHit]:
    """Return the answered HITs in order: annotator, items as presented, and their entries of `values`, (J,)."""
    starts = answers.first_judgment_index_of_each_hit.tolist()
    items, scores = answers.item.tolist(), values.tolist()
    ends = zip(answers.annotator_index_of_each_hit.tolist(), starts, [*starts[1:], len(items)], strict=True)
    return [AnsweredHit(annotator, items[start:stop], scores[start:stop]) for annotator, start, stop in ends]


def unscored_items_notes(has_judgments: Mask) -> tuple[Note, ...]:
    """Return a note on items without a judgment, if there are any."""
    unscored_count = int(np.count_nonzero(~has_judgments))
    sentence = f"{unscored_count:,} of {len(has_judgments):,} items have no judgments and no score."
    return (Note("items_unscored", sentence),) if unscored_count else ()


def score_method_of_law(law: Law) -> ScoreMethod:
    is_bounded = np.isfinite(law.family.support).all()
    unit = unit_of_order_only_law(law).axis_title if law.reads == "order" else MEAN_METHOD.unit
    if law.reads == "ratio":
        unit = GEOMETRIC_MEAN_METHOD.unit
    fit = (
        make_online_score_function(law.name, INTERVAL_OF_ASKING_NOTE)
        if is_bounded
        else make_online_score_function(law.name, make_notes=notes_on_coverage_of_law_intervals)
    )
    return ScoreMethod(law.title.partition(":")[0], law.assumes, unit, fit, reads=law.reads, can_cut_scores=False)


# Side by side

CORRELATION_TITLES = {"spearman": "Spearman", "pearson": "Pearson", "kendall": "Kendall’s tau-b", "ndcg": "nDCG"}


def compare_scores_by_correlation(answers: Answers, scores: Scores, other_scores: Scores) -> Comparison:
    """Compare two sets of scores. Never raises: if there are no figures, `refusal` says why."""
    n = int(np.count_nonzero(np.isfinite(scores.values) & np.isfinite(other_scores.values)))
    try:
        coefficients = score_comparison.correlate_with_intervals(
            scores.values, other_scores.values, draws=choose_bootstrap_draw_count(200 * n), rng=answers.seeded_rng()
        )
    except Inestimable as reason:
        return Comparison(scores, other_scores, n, (), (), text_with_noun(str(reason), answers))
    figures = tuple(
        Figure(name, title, *(finite_or_none(value) for value in (figure.value, figure.low, figure.high)))
        for name, title in CORRELATION_TITLES.items()
        for figure in (getattr(coefficients, name),)
    )
    return Comparison(scores, other_scores, n, figures, notes_with_noun(coefficients.notes, answers))


def finite_or_none(value: float) -> float | None:
    plain = cell_or_none_if_not_finite(value)
    return plain if isinstance(plain, float) else None
