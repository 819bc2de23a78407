"""The pool: which items of a campaign are asked about, as SQL for a row of `posteriors`."""


def judgeable(posterior: str, *, people: str) -> str:
    """Whether fewer people could not judge an item than take it out of the pool."""
    return f"{posterior}.unjudged < {people}"


def wants(posterior: str, *, judgments: str, people: str) -> str:
    """Whether an item wants a judgment: it has fewer than are wanted, can be judged, and is not settled."""
    return f"{posterior}.judgments < {judgments} AND NOT {posterior}.settled AND {judgeable(posterior, people=people)}"
