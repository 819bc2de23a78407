"""The pool: which items of a campaign are asked about, as SQL for a row of `posteriors`."""


def is_judgeable_sql(posterior: str, *, unjudged_limit: str) -> str:
    """Whether fewer people could not judge an item than take it out of the pool."""
    return f"{posterior}.unjudged < {unjudged_limit}"


def is_open_sql(posterior: str, *, judgments_wanted: str, unjudged_limit: str) -> str:
    """Whether an item wants a judgment: it has fewer than are wanted, can be judged, and is not settled."""
    return f"{posterior}.judgments < {judgments_wanted} AND NOT {posterior}.settled AND {is_judgeable_sql(posterior, unjudged_limit=unjudged_limit)}"
