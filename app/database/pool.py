"""The pool: which items of a campaign are asked about, as SQL for a row of `posteriors`."""

# On top of the judgments of an item that has left the pool, more than anybody wants, so that whoever draws items takes
# it for full; and so many that its own can still be told, and why it left: it is settled, or so many people could not
# judge it.
SETTLED, GONE = 2**29, 2**30


def judgeable(posterior: str, *, people: str) -> str:
    """Whether fewer people could not judge an item than take it out of the pool."""
    return f"{posterior}.unjudged < {people}"


def wants(posterior: str, *, judgments: str, people: str) -> str:
    """Whether an item wants a judgment: it has fewer than are wanted, can be judged, and is not settled."""
    return f"{posterior}.judgments < {judgments} AND NOT {posterior}.settled AND {judgeable(posterior, people=people)}"


def counted(posterior: str, *, people: str) -> str:
    """Its judgments as whoever draws items counts them."""
    return f"""{posterior}.judgments + CASE WHEN {judgeable(posterior, people=people)} THEN 0 ELSE {GONE} END
    + CASE WHEN {posterior}.settled THEN {SETTLED} ELSE 0 END"""
