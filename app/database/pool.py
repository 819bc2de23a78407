"""The pool: which items of a campaign are asked about, as SQL for a row of `posteriors`."""

# On top of the judgments of an item that has left the pool, since so many people could not judge it: more than anybody
# wants, so that whoever draws items takes it for full, and so many that its own can still be told.
GONE = 2**30


def wants(posterior: str, *, judgments: str, people: str) -> str:
    """Whether an item wants a judgment: it has fewer than are wanted, and fewer people could not judge it."""
    return f"{posterior}.judgments < {judgments} AND {posterior}.unjudged < {people}"


def counted(posterior: str, *, people: str) -> str:
    """Its judgments as whoever draws items counts them."""
    return f"{posterior}.judgments + CASE WHEN {posterior}.unjudged < {people} THEN 0 ELSE {GONE} END"
