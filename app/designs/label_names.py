"""Names of labels and criteria: which of them annotators could not tell apart."""

import unicodedata


def lookalike_comparison_key(name: str) -> str:
    """Return a form of the name that is equal for names that look alike."""
    return unicodedata.normalize("NFKC", " ".join(name.split())).casefold()
