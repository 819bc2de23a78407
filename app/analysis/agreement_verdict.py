"""Summary of the table of agreement, in sentences; pure."""

import numpy as np

from app.analysis.view import format_interval
from app.inference.agreement.agreement_measure import Agreement
from app.inference.ground.inestimable import Inestimable
from app.text.numbers import MISSING_VALUE_DASH, format_with_places

NEARLY_SAME_RANKING, SIMILAR_RANKING = 0.9, 0.7
FIRM_ALPHA, TENTATIVE_ALPHA = 0.8, 0.667  # Krippendorff, "Content Analysis", 2nd ed. 2004, chapter 11


def describe_agreement(
    alpha: Agreement | Inestimable, split_half: Agreement | Inestimable | None, *, judged: str = "items"
) -> str:
    """Return sentences on Krippendorff's alpha and on the split-half correlation, as one text.

    How much agreement is enough depends on what the scores are for; the sentence names Krippendorff's convention.
    """
    if isinstance(alpha, Inestimable):
        return f"It is unclear whether annotators agree more than by chance: {with_lowercase_initial(str(alpha))}"
    beginning = (
        f"{describe_alpha_against_chance(alpha)}: Krippendorff’s alpha is {format_agreement(alpha, '95 % interval ')}"
    )
    if not isinstance(split_half, Agreement):
        return f"{beginning}, where 0 is chance and 1 is complete agreement. {sentence_on_convention(alpha)}"
    correlation = format_agreement(split_half)
    similarity = describe_repeated_ranking(split_half.value, judged)
    ranking = f"{similarity}: a ranking from as many new judgments would correlate {correlation} with this one."
    return f"{beginning}. {sentence_on_convention(alpha)} {ranking}"


def sentence_on_convention(alpha: Agreement) -> str:
    """Return for what single judgments agree enough by Krippendorff's convention ("Content Analysis", 2004)."""
    if alpha.value >= FIRM_ALPHA:
        return (
            f"By convention (Krippendorff 2004), single judgments agree enough to rely on ({FIRM_ALPHA:.3f} or more)."
        )
    if alpha.value >= TENTATIVE_ALPHA:
        return (
            f"By convention (Krippendorff 2004), single judgments agree enough for tentative conclusions "
            f"({TENTATIVE_ALPHA:.3f} or more), but not enough to rely on ({FIRM_ALPHA:.3f} or more)."
        )
    return (
        "By convention (Krippendorff 2004), single judgments do not agree enough for conclusions "
        f"({TENTATIVE_ALPHA:.3f} or more); use scores from several judgments."
    )


def describe_repeated_ranking(correlation: float, judged: str = "items") -> str:
    """Return how similar a ranking of items or outputs from new judgments would be, as the beginning of a sentence."""
    if correlation >= NEARLY_SAME_RANKING:
        return f"A new order of the {judged} would be nearly the same"
    if correlation >= SIMILAR_RANKING:
        return f"A new order of the {judged} would be similar"
    return f"A new order of the {judged} would be different"


def describe_alpha_against_chance(alpha: Agreement) -> str:
    if alpha.low > 0.0:
        return "Annotators agree more than by chance"
    if alpha.high < 0.0:
        return "Annotators disagree more than by chance"
    if np.isnan(alpha.low):
        return "There are too few answers to tell agreement from chance"
    return "It is unclear whether annotators agree more than by chance"


def format_agreement(agreement: Agreement, interval_prefix: str = "") -> str:
    interval = format_interval(agreement.low, agreement.high, 2)
    return format_with_places(agreement.value, 2) + (
        "" if interval == MISSING_VALUE_DASH else f" ({interval_prefix}{interval})"
    )


def with_lowercase_initial(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
