"""Names of labels and criteria: which of them annotators could not tell apart."""

import unicodedata

from app.designs.field_flags import is_drawn_as_nothing


def lookalike_comparison_key(name: str) -> str:
    """Return a form of the name that is equal for names that look alike."""
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    words = ("".join(letter for letter in word if not is_drawn_as_nothing(letter)) for word in folded.split())
    return " ".join(word for word in words if word)
