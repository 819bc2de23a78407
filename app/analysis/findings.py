"""Findings: sentences about what a campaign's answers show so far. They open the analysis page.

Each finding is made from results that another part of the page shows, and leads to that part. A finding without enough
data is left out, or says what is missing.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from app.analysis.answer_kinds import can_read_answers_as
from app.analysis.item_noun import noun_of_answers
from app.analysis.label_votes import MIN_JUDGMENTS_TO_COMPARE_LABELS, count_votes_of_items, has_no_majority
from app.analysis.method_types import ScoreMethod
from app.analysis.result_types import Answers, Mask, ResultTable, Scores
from app.analysis.scores import MEAN_METHOD
from app.analysis.view import decimals_for_values, format_interval
from app.errors import pluralize
from app.inference.agreement import krippendorff
from app.inference.ground.arrays import Integers
from app.inference.ground.inestimable import Inestimable
from app.inference.ground.metrics import spearman
from app.inference.ground.validation import sum_values_of_each_number
from app.text.numbers import format_with_places

MAX_NAMED = 3  # items or annotators that a sentence names
MAX_QUOTED_CHARACTERS = 60
MIN_JUDGMENTS_OF_DISPUTED_ITEM = 3
DISPUTED_SPREAD_RATIO = 1.5  # times the typical standard deviation within an item
MIN_RELIABILITY = 0.3  # an annotator below it does not agree with the others
MIN_REMAINING_ANNOTATORS = 3
MIN_NOTED_ALPHA_CHANGE = 0.01
MIN_ITEMS_TO_COMPARE_METHODS = 3
NEARLY_SAME_ORDER, SIMILAR_ORDER = 0.95, 0.8  # rank correlations


@dataclass(frozen=True)
class Finding:
    """A finding.

    Attributes:
        name: For programs.
        title: What it is about, in a word or two.
        sentence: The finding, in one to three sentences.
        part: The part of the analysis page that shows more.
        annotators: Names of the annotators whom it doubts.

    """

    name: str
    title: str
    sentence: str
    part: str
    annotators: Sequence[str] = ()


def finding_about_scores(method: ScoreMethod, scores: Scores, answers: Answers) -> Finding:
    """Return the finding that says how many items have scores, how exact these are, and which are the highest and the
    lowest.
    """
    values = scores.values
    scored = np.flatnonzero(np.isfinite(values))
    decimals = decimals_for_values(values[scored])
    share = f"{len(scored):,} of" if len(scored) < answers.n_items else "All"
    sentences = [
        f"{share} {pluralize(answers.n_items, noun_of_answers(answers))} have a score (method: {method.title})."
    ]
    if scores.low is not None and scores.high is not None:
        half_widths = ((scores.high - scores.low) / 2.0)[scored]
        half_widths = half_widths[np.isfinite(half_widths)]
        if len(half_widths):
            unit = " points" if method.unit == MEAN_METHOD.unit else ""
            typical = format_with_places(float(np.median(half_widths)), decimals)
            sentences.append(f"A typical score is known to ± {typical}{unit} (95 % interval).")
    if len(scored) > 1:
        highest, lowest = (
            text_on_items_with_score(answers, scores, scored, end, decimals)
            for end in (values[scored].max(), values[scored].min())
        )
        sentences.append(f"The highest score is {highest}; the lowest is {lowest}.")
    return Finding("scores", "Scores", " ".join(sentences), "scores")


def text_on_items_with_score(answers: Answers, scores: Scores, scored: Integers, score: float, decimals: int) -> str:
    """Return a score with the item that has it, and how many others share it as displayed."""
    shown = [format_with_places(float(value), decimals) for value in scores.values[scored]]
    sharing = [
        int(item) for item, text in zip(scored, shown, strict=True) if text == format_with_places(score, decimals)
    ]
    if len(sharing) > 1:
        return f"{format_with_places(score, decimals)}, which {pluralize(len(sharing), noun_of_answers(answers))} share"
    item = sharing[0]
    return f"that of {quote_shortened_item_text(answers, item)} ({format_score_with_interval(scores, item, decimals)})"


def format_score_with_interval(scores: Scores, item: int, decimals: int) -> str:
    value = format_with_places(float(scores.values[item]), decimals)
    if scores.low is None or scores.high is None or not np.isfinite(scores.low[item] + scores.high[item]):
        return value
    return f"{value}, {format_interval(float(scores.low[item]), float(scores.high[item]), decimals)}"


def quote_shortened_item_text(answers: Answers, item: int) -> str:
    text = answers.shown[item]
    short = text if len(text) <= MAX_QUOTED_CHARACTERS else text[: MAX_QUOTED_CHARACTERS - 1] + "…"
    return f"“{short}”"


def finding_about_disputed_items_or_none(answers: Answers) -> Finding | None:
    """Return a finding that names the items about which annotators differ most, or None if they do not differ clearly
    more than usual.
    """
    if not can_read_answers_as("points", answers.value_kind):
        return None
    counts = answers.judgment_counts
    means = sum_values_of_each_number(answers.item, answers.score, answers.n_items) / np.maximum(counts, 1)
    squares = sum_values_of_each_number(answers.item, (answers.score - means[answers.item]) ** 2, answers.n_items)
    spreads = np.sqrt(squares / np.maximum(counts - 1, 1))
    often_judged = np.flatnonzero(counts >= MIN_JUDGMENTS_OF_DISPUTED_ITEM)
    if len(often_judged) <= MAX_NAMED:
        return None
    typical = float(np.sqrt(squares[often_judged].sum() / (counts[often_judged] - 1).sum()))
    disputed = often_judged[spreads[often_judged] > DISPUTED_SPREAD_RATIO * typical]
    if typical <= 0.0 or not len(disputed):
        return None
    noun = noun_of_answers(answers)
    worst = disputed[np.argsort(-spreads[disputed], kind="stable")][:MAX_NAMED].tolist()
    named = "; ".join(
        f"{quote_shortened_item_text(answers, item)} ({lowest_and_highest_score_text(answers, item)})" for item in worst
    )
    sentence = (
        f"Scores of the same {noun} usually differ by {format_with_places(typical, 0)} points (standard deviation). "
        f"They differ far more on {pluralize(len(disputed), noun)}: {named}."
    )
    return Finding("disputed_items", f"Disputed {noun}s", sentence, "scores")


def lowest_and_highest_score_text(answers: Answers, item: int) -> str:
    scores = answers.score[answers.item == item]
    return f"{format_with_places(float(scores.min()), 0)} to {format_with_places(float(scores.max()), 0)}"


def finding_about_labels_or_none(answers: Answers, settled_items: Collection[int] = ()) -> Finding | None:
    """Return on how many items annotators agree, and name those where no label has a majority and no researcher has
    settled one; None for other answers and if no item has two judgments.
    """
    if answers.value_kind != "classes":
        return None
    counts = count_votes_of_items(answers)
    judgments, most = counts.sum(axis=1), counts.max(axis=1)
    has_several = judgments >= MIN_JUDGMENTS_TO_COMPARE_LABELS
    if not has_several.any():
        return None
    agreed = int(np.count_nonzero(has_several & (most == judgments)))
    items = pluralize(int(np.count_nonzero(has_several)), "item")
    sentence = f"Annotators agree on the label of {agreed:,} of {items} with two or more judgments."
    undecided = np.flatnonzero(has_no_majority(counts))
    sentence += sentence_on_undecided_items_or_empty(answers, counts, undecided, settled_items)
    return Finding("labels", "Labels", sentence, "labels")


def sentence_on_undecided_items_or_empty(
    answers: Answers, counts: Integers, undecided: Integers, settled_items: Collection[int]
) -> str:
    """Return how many items have no majority, how many of these are open, and name open ones; empty without any."""
    if not len(undecided):
        return ""
    beginning = f" On {pluralize(len(undecided), 'item')} no label has a majority"
    them = "it" if len(undecided) == 1 else "them"
    open_items = undecided[~np.isin(undecided, [*settled_items])]
    if not len(open_items):
        return f"{beginning}; a researcher has settled {them}."
    first = open_items[np.argsort(-counts[open_items].sum(axis=1), kind="stable")][:MAX_NAMED].tolist()
    named = "; ".join(
        f"{quote_shortened_item_text(answers, item)} ({counts_of_labels_text(counts[item], answers.classes)})"
        for item in first
    )
    if len(open_items) == len(undecided):
        return f"{beginning}, so look at {them} yourself: {named}."
    return f"{beginning}; {len(open_items):,} of {them} {'is' if len(open_items) == 1 else 'are'} still open: {named}."


def counts_of_labels_text(counts: Integers, labels: Sequence[str]) -> str:
    """Return how often each label was given, the most frequent first, such as `2 yes, 1 no`."""
    return ", ".join(f"{counts[k]:,} {labels[k]}" for k in np.argsort(-counts, kind="stable") if counts[k])


def finding_about_agreement_or_none(table: ResultTable) -> Finding | None:
    """Return the verdict of the table of agreement."""
    return Finding("agreement", "Agreement", table.verdict, "agreement") if table.verdict else None


def finding_about_annotator_reliability_or_none(table: ResultTable, answers: Answers) -> Finding | None:
    """Return a finding that names unreliable annotators and says how alpha changes without them, or None."""
    columns = {column.name: [row[k] for row in table.rows] for k, column in enumerate(table.columns)}
    if "reliability" not in columns:
        return None
    names = [str(name) for name in columns["name"]]
    reliabilities = columns["reliability"]
    doubtful = [k for k, cell in enumerate(reliabilities) if isinstance(cell, int | float) and cell < MIN_RELIABILITY]
    if not doubtful:
        known = sum(cell is not None for cell in reliabilities)
        sentence = f"All {pluralize(known, 'annotator')} with enough judgments agree with the others."
        return Finding("annotators", "Annotators", sentence, "annotators") if known > 1 else None
    named = join_leading_names_and_count_of_others([names[number] for number in doubtful])
    verb = "seems" if len(doubtful) == 1 else "seem"
    all_annotators = pluralize(len(names), "annotator")
    sentence = f"{len(doubtful):,} of {all_annotators} {verb} not to agree with the others: {named}."
    effect = sentence_on_alpha_change_or_empty(answers, np.isin(answers.annotator, doubtful), len(doubtful))
    doubtful_names = [names[number] for number in doubtful]
    return Finding("annotators", "Annotators", " ".join(filter(None, (sentence, effect))), "annotators", doubtful_names)


def join_leading_names_and_count_of_others(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = [f"{len(names) - MAX_NAMED:,} more"] if len(names) > MAX_NAMED else []
    parts = [*names[:MAX_NAMED], *more]
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def sentence_on_alpha_change_or_empty(answers: Answers, is_left_out: Mask, count: int) -> str:
    """Return a sentence on how Krippendorff's alpha changes without these judgments; empty if it cannot be
    estimated.
    """
    kept_annotators = np.unique(answers.annotator[~is_left_out])
    if len(kept_annotators) < MIN_REMAINING_ANNOTATORS:
        return ""
    try:
        all_judgments = np.full_like(is_left_out, fill_value=True)
        before, after = (
            krippendorff_alpha_of_judgments(answers, all_judgments),
            krippendorff_alpha_of_judgments(answers, ~is_left_out),
        )
    except Inestimable:
        return ""
    if abs(after - before) < MIN_NOTED_ALPHA_CHANGE:
        return ""
    who = "this annotator" if count == 1 else "them"
    more = "more" if after > before else "less"
    return (
        f"Without {who}, the others agree {more}: Krippendorff’s alpha, where 0 is chance and 1 is complete "
        f"agreement, is {format_with_places(after, 2)} instead of {format_with_places(before, 2)}."
    )


def krippendorff_alpha_of_judgments(answers: Answers, mask: Mask) -> float:
    """Return Krippendorff's alpha of some scores, on the interval scale. Raises `Inestimable`."""
    units, unit_count = answers.judged_units_and_their_count()
    return krippendorff.fit(
        units[mask],
        answers.annotator[mask],
        answers.score[mask],
        metric="interval",
        n_items=unit_count,
        n_annotators=answers.n_annotators,
        draws=1,  # the interval is not shown
        rng=answers.seeded_rng(),
    ).value


def finding_about_groups_or_none(table: ResultTable) -> Finding | None:
    """Return the finding on how far groups of annotators agree with the others, the least similar group first, or
    None.
    """
    columns = {column.name: [row[k] for row in table.rows] for k, column in enumerate(table.columns)}
    rows = [
        (correlation, f"{question}: {answer}")
        for question, answer, correlation in zip(
            columns["question"], columns["answer"], columns["with_others"], strict=True
        )
        if isinstance(correlation, int | float)
    ]
    if not rows:
        return None
    correlation, group = min(rows)
    sentence = (
        f"Item means of groups of annotators correlate {format_with_places(correlation, 2)} or more with those of the "
        f"others; the lowest is {group}."
    )
    return Finding("groups", "Groups", sentence, "groups")


def finding_about_systems_or_none(table: ResultTable) -> Finding | None:
    """Return the finding that says which systems rank first and whether they can be distinguished, or None."""
    columns = {column.name: [row[k] for row in table.rows] for k, column in enumerate(table.columns)}
    if not table.rows:
        return None
    first = [str(name) for name, cluster in zip(columns["system"], columns["cluster"], strict=True) if cluster == 1]
    ranks = "ranks" if len(first) == 1 else "rank"
    beginning = (
        "" if len(first) == len(table.rows) else f"{join_leading_names_and_count_of_others(first)} {ranks} first. "
    )
    return Finding("systems", "Systems", beginning + table.verdict, "systems")


def finding_about_effect_of_method_or_none(
    names: tuple[str, str], scores: tuple[Scores, Scores], noun: str = "item"
) -> Finding | None:
    """Return the finding that says whether the order of the items depends on the method, or None."""
    one, other = (method_scores.values for method_scores in scores)
    both = np.isfinite(one) & np.isfinite(other)
    if np.count_nonzero(both) < MIN_ITEMS_TO_COMPARE_METHODS or min(np.ptp(one[both]), np.ptp(other[both])) <= 0.0:
        return None
    correlation = spearman(one[both], other[both])
    sentence = (
        f"The orders of the {noun}s by {names[0]} and by {names[1]} correlate {format_with_places(correlation, 2)} "
        f"(Spearman): {consequence_of_method_choice(correlation)}."
    )
    return Finding("methods", "Methods", sentence, "scores")


def consequence_of_method_choice(correlation: float) -> str:
    """Return what the correlation of the orders by two methods means for a report, as the end of a sentence."""
    if correlation >= NEARLY_SAME_ORDER:
        return "it hardly matters which of the two you report"
    if correlation >= SIMILAR_ORDER:
        return "the orders are similar, so say which method you report"
    return "the order depends on the method, so report both, or say why you chose one"
