"""Scores of items from a campaign's answers, one function per method, and two of them side by side."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from app.analysis.coarsened import has_labels, reached
from app.analysis.contracts import ScoreMethod
from app.analysis.findings import Answers, Comparison, Figure, Mask, Scores, cell
from app.designs.scale import POINTS, in_points
from app.designs.unit import RATIO, by_order
from app.inference.agreement import side_by_side
from app.inference.ground.arrays import Array
from app.inference.ground.bootstrap import DRAWS
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.notes import Note
from app.inference.observations.coarsening import CLASSES, readable
from app.inference.observations.tally import Tally
from app.inference.online.law import Hit, Law
from app.inference.online.laws import ONLINE
from app.inference.ratings import direct_assessment
from app.inference.ratings import geometric_mean as geometric
from app.inference.ratings.direct_assessment import DirectAssessment
from app.inference.ratings.moderated import moderated

DRAWN_JUDGMENTS = 100_000_000  # drawn again in all: some seconds; a large campaign needs fewer draws for steady ends
LEAST_DRAWS = 100


def require_answers(answers: Answers) -> None:
    """Raises `Inestimable` (`no_judgments`) before the first answer."""
    if not len(answers.item):
        raise Inestimable("There are no judgments yet.", code="no_judgments")


def draws(drawn: int, at_most: int = DRAWS) -> int:
    """How often to draw again when a draw costs `drawn` steps."""
    return int(np.clip(DRAWN_JUDGMENTS // max(drawn, 1), LEAST_DRAWS, at_most))


def mean(answers: Answers) -> Scores:
    """The mean of an item's judgments, in points."""
    found = direct_assessment.fit(
        answers.item,
        answers.annotator,
        answers.score,
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        scale=(0.0, POINTS),
    )
    return of_assessment(found)


def median(answers: Answers) -> Scores:
    """The median of an item's judgments: of scores in whole points, of classes the points of their place."""
    last = len(answers.classes) - 1 if has_labels(answers) else int(POINTS)
    labels = answers.value if has_labels(answers) else np.rint(answers.score)
    found = direct_assessment.ordinal(
        answers.item,
        answers.annotator,
        labels.astype(np.intp),
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
        n_labels=last + 1,
    )
    told = (found.median, found.low, found.high, found.standard_error)
    points, low, high, error = (values * (POINTS / last) for values in told)
    return Scores(points, found.mean.estimable, low, high, error, (*how_medians_stand(answers), *found.mean.notes))


def how_medians_stand(answers: Answers) -> tuple[Note, ...]:
    """How a median stands for what annotators gave."""
    if has_labels(answers):
        first, *_, last = answers.classes
        sentence = f"Medians are labels, shown by their place, “{first}” at 0 points and “{last}” at {POINTS:g}."
        return (Note("labels_in_points", sentence),)
    rounded = (np.rint(answers.score) != answers.score).any()
    return (Note("rounded_to_points", "Scores were rounded to whole points."),) if rounded else ()


def z_scores(answers: Answers) -> Scores:
    """The mean of an item's judgments, each in standard deviations above its annotator's mean."""
    found = direct_assessment.standardised(
        answers.item,
        answers.annotator,
        answers.score,
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
    )
    return replace(of_assessment(found.scores), judged=answers.judged)


def geometric_mean(answers: Answers) -> Scores:
    """The geometric mean of an item's ratios to the reference."""
    require_answers(answers)
    found = geometric.fit(
        answers.item,
        answers.annotator,
        answers.unit_score / (1.0 - answers.unit_score),
        n_items=answers.n_items,
        n_annotators=answers.n_annotators,
    )
    return of_assessment(found)


def of_assessment(found: DirectAssessment) -> Scores:
    """The same in the form that all methods share."""
    return Scores(found.score, found.estimable, found.low, found.high, found.standard_error, found.notes)


MEAN = ScoreMethod(
    "Mean",
    "All judgments count alike, and 20 points mean the same to every annotator and everywhere on the scale.",
    "points, 0 to 100",
    mean,
    usual=True,
)

MEDIAN = ScoreMethod(
    "Median",
    "Only the order of the points matters, not how far apart they are, and it is the same for every annotator.",
    "points, 0 to 100",
    median,
    reads="ordered_classes",
)

Z_SCORES = ScoreMethod(
    "Mean of z-scores",
    "Annotators differ in strictness and in how much of the scale they use, but have seen items that are alike on the "
    "whole.",
    "standard deviations of an annotator",
    z_scores,
)

GEOMETRIC_MEAN = ScoreMethod(
    "Geometric mean",
    "All judgments count alike, and twice the reference is as far above it as half of it is below.",
    "times the reference",
    geometric_mean,
    reads="ratio",
)

# The online laws


MOST_HITS_LEARNED = 10_000  # a law that learns of annotators takes about a millisecond for each


ASKED = Note(
    "interval_of_asking",
    "The interval tells how much has been asked, not how much people agree. So it is as a rule wider than that of the "
    "mean from the same answers.",
)


def how_far_off(answers: Answers, low: Array, high: Array) -> tuple[Note, ...]:
    """A sentence about the intervals of a law of orders beside the calibrated ones, with the campaign page's figures;
    none while no two annotators differ, and none where annotators give no scores that could have a mean.

    Where annotators are biased the share is too low; `Moderated.beside` says why.
    """
    if not reached("points", answers.yields):
        return ()
    tally = Tally.nothing(answers.n_items).after(answers.item, answers.annotator, answers.unit_score)
    share, times = moderated(tally).beside(low, high)
    if not np.isfinite(share):
        return ()
    wide = f"{times:.1f} times as wide" if f"{times:.1f}" != "1.0" else "about as wide"
    sentence = (
        f"Judging by how far annotators differ, about {100 * share:.0f} in 100 of its intervals hold the mean score "
        "that all annotators would give, or more where some are stricter throughout than others, which no order shows: "
        f"they lie around a score from the order alone, and are {wide} as the mean’s calibrated intervals, which hold "
        "it 95 times in 100."
    )
    return (Note("intervals_too_narrow", sentence),)


def online(
    name: str, *notes: Note, told: Callable[[Answers, Array, Array], tuple[Note, ...]] = lambda *_: ()
) -> Callable[[Answers], Scores]:
    """The scores of an update law: stored if it is the campaign's own, else what it makes of the same answers.

    told: more notes, from the answers and the intervals.
    """

    def fit(answers: Answers) -> Scores:
        require_answers(answers)
        law = for_its_classes(name, answers)
        state, family = posteriors(law, answers), law.family
        low, high = family.interval(*state)
        seen = answers.judged
        shares = (family.score(*state), low, high, np.sqrt(family.variance(*state)))
        columns = as_ratios(*shares) if law.reads == "ratio" else tuple(map(in_points, shares))
        values, low, high, error = (np.where(seen, column, np.nan) for column in columns)
        return Scores(values, seen, low, high, error, (*notes, *told(answers, low, high), *unseen_notes(seen)))

    return fit


def as_ratios(score: Array, low: Array, high: Array, error: Array) -> tuple[Array, Array, Array, Array]:
    """Shares s = r / (1 + r) of a ratio as ratios r; an error is that of s times the slope, (1 + r)^2."""
    ratio, low, high = map(RATIO.in_files, (score, low, high))
    return ratio, low, high, error * (1.0 + ratio) ** 2


def for_its_classes(name: str, answers: Answers) -> Law:
    """The law of this name, for the classes of these answers if they have any."""
    law = ONLINE[name]
    return law.of_classes(len(answers.classes)) if readable(law.reads, answers.yields, len(answers.classes)) else law


def posteriors(law: Law, answers: Answers) -> Array:
    """The numbers of every item's posterior after all answers, (numbers, N)."""
    if law.name == answers.law and answers.state is not None:
        return answers.state
    if not law.quick and answers.n_hits > MOST_HITS_LEARNED:
        raise Inestimable(
            f"{answers.n_hits:,} HITs are too many to be replayed with {law.name}, which learns of annotators with "
            "each one. Its scores are there for a campaign that has it as its update law.",
            code="too_many_hits",
        )
    beliefs = law.begin([*priors(law, answers)], answers.parameters)
    beliefs.take(hits_of(answers, values_of(law, answers)))
    return beliefs.state


def priors(law: Law, answers: Answers) -> Array:
    """The campaign's priors where they are of the law's kind, else the law's own, (numbers, N)."""
    own, family = answers.prior, law.family
    if for_its_classes(answers.law, answers).family is family and all(map(family.valid_prior, *own.tolist())):
        return own
    return np.repeat(np.array(family.default_prior)[:, None], answers.n_items, axis=1)


def values_of(law: Law, answers: Answers) -> Array:
    """(J,) what the law reads."""
    return answers.value if law.reads in CLASSES else answers.unit_score


def hits_of(answers: Answers, values: Array) -> list[Hit]:
    """HIT after HIT: who answered it, its items as presented, and their values of these, (J,)."""
    starts = answers.first_of_hit.tolist()
    items, scores = answers.item.tolist(), values.tolist()
    ends = zip(answers.annotator_of_hit.tolist(), starts, [*starts[1:], len(items)], strict=True)
    return [Hit(annotator, items[start:stop], scores[start:stop]) for annotator, start, stop in ends]


def unseen_notes(seen: Mask) -> tuple[Note, ...]:
    """A sentence about items without a judgment, if there are any."""
    unseen = int(np.count_nonzero(~seen))
    sentence = f"{unseen:,} of {len(seen):,} items have no judgment, and so no score."
    return (Note("items_unscored", sentence),) if unseen else ()


def of_law(law: Law) -> ScoreMethod:
    """The method that an update law is."""
    bounded = np.isfinite(law.family.support).all()
    unit = by_order(law).axis if law.reads == "order" else MEAN.unit
    if law.reads == "ratio":
        unit = GEOMETRIC_MEAN.unit
    fit = online(law.name, ASKED) if bounded else online(law.name, told=how_far_off)
    return ScoreMethod(law.title.partition(":")[0], law.assumes, unit, fit, reads=law.reads, cuts=False)


# Side by side

TITLES = {"spearman": "Spearman", "pearson": "Pearson", "kendall": "Kendall’s tau-b", "ndcg": "nDCG"}


def compare(answers: Answers, one: Scores, other: Scores) -> Comparison:
    """How far two sets of scores go together. Never raises: where there are no figures, `refusal` says why."""
    n = int(np.count_nonzero(np.isfinite(one.values) & np.isfinite(other.values)))
    try:
        found = side_by_side.compare(one.values, other.values, draws=draws(200 * n), rng=answers.rng())
    except Inestimable as reason:
        return Comparison(one, other, n, (), (), str(reason))
    figures = tuple(
        Figure(name, title, *(number(value) for value in (figure.value, figure.low, figure.high)))
        for name, title in TITLES.items()
        for figure in (getattr(found, name),)
    )
    return Comparison(one, other, n, figures, found.notes)


def number(value: float) -> float | None:
    """The number, or None where there is none."""
    found = cell(value)
    return found if isinstance(found, float) else None
