"""SQL conditions on a row of `posteriors` that tell which items are open for judgments."""


def is_judgeable_sql(posterior: str, *, unjudged_limit: str) -> str:
    """Return SQL that is true if too few annotators were unable to judge the item to take it out of the pool."""
    return f"{posterior}.unjudged < {unjudged_limit}"


def is_open_sql(posterior: str, *, judgments_wanted: str, unjudged_limit: str) -> str:
    """Return SQL that is true if an item is open: it lacks judgments, can be judged, and is not settled."""
    is_judgeable = is_judgeable_sql(posterior, unjudged_limit=unjudged_limit)
    return f"{posterior}.judgments < {judgments_wanted} AND NOT {posterior}.settled AND {is_judgeable}"
