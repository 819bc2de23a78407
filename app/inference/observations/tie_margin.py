"""Rule for when two scores count as equal."""

# The screen's 55 and 50 are 0.55 - 0.50 = 0.050000000000000044 as floats, more than a margin of 0.05.
# The slack is far above such rounding and far below any step a slider can make.
TIE_SLACK = 1e-9


def is_tie(score_i: float, score_j: float, tie_margin: float) -> bool:
    """Return whether two scores in [0, 1] count as equal: they differ by no more than tie_margin, up to rounding."""
    return abs(score_i - score_j) <= tie_margin + TIE_SLACK
