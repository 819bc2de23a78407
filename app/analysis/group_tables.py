"""Groups of annotators side by side, by what they answered to questions that were asked once: how far each agrees, and
what each makes of the items.
"""

from collections.abc import Sequence

import numpy as np

from app.analysis.agreement_table import ALPHAS, MEASURES, OF_PAIRS, judged_as, tried
from app.analysis.coarsened import reached, read_as
from app.analysis.contracts import Drawn, TableMethod, TableSection
from app.analysis.findings import Answers, Cell, Column, Options, ResultTable, cells, rows_of
from app.analysis.groups import groups_among, in_group
from app.analysis.scores import require_answers
from app.drawing import COEFFICIENTS
from app.errors import shortened
from app.inference.ground.arrays import Array
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.long_form import sums
from app.inference.ground.notes import Note

MOST_ROWS = 50  # each is an estimate of its own
MOST_COLUMNS = 6  # groups whose means stand beside each other
FEWEST = 2  # annotators of a group in a column
LEAST_SHARED = 3  # items that a group and the others have judged, so that their means are compared

SECTION = TableSection("groups", "Groups of annotators")

COLUMNS = (
    Column("question", "Question", "text"),
    Column("answer", "Answer", "text"),
    Column("annotators", "Annotators", "count"),
    Column("judgments", "Judgments", "count"),
    Column("mean", "Mean score (points)"),
    Column("value", "Krippendorff’s alpha within"),
    Column("low", "Low (95 %)"),
    Column("high", "High (95 %)"),
    Column("with_others", "Item means with the others’"),
    Column("sentence", "Why there is no alpha", "sentence"),
)


def fit(answers: Answers, options: Options) -> ResultTable:
    """One row for each answer to each question. Raises `Inestimable` (`no_groups`, `no_judgments`)."""
    found = groups_of(answers)
    rows = [row(answers, options, *group) for group in found[:MOST_ROWS]]
    notes = [*read_as(answers, "points" if has_points(answers) else answers.yields, options.classes)]
    if len(found) > MOST_ROWS:
        notes.append(not_all(f"The first {MOST_ROWS} answers are shown, of {len(found):,}."))
    return ResultTable(COLUMNS, rows, tuple(notes))


def not_all(words: str) -> Note:
    """That there are more groups than are shown."""
    return Note("most_groups", words)


def groups_of(answers: Answers) -> list[tuple[str, str, int]]:
    """Question, answer and how many annotators gave it. Raises `Inestimable`."""
    require_answers(answers)
    found = groups_among(answers.asked)
    if not found:
        raise Inestimable("No annotator has answered a question that was asked once.", code="no_groups")
    return found


def has_points(answers: Answers) -> bool:
    return reached("points", answers.yields)


def row(answers: Answers, options: Options, question: str, answer: str, count: int) -> tuple[Cell, ...]:
    """What a group says alone, and beside those who gave another answer."""
    own = in_group(answers, f"{question}={answer}")
    measures = [one for one in (*MEASURES, *OF_PAIRS) if one.name in ALPHAS and reached(one.reads, answers.yields)]
    alpha = tried(measures[0], judged_as(measures[0].reads, own, options.classes), own)
    none = isinstance(alpha, Inestimable)
    figures = (np.nan,) * 3 if isinstance(alpha, Inestimable) else (alpha.value, alpha.low, alpha.high)
    mean, beside = np.nan, np.nan
    if has_points(answers):
        mean, beside = float(own.score.mean()), with_others(answers, own, question, answer)
    told = str(alpha) if none else None
    return question, answer, count, len(own.item), *cells((mean, *figures, beside)), told


def with_others(answers: Answers, own: Answers, question: str, answer: str) -> float:
    """Pearson's correlation of the group's item means with those of whoever gave another answer; NaN where too few
    items have both, or either side does not vary.
    """
    said = answers.asked[question]
    if all(one in (None, answer) for one in said):
        return float("nan")
    x, y = item_means(own), item_means(in_group(answers, f"{question}!={answer}"))
    both = ~np.isnan(x) & ~np.isnan(y)
    x, y = x[both], y[both]
    if len(x) < LEAST_SHARED or min(np.ptp(x), np.ptp(y)) < 1e-9:
        return float("nan")
    return float(np.corrcoef(x, y)[0, 1])


def item_means(answers: Answers) -> Array:
    """(N,) of the scores in points, NaN of items without any."""
    counts = answers.judgments
    return sums(answers.item, answers.score, answers.n_items) / np.where(counts > 0, counts, np.nan)


def fit_items(answers: Answers, _options: Options) -> ResultTable:
    """One row for each item that was judged, with a mean and a count for each group. Raises `Inestimable`."""
    found = groups_of(answers)
    shown = [group for group in found if group[2] >= FEWEST][:MOST_COLUMNS]
    if not shown:
        words = f"No answer was given by {FEWEST} annotators, so there are no groups to put side by side."
        raise Inestimable(words, code="no_groups")
    judged = np.flatnonzero(answers.judged)
    those = judged.tolist()
    heads, columns = [], []
    for question, answer, _ in shown:
        own, title = in_group(answers, f"{question}={answer}"), f"{question.replace('_', ' ')} {shortened(answer)}"
        heads += [
            Column(f"mean_{question}_{answer}", f"{title}: mean"),
            Column(f"judgments_{question}_{answer}", f"{title}: judgments", "count"),
        ]
        columns += [item_means(own)[judged], own.judgments[judged]]
    names = [answers.ids[item] for item in those], [answers.shown[item] for item in those]
    notes = [*read_as(answers, "points")]
    if len(shown) < len(found):
        notes.append(not_all(said(shown)))
    return ResultTable((*ITEM, *heads), rows_of(*names, *columns), tuple(notes))


ITEM = (Column("id", "Item", "text"), Column("text", "Text", "text"))


def said(shown: Sequence[tuple[str, str, int]]) -> str:
    given = ", ".join(f"{question}: {answer}" for question, answer, _ in shown)
    return f"Side by side stand the first answers that at least {FEWEST} annotators gave: {given}."


GROUPS = TableMethod(
    SECTION,
    "Groups",
    "Annotators by what they answered before they began: how far those of a group agree with each other, with the 95 % "
    "interval over items, and how far the means of their items go with those of whoever answered otherwise. Groups may "
    "have judged other items, so their means can differ for that alone.",
    fit,
    reads=("points", "classes", "order"),
    options=("classes",),
    of_groups=True,
    of_people=True,
    drawn=Drawn("value", COEFFICIENTS),
    room=lambda _: 4,
)

ITEMS = TableMethod(
    SECTION,
    "Items by group",
    "Every item that was judged, with the mean score of each group and from how many judgments. A few judgments differ "
    "by chance: a difference is not yet a disagreement.",
    fit_items,
    of_groups=True,
    of_people=True,
    per_item=True,
    room=lambda expected: expected.items,
)
