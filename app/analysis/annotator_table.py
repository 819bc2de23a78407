"""One row per annotator: how much they did, how they use the scale, how they go with the others and with themselves."""

from collections.abc import Callable, Sequence

import numpy as np

from app.analysis import annotator_picture
from app.analysis.coarsened import labels_of, reached, read_as
from app.analysis.contracts import TableMethod, TableSection
from app.analysis.findings import Answers, Column, Options, ResultTable, Values, rows_of
from app.analysis.pairwise import pairs_of
from app.analysis.scores import require_answers
from app.inference.ground.arrays import Array, Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.long_form import sums
from app.inference.ground.notes import Note
from app.inference.observations.coarsening import Reads
from app.inference.preferences import transitivity
from app.inference.ratings import annotator_aware
from app.inference.ratings import with_others as correlations

COUNTED = (
    Column("annotator", "Pseudonym", "text"),
    Column("name", "Annotator", "text"),
    Column("hits", "HITs", "count"),
    Column("judgments", "Judgments", "count"),
)
OF_SCORES = (
    Column("mean", "Mean score (points)"),
    Column("spread", "Standard deviation (points)"),
    Column("correlation", "Correlation with the others’ means"),
    Column("reliability", "Reliability, 0 to 1"),
    Column("random", "Probability of answering at random"),
    Column("weight", "Weight of a judgment"),
    Column("bias", "Bias (points above the others)"),
    Column("scale", "Width of scale (1: as the others)"),
)
OF_ORDER = (
    Column("kappa", "Transitivity kappa"),
    Column("triads", "Triads", "count"),
    Column("kappa_without_ties", "Transitivity kappa without ties"),
    Column("triads_without_ties", "Triads without ties", "count"),
)
OF_UNJUDGED = (Column("unjudged", "Share that could not be judged"),)
OF_LABELS = (Column("agreement", "Share of labels that another gave too"),)

Part = tuple[tuple[Column, ...], tuple[Values, ...], tuple[Note, ...]]


def fit(answers: Answers, _options: Options) -> ResultTable:
    """The table, with the columns that the answers reach; each part that cannot be estimated leaves its cells empty and
    a note.
    """
    require_answers(answers)
    judgments = np.bincount(answers.annotator, minlength=answers.n_annotators)
    hits = np.bincount(answers.annotator_of_hit, minlength=answers.n_annotators)
    parts = [part(answers) for kind, part in PARTS.items() if reached(kind, answers.yields)]
    parts = parts or [labels_shared(answers)]
    parts += [said_of_themselves(answers)] if answers.asked else []
    parts += [] if answers.unjudged is None else [not_judged(answers.unjudged, judgments, answers.judged_nothing)]
    columns = answers.annotators, answers.names, hits, judgments, *(one for _, some, _ in parts for one in some)
    heads = (*COUNTED, *(head for some, _, _ in parts for head in some))
    return ResultTable(heads, rows_of(*columns), tuple(note for _, _, notes in parts for note in notes))


def said_of_themselves(answers: Answers) -> Part:
    """What each annotator answered before the start; empty where they gave no answer."""
    heads = tuple(Column(f"asked_{name}", name, "text") for name in answers.asked)
    return heads, tuple(np.array([said or "" for said in column]) for column in answers.asked.values()), ()


def not_judged(unjudged: Integers, judgments: Integers, judged_nothing: Sequence[str]) -> Part:
    """Of the items that each annotator judged or could not judge, the share of the latter, (A,)."""
    note = Note("judged_nothing", f"Not in the table, since they could judge nothing: {', '.join(judged_nothing)}.")
    return OF_UNJUDGED, (unjudged / (unjudged + judgments),), (note,) if judged_nothing else ()


def use_of_scale(answers: Answers) -> Part:
    """How each annotator scores, and what can be learned of them from the others."""
    learned, notes = learned_of(answers)
    return OF_SCORES, (*spread_of(answers), with_others(answers), *learned), (*read_as(answers, "points"), *notes)


def order_of(answers: Answers) -> Part:
    """Whether each annotator's preferences fit together."""
    consistent, notes = transitivity_of(answers)
    return OF_ORDER, consistent, (*read_as(answers, "order"), *notes)


PARTS: dict[Reads, Callable[[Answers], Part]] = {"points": use_of_scale, "order": order_of}


def labels_shared(answers: Answers) -> Part:
    """How far each annotator's labels are those that others gave the same items: of all pairs of one of theirs and one
    of somebody else's, the share that is the same; NaN where nobody else labelled an item of theirs.
    """
    n, labels = answers.n_annotators, labels_of(answers, 0)
    cell = answers.item * len(answers.classes) + labels
    mine, own = (np.unique(of * n + answers.annotator, return_inverse=True)[1] for of in (answers.item, cell))
    alike = np.bincount(cell)[cell] - np.bincount(own)[own]
    others = np.bincount(answers.item)[answers.item] - np.bincount(mine)[mine]
    total = sums(answers.annotator, others.astype(np.float64), n)
    shared = sums(answers.annotator, alike.astype(np.float64), n) / np.where(total > 0, total, np.nan)
    return OF_LABELS, (shared,), ()


def spread_of(answers: Answers) -> tuple[Array, Array]:
    """Mean and standard deviation of each annotator's scores, (A,); no deviation for a single judgment."""
    count = np.bincount(answers.annotator, minlength=answers.n_annotators)
    mean = sums(answers.annotator, answers.score, len(count)) / count
    squares = sums(answers.annotator, (answers.score - mean[answers.annotator]) ** 2, len(count))
    return mean, np.sqrt(squares / np.where(count > 1, count - 1.0, np.nan))


def with_others(answers: Answers) -> Array:
    """Return each annotator's correlation with the means of the others, (A,), as their own page shows it."""
    sizes = {"n_items": answers.n_items, "n_annotators": answers.n_annotators}
    return correlations.fit(answers.item, answers.annotator, answers.unit_score, **sizes).correlation


def learned_of(answers: Answers) -> tuple[tuple[Array, ...], tuple[Note, ...]]:
    """Reliability, chance of answering at random, weight, bias in points and scale, (A,) each, with notes."""
    try:
        found = annotator_aware.fit(
            answers.item,
            answers.annotator,
            answers.unit_score,
            n_items=answers.n_items,
            n_annotators=answers.n_annotators,
        )
    except Inestimable as reason:
        note = Note("no_reliability", f"No reliability, bias or scale: {reason}")
        return (np.full(answers.n_annotators, np.nan),) * 5, (note,)
    columns = (found.reliability, found.random, found.annotator_weight, 100.0 * found.bias, found.scale)
    return columns, found.notes


def transitivity_of(answers: Answers) -> tuple[tuple[Values, ...], tuple[Note, ...]]:
    """Kappa and number of triads, with ties and without, (A,) each, with notes."""
    try:
        found = transitivity_fit(answers)
    except Inestimable as reason:
        nothing = np.full(answers.n_annotators, np.nan)
        return (nothing, nothing, nothing, nothing), (Note("no_transitivity", f"No transitivity: {reason}"),)
    columns = (found.kappa, found.triads, found.kappa_without_ties, found.triads_without_ties)
    return columns, found.notes


def transitivity_fit(answers: Answers) -> transitivity.Transitivity:
    """Over triads whose pairs come from three HITs; raises `Inestimable` if nobody has one."""
    first, second, outcomes, hits = pairs_of(answers)
    who = answers.annotator_of_hit[hits]
    return transitivity.fit(first, second, outcomes, who, n_annotators=answers.n_annotators, hits=hits)


ANNOTATORS = TableMethod(
    TableSection("annotators", "Annotators"),
    "Annotators",
    "How much each annotator did, how their answers are spread, and how far they go with the others and fit together. "
    "Going with the others is no proof of being right, and somebody who differs may know better.",
    fit,
    reads=("points", "order", "classes"),
    of_people=True,
    picture=annotator_picture.scatter,
    room=lambda expected: expected.annotators,
)
