"""Probabilities as numbers of cases that people can imagine; pure."""

HARDLY_EVER, NEARLY_ALWAYS = 0.005, 0.95
MIN_TENTHS_SHARE = 0.15  # below it, "1 of 8 cases" says more than "1 of 10 cases"


def text_on_share_of_cases(share: float) -> str:
    """Return a share as a number of cases that people can imagine, as the end of a sentence."""
    if share < HARDLY_EVER:
        return "hardly ever"
    if share > NEARLY_ALWAYS:
        return "nearly always"
    tenths, cases = round(10 * share), max(2, round(1 / share))
    if share > 1 / 3 or (share >= MIN_TENTHS_SHARE and abs(tenths / 10 - share) < abs(1 / cases - share)):
        return f"in about {tenths} of 10 cases"
    return f"in about 1 of {cases} cases"
